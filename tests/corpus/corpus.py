#!/usr/bin/env python3
"""Public launch files against `trivium import`: which are read, which are refused and why, which are read otherwise
than bash would run them.

usage: corpus.py TRIVIUM [--folder COLLECTION=FOLDER...] [--only COLLECTION...] [--no-capture] [--list]

Collections are fetched with git into build/corpus unless a folder is given; nothing of them is kept in the tree.
Scripts are read by `import` and, where they are shell scripts, run by `capture` (which starts nothing), whose result
is imported too: the two must agree in model, split, batch and precision.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

NODES = "64"
CLUSTER = "dgx-h100-80gb:" + NODES
SECONDS = 90
# Name, repository, folder in it, patterns, options of import, whether bash tells the truth.
COLLECTIONS = [
    ("megatron-examples", "https://github.com/NVIDIA/Megatron-LM", "examples", ["*.sh"], [], True),
    ("bigscience", "https://github.com/bigscience-workshop/bigscience", "train", ["*.sh", "*.slurm"], [], True),
    ("megatron-tests", "https://github.com/NVIDIA/Megatron-LM", "tests/functional_tests/test_cases",
     ["model_config.yaml"], [], False),
    ("torchtitan", "https://github.com/pytorch/torchtitan@v0.2.2", "torchtitan/models", ["*.toml"], [], False),
    ("gpt-neox", "https://github.com/EleutherAI/gpt-neox", "configs", ["*.yml"], [], False),
    ("nanotron", "https://github.com/huggingface/nanotron", "examples", ["*.yaml"], [], False),
    ("llm-foundry", "https://github.com/mosaicml/llm-foundry", "scripts/train", ["*.yaml"], [], False),
    ("axolotl", "https://github.com/axolotl-ai-cloud/axolotl", "examples", ["*.yaml", "*.yml"], [], False),
    ("accelerate", "https://github.com/huggingface/accelerate", "examples", ["*.yaml", "*.yml"],
     ["--model", "llama3.1-8b"], False),
    ("fastchat", "https://github.com/lm-sys/FastChat", "scripts", ["train_*.sh"], [], True),
]
# What must be the same, read and run.
FIELDS = [("model", key) for key in ("layers", "hidden", "heads", "kv_heads", "ffn_hidden", "positions", "norm")] + [
    ("plan", key) for key in ("tensor", "pipeline", "context", "expert", "data", "micro_batch", "zero_stage",
                              "precision", "recompute", "virtual_stages", "sequence_parallel")
] + [("training", "sequence"), ("training", "global_batch")]


def fetched(source, name):
    repository, _, tag = source.partition("@")
    folder = pathlib.Path("build/corpus") / name
    if not folder.exists():
        command = ["git", "clone", "-q", "--depth", "1"] + (["--branch", tag] if tag else [])
        subprocess.run(command + [repository, str(folder)], check=True)
    return folder


def imported(trivium, path, options):
    """The plan file, or the reason why there is none."""
    command = [trivium, "import", str(path), "--cluster", CLUSTER, "--json"] + options
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, "no answer in time"
    if run.returncode == 0:
        return json.loads(run.stdout)["file"], ""
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    reason = errors[-1] if errors else f"exit code {run.returncode}"
    return None, reason.replace("error: ", "").replace(str(path), "").lstrip(":# ")


def captured(trivium, path, options, top):
    """What the script would start, in a batch job where it has a header; None where it starts nothing. Some want to be
    started from the top of their repository."""
    starter = "sbatch" if "#SBATCH" in path.read_text(errors="replace") else "bash"
    # A script without a header that asks Slurm for its nodes is started in an allocation of the cluster's.
    environment = dict(os.environ) if starter == "sbatch" else dict(os.environ, SLURM_NNODES=NODES)
    for folder in (path.parent, top):
        with tempfile.NamedTemporaryFile(suffix=".sh") as script:
            command = [trivium, "capture", "-o", script.name, "--force", "--", starter, str(path.relative_to(folder))]
            try:
                run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
                                     env=environment)
            except subprocess.TimeoutExpired:
                continue
            plan = imported(trivium, script.name, options)[0] if run.returncode == 0 else None
        if plan is not None:
            return plan
    return None


def differences(read, run):
    return [f"{key} {read[part].get(key)} for {run[part].get(key)}" for part, key in FIELDS
            if read[part].get(key) != run[part].get(key)]


def judged(trivium, path, options, has_truth, top):
    read, reason = imported(trivium, path, options)
    run = captured(trivium, path, options, top) if has_truth else None
    if read is None:
        return ("refused" if run is not None or not has_truth else "starts nothing that is read"), reason
    if run is None:
        return ("read" if not has_truth else "read; bash starts nothing"), ""
    differs = differences(read, run)
    return ("different", "; ".join(differs)) if differs else ("read", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trivium")
    parser.add_argument("--folder", action="append", default=[], metavar="COLLECTION=FOLDER")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--no-capture", action="store_true")
    parser.add_argument("--list", action="store_true", help="a line for every file, not only for those not read")
    given = parser.parse_args()
    trivium = str(pathlib.Path(given.trivium).resolve())
    folders = dict(pair.split("=", 1) for pair in given.folder)
    wrong = 0
    table = []
    for name, source, inside, patterns, options, has_truth in COLLECTIONS:
        if given.only and name not in given.only:
            continue
        top = pathlib.Path(folders[name]) if name in folders else fetched(source, name)
        files = sorted({path for pattern in patterns for path in (top / inside).rglob(pattern) if path.is_file()})
        counts = collections.Counter()
        for path in files:
            verdict, why = judged(trivium, path, options, has_truth and not given.no_capture, top)
            counts[verdict] += 1
            wrong += verdict == "different"
            if given.list or verdict != "read":
                print(f"{name:18} {verdict:12} {path.relative_to(top)}: {why}", flush=True)
        table.append((name, len(files), counts))
    print("\n| collection | files | read as bash runs it | different | refused | bash starts nothing, either |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, files, counts in table:
        none = counts["starts nothing that is read"] + counts["read; bash starts nothing"]
        print(f"| {name} | {files} | {counts['read']} | {counts['different']} | {counts['refused']} | {none} |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
