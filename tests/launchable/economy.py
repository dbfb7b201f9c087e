"""Economic sense: nobody gets more out of a machine than anybody ever has, unless plan says so; and nothing that is better
makes a plan worse.

Published runs are read from validation/runs*/*.csv. A run and a plan are compared by useful FLOP/s a GPU, counted here for
both: 6 a parameter that a token meets, and attention to half of the sequence (arXiv 2104.04473, equation 3, without
recomputation)."""

import collections
import csv
import pathlib
import subprocess
import sys
import tempfile

from hardware import MACHINES

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES = {
    "megatron": "megatron",
    "megatron-bridge": "megatron",
    "deepspeed": "deepspeed",
    "torchtitan": "pytorch",
    "fsdp2": "pytorch",
}
# Mean errors of each class, README "Accuracy" of 2026-11-26 (with the source left out where there is such a figure): A100
# and V100, later devices dense in 16 and in 8 bits, and mixtures.
ERRORS = {"older": 0.088, "dense-16": 0.07, "dense-8": 0.12, "mixture": 0.18}
SWEPT = 3  # drawn jobs that are swept as ./dev proofs does, each with some 25 searches
SWEPT_WITHIN_S = 0.2


def family_of(software):
    if "deepspeed" in software:
        return "deepspeed"
    if software.startswith("megatron"):
        return "megatron"
    return "pytorch" if "fsdp" in software or "torchtitan" in software else None


def bits_of(precision):
    return {"bf16": 16, "fp16": 16, "fp8": 8}.get(precision)


Shape = collections.namedtuple("Shape", "layers hidden heads experts")


def published():
    """{(shape, GPU, bits, family): rows}, of whole trainings that were measured."""
    runs = collections.defaultdict(list)
    for path in sorted(ROOT.glob("validation/runs*/*.csv")):
        for row in csv.DictReader(path.open()):
            family, bits = family_of(row["software"]), bits_of(row["precision"])
            machine = MACHINES.get(row["hardware"])
            whole = all(row[name] for name in ("layers", "hidden", "heads", "measured_iteration_s"))
            if not (family and bits and machine and whole) or (row.get("task") or "pretrain") != "pretrain":
                continue
            shape = Shape(int(row["layers"]), int(row["hidden"]), int(row["heads"]), int(row.get("experts") or 0))
            runs[shape, machine.gpu, bits, family].append(row)
    return runs


def flops_of_token(model, sequence):
    """6 a parameter that multiplies (embeddings are looked up), and attention: scores and values over half a sequence."""
    parameters = model["parameters"]
    multiplied = parameters["active"] - parameters["token_embedding"] - parameters["position_embedding"]
    return 6 * multiplied + 6 * model["layers"] * model["heads"] * model["head_dim"] * sequence


def rate(model, batch, sequence, seconds, gpus):
    return batch * sequence / seconds / gpus * flops_of_token(model, sequence)


def class_of(model, machine, bits):
    if machine.sm < (9, 0):
        return "older"
    return "mixture" if model.get("experts") else f"dense-{bits}"


def beaten_run(runs, model, job, result, gpus):
    """The best published run like this job and by how much the plan promises more; None where nobody ran its like, or the
    plan promises no more than errors explain."""
    machine, best = MACHINES[job.machine], result["best"]
    bits = 16 if best["plan"]["fp8"] == "none" else 8
    shape = Shape(model["layers"], model["hidden"], model["heads"], (model.get("experts") or {}).get("count", 0))
    same_width = lambda row: (row.get("ffn") or str(model["ffn_hidden"])) == str(model["ffn_hidden"]) or model.get(
        "experts"
    )
    like = [
        row
        for row in runs.get((shape, machine.gpu, bits, FAMILIES[job.trainer]), ())
        if same_width(row) and job.sequence / 2 <= int(row["seq"]) <= job.sequence * 2
    ]
    if not like:
        return None
    rate_of = lambda row: rate(
        model, int(row["global_batch"]), int(row["seq"]), float(row["measured_iteration_s"]), int(row["gpus"])
    )
    record = max(like, key=rate_of)
    more = rate(model, job.batch, job.sequence, best["iteration_s"], gpus) / rate_of(record) - 1
    return (record, more) if more > ERRORS[class_of(model, machine, bits)] else None


def check_published(program, outcomes):
    """Plans above the best published run have to name it."""
    runs, models, compared, failed = published(), {}, 0, 0
    for outcome in outcomes:
        if outcome.result is None:
            continue
        name = outcome.job.model
        models[name] = models.get(name) or program.json("models", name)
        plan = outcome.result["best"]["plan"]
        gpus = plan["tensor"] * plan["context"] * plan["pipeline"] * plan["data"]
        shape = Shape(
            models[name]["layers"],
            models[name]["hidden"],
            models[name]["heads"],
            (models[name].get("experts") or {}).get("count", 0),
        )
        compared += any(key[0] == shape for key in runs)
        beaten = beaten_run(runs, models[name], outcome.job, outcome.result, gpus)
        if beaten is None:
            continue
        record, more = beaten
        said = program.run("plan", *outcome.job.options, "--threads", 1)
        if record["case"] not in said.stdout + said.stderr:
            failed += 1
            print(
                f"  {100 * more:.0f} % above {record['case']} ({record['measured_iteration_s']} s), which plan does not name\n"
                f"         {outcome.job.command()}"
            )
    print(
        f"economy: {compared} plans of models with published runs, {failed} above the best of their like without its name"
    )
    return failed


def check_better(program, outcomes):
    """tests/proofs/sweep.py on some of the drawn jobs: no restriction faster, no better hardware slower."""
    quick = [
        outcome.job
        for outcome in outcomes
        if outcome.result
        and outcome.result["search"]["seconds"] < SWEPT_WITHIN_S
        and not outcome.job.machine.startswith("h200-trivium")
    ]
    by_trainer = {job.trainer: job for job in reversed(quick)}
    jobs = list(by_trainer.values())[:SWEPT]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("".join(" ".join(job.options) + "\n" for job in jobs))
        listed.flush()
        done = subprocess.run(
            [sys.executable, str(ROOT / "tests/proofs/sweep.py"), program.path, listed.name],
            capture_output=True,
            text=True,
        )
    print("economy: " + (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1])
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode != 0


def check(program, outcomes):
    return check_published(program, outcomes) + check_better(program, outcomes)
