"""Trains jobs on ranks of this machine, with and without a fault, and counts what `trivium explain --trace` says of them.

benchmark.py TRIVIUM FOLDER [--only WORD] [--clean N] [--explain-only]

Prints a line for every job, a confusion matrix of causes and four shares: right rank, right cause, right size (within
30 %), false alarms among clean runs. FOLDER keeps the traces; a job whose truth.json is there is not trained again.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time

import job

HERE = os.path.dirname(os.path.abspath(__file__))
# split, fault, rank (-1: all), further options
FAULTY = [
    ("ddp", "tokens", 1, []), ("ddp", "slow_clock", 0, []), ("ddp", "checkpoint", 0, []), ("ddp", "host", 1, []),
    ("ddp", "unfused", -1, []), ("ddp", "loader", -1, []), ("ddp", "metrics", -1, []), ("ddp", "loader", 0, []),
    ("fsdp2", "other_work", 1, []), ("fsdp2", "gc", 1, []), ("fsdp2", "evaluation", -1, []), ("fsdp2", "recompute", -1, []),
    ("fsdp2", "tokens", 0, []), ("fsdp2", "loader", 1, []),
    ("tp", "other_work", 1, []), ("tp", "loader", 0, []), ("sp", "other_work", 0, []), ("sp", "slow_clock", 1, []),
    ("pp", "uneven", 0, []), ("pp", "loader", 0, []), ("pp", "other_work", 1, []), ("pp", "slow_clock", 1, []),
    ("gpipe", "loader", 1, []), ("pp", "bubble", -1, []), ("ep", "experts", 1, []), ("ep", "loader", 1, []),
    ("fsdp2_tp", "other_work", 2, []), ("pp_dp", "slow_clock", 3, []),
]
CLEAN = ["ddp", "fsdp2", "tp", "pp", "ep", "fsdp2_tp", "sp", "interleaved", "fsdp1", "pp_dp"]
CAUSE = {"gc": "garbage_collection", "recompute": "recomputation", "unfused": "unfused_attention",
         "metrics": "small_collectives", "uneven": "stage_imbalance"}
# Of these a clean run has none. What is left over, as waits in turn or a host that is slow on all ranks, is no alarm.
ALARMS = {"loader", "garbage_collection", "host", "tokens", "experts", "other_work", "slow_clock", "checkpoint",
          "evaluation", "recomputation", "unfused_attention", "small_collectives", "stage_imbalance"}
SIZED = {"loader", "gc", "other_work", "checkpoint", "host", "slow_clock"}


def model_file(folder, split):
    with open(os.path.join(HERE, "llama-10m.json"), encoding="utf-8") as file:
        model = json.load(file)
    model |= {"name": "llama-5m", "hidden": 256, "head_dim": 32, "ffn_hidden": 704, "vocab": 4096, "max_sequence": 128}
    if split == "ep":
        model |= {"name": "moe-5m", "experts": {"count": 4, "top_k": 1, "every": 1, "dropless": True, "imbalance": 2}}
    path = os.path.join(folder, "model-ep.json" if split == "ep" else "model.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(model, file)
    return path


def cluster_file(folder, ranks):
    with open(os.path.join(HERE, "../../hardware_profiles/generic-cpu.json"), encoding="utf-8") as file:
        text = file.read()
    path = os.path.join(folder, f"cores{ranks}.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('"devices": "detect"', f'"devices": {ranks}').replace('"name": "generic-cpu"', '"name": "cores"'))
    return path


def explained(trivium, folder, out, split):
    """What explain says, or the line it refuses with."""
    ranks = job.RANKS[split]
    traces = [os.path.join(out, f"rank{rank}.json.gz") for rank in range(ranks)]
    words = [trivium, "explain", "auto", "--model", model_file(folder, split), "--cluster", cluster_file(folder, ranks) + ":1",
             "--json", "--trace", *traces]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


def train(folder, name, split, fault, rank, more):
    out = os.path.join(folder, name)
    if os.path.exists(os.path.join(out, "truth.json")):
        return out
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("split")
    job.add_options(parser)
    options = parser.parse_args([out, split, "--fault", fault, "--rank", str(rank), *more])
    child = os.fork()
    if child == 0:
        os._exit(0 if job.run(options) else 1)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"training {name} failed")
    return out


def first_alarm(told):
    for finding in told["findings"]:
        if finding["cause"] in ALARMS and finding["confidence"] >= 0.5:
            return finding
    return None


def cost_of(out, fault):
    """Seconds of an iteration that a fault took of its rank, by the job's own clock."""
    with open(os.path.join(out, "truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    cost = max(each["stopped_s"] if fault == "slow_clock" else each["fault_s"] for each in truth["ranks"])
    if cost <= 0:
        sys.exit(f"{out}: the fault cost nothing, so that there is nothing to find")
    return cost


def judge(told, out, fault, rank):
    """Right rank, cause and size (None: not asked), and the cause that is told."""
    if isinstance(told, str):
        return False, False, None, "refused"
    if fault == "bubble":
        told_causes = [finding["cause"] for finding in told["findings"]]
        found = "bubble" in told_causes
        return None, found, None, "bubble" if found else "none"
    true = cost_of(out, fault) if fault in SIZED else 0
    alarm = first_alarm(told)
    if alarm is None:
        return (None if rank < 0 else False), False, None, "none"
    right_rank = None if rank < 0 else alarm["rank"] == rank
    right_cause = alarm["cause"] == CAUSE.get(fault, fault)
    size = None
    if right_cause and fault in SIZED:
        size = abs(alarm["seconds"] - true) <= 0.3 * true
    return right_rank, right_cause, size, alarm["cause"]


def share(values):
    asked = [value for value in values if value is not None]
    return f"{sum(asked)} of {len(asked)}" + (f" ({100 * sum(asked) / len(asked):.0f} %)" if asked else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trivium")
    parser.add_argument("folder")
    parser.add_argument("--only", default="")
    parser.add_argument("--clean", type=int, default=len(CLEAN))
    parser.add_argument("--explain-only", action="store_true", help="only jobs that were trained before")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    jobs = [(split, "none", -1, []) for split in CLEAN[:options.clean]] + FAULTY
    ranks, causes, sizes, alarms, matrix, matched = [], [], [], [], collections.Counter(), {}
    for split, fault, rank, more in jobs:
        name = f"{split}-{fault}" + ("" if rank < 0 else str(rank))
        out = os.path.join(options.folder, name)
        trained = os.path.exists(os.path.join(out, "truth.json"))
        if options.only not in name or (options.explain_only and not trained):
            continue
        out = train(options.folder, name, split, fault, rank, more)
        begin = time.perf_counter()
        told = explained(options.trivium, options.folder, out, split)
        took = time.perf_counter() - begin
        share_matched = None if isinstance(told, str) else told["matched_share"]
        if fault == "none":
            matched[split] = share_matched
            alarm = None if isinstance(told, str) else first_alarm(told)
            alarms.append(alarm is not None)
            said = told if isinstance(told, str) else alarm["what"] if alarm else "nothing"
            matrix["none", alarm["cause"] if alarm else "none"] += 1
            verdict = "FALSE ALARM" if alarm else "clean"
        else:
            right_rank, right_cause, size, cause = judge(told, out, fault, rank)
            ranks.append(right_rank), causes.append(right_cause), sizes.append(size)
            matrix[CAUSE.get(fault, fault), cause] += 1
            verdict = f"rank {right_rank} cause {right_cause} size {size}"
            first = None if isinstance(told, str) else first_alarm(told)
            said = told if isinstance(told, str) else first["what"] if first else "nothing"
        text = "-" if share_matched is None else f"{100 * share_matched:.1f} %"
        print(f"{name:24} {verdict:36} matched {text:8} {took:.1f} s  {re.sub(chr(10), ' ', said)[:110]}", flush=True)
    print("\ninserted (row) and told (cause): count")
    for (fault, cause), count in sorted(matrix.items()):
        print(f"  {fault:22} {cause:22} {count}")
    print(f"\nright rank  {share(ranks)}\nright cause {share(causes)}\nright size  {share(sizes)}\nfalse alarms {share(alarms)}")
    print("matched without a fault: " + ", ".join(f"{s} {'refused' if v is None else f'{100 * v:.1f} %'}" for s, v in matched.items()))


if __name__ == "__main__":
    main()
