#!/usr/bin/env python3
"""Does `trivium trial` find the fastest of six plans with half of the measurements that trying all takes?

usage: trials.py TRIVIUM [--seeds N] [--steps N] [--rounds N] [--verbose]

For every seed six plans of one small model on this machine are drawn at random. All six are measured in turn, `rounds`
times, which is the truth; then `trivium trial` runs them its own way, with `trivium run` as the trainer. A seed is
passed where trial measured three plans or fewer and its answer is the fastest, or slower than it by less than the two
plans' own repetitions differ. Prints a row a seed; exit 1 where one is not passed. This machine must have nothing else
to do.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

MODEL = {"schema": "trivium.model/1", "name": "small", "layers": 4, "hidden": 128, "heads": 4, "vocab": 256,
         "max_sequence": 128}
PLANS = 6


def run(program, *arguments, check=True):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        sys.exit(f"trivium {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return done


def all_plans():
    """Options of every plan on one or two ranks that the model allows."""
    for tensor, pipeline, data in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2)):
        for micro_batch in (1, 2, 4):
            for recompute in ("none", "selective", "full"):
                for zero in (0, 3) if data == 2 else (0,):
                    yield {"tensor": tensor, "pipeline": pipeline, "data": data, "micro-batch": micro_batch,
                           "recompute": recompute, "zero-stage": zero}


def write_plan(program, options, name):
    words = ["plan", "--model", "model.json", "--cluster", "this-machine", "--sequence", "64", "--global-batch", "16",
             "-o", name]
    for key, value in options.items():
        words += [f"--{key}", str(value)]
    return run(program, *words, check=False).returncode == 0


def seconds_of(program, plan, steps):
    run(program, "run", plan, "--corpus", "text.txt", "--steps", str(steps), "--record", "record.json", "--force")
    record = json.loads(pathlib.Path("record.json").read_text(encoding="utf-8"))
    return statistics.median(step["seconds"] for step in record["steps"][steps // 4:])


def try_seed(program, seed, options):
    chosen = list(all_plans())
    random.Random(seed).shuffle(chosen)
    names = []
    for plan in chosen:
        name = f"{seed}-{len(names)}.json"
        if write_plan(program, plan, name):
            names.append(name)
        if len(names) == PLANS:
            break
    else:
        sys.exit(f"seed {seed}: of all plans only {len(names)} run")
    times = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            times[name].append(seconds_of(program, name, options.steps))
    truth = {name: statistics.median(values) for name, values in times.items()}
    launch = f"{program} run {{plan}} --corpus text.txt --steps {options.steps} --record {{record}}"
    answer = json.loads(run(program, "trial", *names, "--launch", launch, "--folder", f"trials-{seed}", "--go",
                            "--json").stdout)
    measured = sum(1 for plan in answer["trials"] if plan.get("measured_s") is not None)
    found = answer["best"]
    best = min(truth, key=truth.get)
    noise = max((max(times[n]) - min(times[n])) / truth[n] for n in (best, found))
    slower = truth[found] / truth[best] - 1
    passed = measured <= PLANS // 2 and slower <= (noise if found != best else 0)
    spread = max(truth.values()) / min(truth.values()) - 1
    print(f"{seed:4}  {1e3 * truth[best]:8.2f} ms  {100 * spread:7.1f} %  {measured:8}  {100 * slower:7.1f} %  "
          f"{100 * noise:6.1f} %  {'yes' if passed else 'no'}", flush=True)
    if options.verbose:
        for plan in answer["trials"]:
            figures = [plan["predicted_s"], plan.get("refitted_s"), plan.get("measured_s"), truth[plan["file"]]]
            print("      " + "  ".join("        -" if one is None else f"{1e3 * one:6.2f} ms" for one in figures) +
                  f"  {plan['fastest_probability']:5.3f}  {plan['file']}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--verbose", action="store_true",
                        help="of every plan: predicted, predicted after the trials, measured by them, measured alone, and "
                             "the probability that it is the fastest")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    with tempfile.TemporaryDirectory(prefix="trivium-trials-") as folder:
        os.chdir(folder)
        os.environ.update(XDG_DATA_HOME=folder + "/data", TRIVIUM_NO_PROGRESS="1")
        pathlib.Path("model.json").write_text(json.dumps(MODEL), encoding="utf-8")
        pathlib.Path("text.txt").write_text("in the beginning was the word\n" * 4000, encoding="utf-8")
        run(program, "profile")
        print("seed      fastest   slowest +  measured   answer +    noise  passed", flush=True)
        passed = [try_seed(program, seed, options) for seed in range(1, options.seeds + 1)]
    print(f"{sum(passed)} of {len(passed)} seeds passed: the fastest of {PLANS} plans with {PLANS // 2} measurements "
          "at most")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
