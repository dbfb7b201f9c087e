"""What the program writes, held against the schemas that it prints. Run by ./dev python."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

import trivium

try:
    import jsonschema
except ImportError:
    jsonschema = None


def run(folder, *words):
    done = subprocess.run([trivium.program(), *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr}")
    return done.stdout


@unittest.skipIf(jsonschema is None, "jsonschema is not there")
class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.kept.name)
        (cls.folder / "text.txt").write_text("in the beginning was the word " * 200)
        job = ["--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gb:2", "--global-batch", "64"]
        run(cls.folder, "plan", *job, "-o", "plan.json")
        run(cls.folder, "plan", *job, "--recompute", "full", "-o", "other.json")
        run(cls.folder, "run", "--model", "gpt-tiny", "--ranks", "2", "--pipeline", "2", "--global-batch", "8",
            "--corpus", "text.txt", "--steps", "6", "--record", "run.json", "--checkpoint", "kept")
        run(cls.folder, "export", "plan.json", "--to", "megatron", "-o", "train.sh")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def holds(self, document):
        name = document["schema"]
        schema = trivium.schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        errors = [f"{name} {error.json_path}: {error.message}"
                  for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]
        self.assertEqual(errors, [])
        return schema

    def refuses(self, name, document):
        self.assertFalse(jsonschema.Draft202012Validator(trivium.schema(name)).is_valid(document))

    def written(self, *words):
        return json.loads(run(self.folder, *words, "--json"))

    def file(self, name):
        return json.loads((self.folder / name).read_text())

    def test_every_schema_is_one(self):
        for line in run(self.folder, "schema").splitlines()[1:]:
            schema = trivium.schema(line.split()[0])
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertTrue(schema["description"])

    def test_plans(self):
        self.holds(self.file("plan.json"))
        self.refuses("plan", {**self.file("plan.json"), "modl": 1})
        self.refuses("plan", {**self.file("plan.json"), "plan": {"tensor": 0}})
        self.refuses("plan", {**self.file("plan.json"), "plan": {"recompute": "some"}})
        run(self.folder, "plan", "--model", "llama3-8b", "--mtp", "1", "--cluster", "dgx-a100-80gb:2", "--global-batch",
            "64", "--sequence", "4096", "-o", "modules.json")
        self.holds(self.file("modules.json"))
        self.assertEqual(self.file("modules.json")["model"]["mtp"], {"depth": 1, "loss_scale": 0.1})
        adapters = {"global_batch": 64, "lora_rank": 16, "lora_alpha": 32.0, "lora_targets": ["qkv", "projection"]}
        plan = {**self.file("plan.json"), "training": adapters}
        self.holds(plan)
        self.refuses("plan", {**plan, "training": {**adapters, "lora_targets": ["fc3"]}})
        self.refuses("plan", {**plan, "training": {**adapters, "lora_targets": []}})
        packed = {"global_batch": 64, "document_lengths": [128, 512], "document_weights": [3, 1]}
        self.holds({**plan, "training": packed})
        self.refuses("plan", {**plan, "training": {**packed, "document_lengths": [0]}})
        muon = {"global_batch": 64, "optimizer": "muon", "muon_momentum": 0.9, "muon_iterations": 6}
        self.holds({**plan, "training": muon})
        self.refuses("plan", {**plan, "training": {**muon, "optimizer": "moon"}})
        self.refuses("plan", {**plan, "plan": {"moment_dtype": "fp8"}})
        self.holds({"schema": "trivium.plan/1", "model": "gpt3-175b", "cluster": "dgx-a100-80gb:128",
                    "training": {"global_batch": 1536}, "plan": {"tensor": 8}})

    def test_searches(self):
        self.holds(self.written("plan", "plan.json"))
        self.holds(self.written("plan", "--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gb:2", "--global-batch", "64",
                                "--tokens", "30B", "--best", "3", "--pareto", "--sensitivity", "--robustness", "--space",
                                "--jitter", "5%", "--batch-range", "64:256", "--ranks", "12"))
        self.holds(self.written("plan", "plan.json", "--for", "megatron"))
        self.holds(self.written("plan", "--model", "gpt3-1.3b", "--cluster", "dgx-a100-80gb:1+dgx1-v100-32gb:1",
                                "--global-batch", "64"))

    def test_simulations(self):
        self.holds(self.written("simulate", "plan.json"))
        self.holds(self.written("simulate", "plan.json", "--tokens", "30B", "--failures", "--jitter", "5%", "--samples",
                                "4"))

    def test_explanations_and_comparisons(self):
        self.holds(self.written("explain", "plan.json"))
        self.holds(self.written("explain", "plan.json", "--why-not", "other.json"))
        self.holds(self.written("explain", "plan.json", "--why-not", "plan.json"))
        self.holds(self.written("compare", "plan.json", "other.json"))
        self.holds(self.written("scale", "plan.json", "--devices", "8,16", "--tokens", "30B"))

    def test_runs(self):
        self.holds(self.file("run.json"))
        self.holds(self.file("kept/step-00000006/checkpoint.json"))
        for line in run(self.folder, "run", "--model", "gpt-tiny", "--global-batch", "8", "--corpus", "text.txt",
                        "--steps", "2", "--json").splitlines():
            self.holds(json.loads(line))
        self.holds(self.written("replan", "run.json"))
        self.holds(self.written("validate", "run.json"))
        self.holds(self.written("calibrate", "run.json", "-o", "fitted.json"))
        self.holds(self.file("fitted.json"))
        (self.folder / "runs").mkdir(exist_ok=True)
        (self.folder / "runs" / "1.json").write_text((self.folder / "run.json").read_text())
        self.holds(self.written("validate", "--history", "runs"))

    def test_other_trainers(self):
        for trainer in ("megatron", "deepspeed", "torchtitan"):
            self.holds(self.written("export", "plan.json", "--to", trainer))
        self.holds(self.written("import", "train.sh", "--cluster", "dgx-a100-80gb:2"))
        self.holds(self.written("improve", "train.sh", "--cluster", "dgx-a100-80gb:2"))

    def test_what_is_shipped(self):
        for one in ("models", "profiles", "stacks", "doctor"):
            self.holds(self.written(one))
        data = Path(trivium.program()).parent.parent / "share" / "trivium"
        for folder in ("models", "models/families", "models/names", "hardware_profiles", "stacks"):
            files = sorted((data / folder).glob("*.json"))
            self.assertTrue(files)
            for file in files:
                self.holds(json.loads(file.read_text()))
        self.holds(json.loads((data / "hardware_profiles" / "measured" / "errors.json").read_text()))


if __name__ == "__main__":
    unittest.main()
