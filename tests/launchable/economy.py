"""Economic sense: nobody gets more out of a machine than anybody ever has, unless plan says so; and nothing that is
better makes a plan worse.

Published runs are read from validation/runs*/*.csv. A run and a plan are compared by useful FLOP/s a GPU, counted here
for both: 6 a parameter that a token meets, and attention to half of the sequence (arXiv 2104.04473, equation 3, without
recomputation)."""

import collections
import concurrent.futures
import csv
import dataclasses
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from drawn import Job
from hardware import MACHINES

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = {
    "megatron": "megatron",
    "megatron-bridge": "megatron",
    "deepspeed": "deepspeed",
    "torchtitan": "pytorch",
    "fsdp2": "pytorch",
}
# Mean errors of each class, README "Accuracy" of 2026-11-26 (with the source left out where there is such a figure):
# A100 and V100, later devices dense in 16 and in 8 bits, and mixtures.
ERRORS = {"older": 0.088, "dense-16": 0.07, "dense-8": 0.12, "mixture": 0.18}
RECIPES = {"mxfp8": "mxfp8", "current-scaling": "current", "tensorwise-float8": "current"}
RECORDS = 24  # published records whose own job is planned, too; all of them with --all
MOST_GPUS = 1024
SWEPT = 3  # drawn jobs that are swept as ./dev proofs does, each with some 25 searches
MOST_SAMPLES = 4096
FAMILIES_TRIED = 8  # rows of "other families" that are searched by themselves
FAMILY_TOLERANCE = 0.005
SPLIT = ("tensor", "context", "pipeline", "expert")

Shape = collections.namedtuple("Shape", "layers hidden heads experts")
Kind = collections.namedtuple("Kind", "model gpu bits family")


def family_of(software):
    if "deepspeed" in software:
        return "deepspeed"
    if software.startswith("megatron"):
        return "megatron"
    return "pytorch" if "fsdp" in software or "torchtitan" in software else None


def bits_of(precision):
    return {"bf16": 16, "fp16": 16, "fp8": 8}.get(precision)


def shape_of(model):
    return Shape(model["layers"], model["hidden"], model["heads"], (model.get("experts") or {}).get("count", 0))


def whole_trainings():
    """Rows of the tables that are measured pretraining runs on machines we know."""
    for path in sorted(ROOT.glob("validation/runs*/*.csv")):
        for row in csv.DictReader(path.open()):
            whole = all(row[name] for name in ("layers", "hidden", "heads", "measured_iteration_s"))
            if whole and row["hardware"] in MACHINES and (row.get("task") or "pretrain") == "pretrain":
                yield row


def is_of(model, row, named):
    """Whether a row of a model's shape is of that model: tables that name models have their width, too (3 and 3.1 of
    Llama differ in nothing that is timed); the older ones, without names, are of GPTs and their like with GELU."""
    if abs(int(row["vocab"] or model["vocab"]) - model["vocab"]) > 0.05 * model["vocab"]:
        return False
    if not named:
        return model["activation"] == "gelu" and not model.get("experts")
    return bool(model.get("experts")) or int(row["ffn"] or 0) == model["ffn_hidden"]


def published(models):
    """{Kind: rows} of shipped models, which rows name or whose shape they have. `models`: {name: its JSON}."""
    by_shape = {}
    for name, model in models.items():
        by_shape.setdefault(shape_of(model), []).append(name)
    runs = collections.defaultdict(list)
    for row in whole_trainings():
        shape = Shape(int(row["layers"]), int(row["hidden"]), int(row["heads"]), int(row.get("experts") or 0))
        named = row.get("model")
        names = [name for name in by_shape.get(shape, []) if is_of(models[name], row, named)]
        family, bits = family_of(row["software"]), bits_of(row["precision"])
        for name in names if family and bits else ():
            runs[Kind(name, MACHINES[row["hardware"]].gpu, bits, family)].append(row)
    return runs


def flops_of_token(model, sequence):
    """6 a parameter that multiplies (embeddings are looked up), and attention: scores and values over half a
    sequence."""
    parameters = model["parameters"]
    multiplied = parameters["active"] - parameters["token_embedding"] - parameters["position_embedding"]
    return 6 * multiplied + 6 * model["layers"] * model["heads"] * model["head_dim"] * sequence


def rate(model, batch, sequence, seconds, gpus):
    return batch * sequence / seconds / gpus * flops_of_token(model, sequence)


def rate_of(row, model):
    seconds, gpus = float(row["measured_iteration_s"]), int(row["gpus"])
    return rate(model, int(row["global_batch"]), int(row["seq"]), seconds, gpus)


def class_of(model, machine, bits):
    if machine.sm < (9, 0):
        return "older"
    return "mixture" if model.get("experts") else f"dense-{bits}"


def kind_of(job, result):
    bits = {"none": 16, "nvfp4": 4}.get(result["best"]["plan"]["fp8"], 8)
    return Kind(job.model, MACHINES[job.machine].gpu, bits, FAMILIES[job.trainer])


def beaten_run(runs, model, job, result):
    """The best published run like this job and by how much the plan promises more; None where nobody ran its like, or
    the plan promises no more than errors explain."""
    kind, best = kind_of(job, result), result["best"]
    like = [row for row in runs.get(kind, ()) if job.sequence / 2 <= int(row["seq"]) <= job.sequence * 2]
    if not like:
        return None
    record = max(like, key=lambda row: rate_of(row, model))
    plan = best["plan"]
    gpus = plan["tensor"] * plan["context"] * plan["pipeline"] * plan["data"]
    more = rate(model, job.batch, job.sequence, best["iteration_s"], gpus) / rate_of(record, model) - 1
    return (record, more) if more > ERRORS[class_of(model, MACHINES[job.machine], kind.bits)] else None


