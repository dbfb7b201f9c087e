"""The module over the installed program: typed results, errors, frames. Run by ./dev python."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import trivium

try:
    import pandas
except ImportError:
    pandas = None

CLUSTER = "dgx-h100-80gb:2"


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.found = trivium.plan("llama3-8b", CLUSTER, global_batch=256)

    def test_llama_3_8b_has_a_plan_on_16_gpus(self):
        best = self.found.best
        self.assertEqual(best.plan["tensor"] * best.plan["context"] * best.plan["pipeline"] * best.plan["data"], 16)
        self.assertGreater(best.mfu, 0.2)
        self.assertLess(best.mfu, 0.8)
        low, high = best.iteration_interval_90_s
        self.assertTrue(low < best.iteration_s < high)
        self.assertEqual(self.found.top[0], best)
        self.assertEqual(self.found.json["schema"], "trivium.plan-result/1")

    def test_a_plan_is_simulated_to_the_figures_it_was_found_with(self):
        simulation = trivium.simulate(self.found)
        self.assertEqual(simulation.iteration_s, self.found.best.iteration_s)
        self.assertEqual(simulation.plan, self.found.best.plan)
        self.assertAlmostEqual(sum(simulation.breakdown_s.values()), simulation.iteration_s, places=9)
        self.assertEqual(len(simulation.ranks), 16)

    def test_options_change_the_plan(self):
        whole = trivium.simulate(self.found, recompute="full", zero_stage=3)
        self.assertEqual((whole.plan["recompute"], whole.plan["zero_stage"]), ("full", 3))
        narrow = trivium.plan(like=self.found, max={"tensor": 1}, forbid=["offload"], global_batch=128)
        self.assertEqual(narrow.best.plan["tensor"], 1)
        self.assertEqual(narrow.training["global_batch"], 128)

    def test_a_saved_plan_is_one_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.json"
            self.found.save(file)
            self.assertEqual(trivium.simulate(file).iteration_s, self.found.best.iteration_s)
            self.assertEqual(trivium.compare([file, self.found]).plans[1]["iteration_s"], self.found.best.iteration_s)

    def test_what_limits_it_and_how_others_start_it(self):
        self.assertTrue(trivium.explain(self.found).sentences)
        slower = {**self.found.plan_file(), "plan": {**self.found.best.plan, "recompute": "full"}}
        self.assertEqual(trivium.explain(self.found, why_not=slower).verdict, "slower")
        self.assertIn("torchrun", trivium.export(self.found, "megatron").text)

    @unittest.skipIf(pandas is None, "pandas is not there")
    def test_results_are_frames(self):
        self.assertIn("tensor", self.found.to_frame().columns)
        ranks = trivium.simulate(self.found).to_frame()
        self.assertEqual(list(ranks["rank"]), list(range(16)))
        self.assertIn("activations_bytes", ranks.columns)
        self.assertIn("llama3-8b", set(trivium.models().to_frame()["name"]))


class Runs(unittest.TestCase):
    def test_a_run_is_validated(self):
        with tempfile.TemporaryDirectory() as folder:
            text, record = Path(folder) / "text.txt", Path(folder) / "run.json"
            text.write_text("in the beginning was the word " * 200)
            subprocess.run([trivium.program(), "run", "--model", "gpt-tiny", "--global-batch", "8", "--corpus", str(text),
                            "--steps", "5", "--record", str(record)], check=True, capture_output=True)
            validation = trivium.validate(record)
        self.assertTrue(validation.rows)
        self.assertGreater(validation.rows[0].measured_iteration_s, 0)


class Shipped(unittest.TestCase):
    def test_models_and_hardware(self):
        sizes = {one.name: one.parameters for one in trivium.models()}
        self.assertEqual(sizes["gpt2-124m"], 124_439_808)
        self.assertEqual(trivium.model("llama3-8b")["layers"], 32)
        self.assertEqual({one.devices for one in trivium.profiles() if one.name == "dgx-h100-80gb"}, {8})
        self.assertIn("sources", json.dumps(trivium.profile("dgx-h100-80gb")))

    def test_the_program_is_the_one_of_the_package(self):
        if "TRIVIUM_PROGRAM" not in os.environ:
            self.assertEqual(Path(trivium.program()).parent.parent, Path(trivium.__file__).parent)
        self.assertRegex(trivium.version(), r"^\d+\.\d+\.\d+$")


class Errors(unittest.TestCase):
    def refused(self, kind, code, part, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertEqual(caught.exception.exit_code, code)
        self.assertIn(part, caught.exception.message)
        self.assertIsInstance(caught.exception, trivium.TriviumError)
        return caught.exception

    def test_they_carry_exit_code_and_message(self):
        self.refused(trivium.InputError, 3, 'did you mean "llama3-8b"?',
                     lambda: trivium.plan("llama3-8", CLUSTER, global_batch=8))
        self.refused(trivium.UsageError, 2, 'did you mean "--tensor"?',
                     lambda: trivium.simulate(model="gpt-tiny", cluster="generic-cpu", global_batch=8, tenser=2))
        error = self.refused(trivium.NoPlanError, 4, "", lambda: trivium.plan(
            "gpt3-175b", "dgx-a100-80gb:1", global_batch=64, tensor=8, pipeline=1, data=1, zero_stage=0,
            forbid=["offload"]))
        self.assertIn("relaxations", json.loads(error.output))


if __name__ == "__main__":
    unittest.main()