def job_of(name, row):
    """The published run's own job, for the trainer that made it or its nearest kin."""
    family = family_of(row["software"])
    trainer = {"megatron": "megatron-bridge", "deepspeed": "deepspeed"}.get(family) or (
        "torchtitan" if "torchtitan" in row["software"] else "fsdp2"
    )
    gpus, node = int(row["gpus"]), MACHINES[row["hardware"]].node_gpus
    more = () if gpus % node == 0 else ("--ranks", str(gpus))
    if bits_of(row["precision"]) == 8:
        more += ("--fp8", RECIPES.get(row["fp8_recipe"], "delayed"))
    cluster = f"{row['hardware']}:{-(-gpus // node)}"
    return Job(name, cluster, trainer, int(row["global_batch"]), int(row["seq"]), more)


def record_jobs(runs, models, seed, all_of_them):
    """The jobs of the best run of each kind."""
    records = [(kind.model, max(rows, key=lambda row: rate_of(row, models[kind.model]))) for kind, rows in runs.items()]
    records = [(name, row) for name, row in records if int(row["gpus"]) <= MOST_GPUS]
    random.Random(seed).shuffle(records)
    return [job_of(name, row) for name, row in records[: None if all_of_them else RECORDS]]


def plan_job(program, job):
    done = program.run("plan", *job.options, "--threads", 1, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def check_published(program, outcomes, seed, all_of_them, workers):
    """Plans above the best published run have to name it. Returns how many do not."""
    names = [model["name"] for model in program.json("models")["models"]]
    models = {name: program.json("models", name) for name in names}
    runs = published(models)
    tried = [(outcome.job, outcome.result) for outcome in outcomes if outcome.result]
    jobs = record_jobs(runs, models, seed, all_of_them)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        tried += zip(jobs, pool.map(lambda job: plan_job(program, job), jobs))
    compared = [(job, result) for job, result in tried if result and kind_of(job, result) in runs]
    silent = 0
    for job, result in compared:
        beaten = beaten_run(runs, models[job.model], job, result)
        if beaten is None:
            continue
        record, more = beaten
        said = program.run("plan", *job.options, "--threads", 1)
        if record["case"] not in said.stdout + said.stderr:
            silent += 1
            print(f"  {100 * more:.0f} % above {record['case']}, which plan does not name: {job.command()}")
    print(
        f"economy: {len(compared)} plans of a kind that was measured, {len(jobs)} of them of the runs' own jobs; "
        f"{silent} above the best of its kind without its name"
    )
    return silent


def quickest(outcomes):
    """Jobs with a plan, those first that were searched in the least time."""
    planned = [outcome for outcome in outcomes if outcome.result]
    return sorted(planned, key=lambda outcome: outcome.result["search"]["seconds"])


def shareable(job):
    """The job with a batch that its nodes and one node more can share out: of others an extra node may stay idle."""
    nodes = int(job.cluster.partition(":")[2])
    return dataclasses.replace(job, batch=MACHINES[job.machine].node_gpus * nodes * (nodes + 1))


def check_better(program, outcomes):
    """tests/proofs/sweep.py on some of the drawn jobs: no restriction faster, no better hardware slower."""
    by_trainer = {outcome.job.trainer: shareable(outcome.job) for outcome in reversed(quickest(outcomes))}
    jobs = [job for job in by_trainer.values() if job.batch <= MOST_SAMPLES][:SWEPT]
    if not jobs:
        print(f"economy: no drawn job has a batch of at most {MOST_SAMPLES} to sweep it with")
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("".join(" ".join(job.options) + "\n" for job in jobs))
        listed.flush()
        sweep = [sys.executable, str(ROOT / "tests/proofs/sweep.py"), program.path, listed.name]
        done = subprocess.run(sweep, capture_output=True, text=True)
    print("economy: " + (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1])
    if done.returncode:
        print(done.stdout + done.stderr)
    return int(done.returncode != 0)


def check_families(program, outcomes, seed, workers):
    """A row of "other families" is the best of its split, as a search of that split alone finds. Returns how many are
    not."""
    several = [outcome for outcome in quickest(outcomes) if outcome.result["others"]]
    rows = [(outcome, row) for outcome in several[:40] for row in outcome.result["others"][:2]]
    rows = random.Random(seed).sample(rows, min(FAMILIES_TRIED, len(rows)))

    def alone(outcome, plan):
        split = [word for name in SPLIT for word in ("--fix", f"{name}={plan[name]}")]
        done = program.run("plan", *outcome.job.options, *split, "--threads", 1, "--json")
        best = json.loads(done.stdout)["best"] if done.returncode == 0 else None
        return (best["iteration_s"] if best else float("inf")), " ".join(split)

    worse = 0
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda row: alone(row[0], row[1]["plan"]), rows))
    for (outcome, row), (seconds, split) in zip(rows, found):
        if row["iteration_s"] > seconds * (1 + FAMILY_TOLERANCE):
            worse += 1
            print(f"  a family of {row['iteration_s']:.4g} s has {seconds:.4g} s: {outcome.job.command()} {split}")
    print(f"economy: {len(rows)} rows of other families searched alone, {worse} more than 0.5 % from their best")
    return worse


def check(program, outcomes, seed, all_of_them, workers):
    return (
        check_published(program, outcomes, seed, all_of_them, workers)
        + check_families(program, outcomes, seed, workers)
        + check_better(program, outcomes)
    )
