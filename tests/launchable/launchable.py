#!/usr/bin/env python3
"""Do the best plans of drawn jobs start in the trainers that they are for?

launchable.py TRIVIUM [--jobs N] [--all] [--seed N] [--keep FOLDER] [--without-slurm] [--without-economy] [--workers N]

Plans jobs drawn from the shipped models, machines and trainers until N (300; --all: 2,000) have a plan, exports each,
and checks the file by the trainers' own rules (checker.py), by a real Slurm (slurm.py) and, for what is faster than
published runs or slower than with less, by economy.py. Prints a table by trainer and by machine, and for every kind of
failure how often it came and the command that shows it. Exit code 1 where anything failed. --keep: files and plans stay
there."""

import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import checker
import economy
import slurm
from drawn import TRAINERS, draw
from findings import Finding
from hardware import MACHINES, Cluster

NO_PLAN = 4
USAGE = 2
PATIENCE_S = 180
MOST_DRAWN = 8  # jobs drawn for one that has a plan


class Program:
    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())

    def run(self, *words):
        return subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S)

    def json(self, *words):
        return json.loads(self.run(*words, "--json").stdout)


def failure_of(words, done):
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return Finding(words, reason)


class Outcome:
    """What came of one job: `planned` is false where no plan fits, which is no failure of ours."""

    def __init__(self, job):
        self.job, self.planned, self.findings, self.result, self.script = job, False, [], None, None


def try_job(program, job, folder):
    outcome = Outcome(job)
    plan, script = folder / "plan.json", folder / "launch"
    folder.mkdir(parents=True)
    try:
        done = program.run("plan", *job.options, "--threads", 1, "--json", "-o", plan)
    except subprocess.TimeoutExpired:
        outcome.planned, outcome.findings = True, [Finding("plan-time", f"no plan in {PATIENCE_S} s")]
        return outcome
    if done.returncode == NO_PLAN:
        return outcome
    if done.returncode == USAGE and done.stderr.startswith(f"error: --for {job.trainer}: "):
        return outcome  # refused by name: the trainer does not run what the job asks
    outcome.planned = True
    if done.returncode != 0:
        outcome.findings = [failure_of("plan-fails", done)]
        return outcome
    outcome.result = json.loads(done.stdout)
    (folder / "result.json").write_text(done.stdout)
    done = program.run("export", plan, "--to", job.trainer, "-o", script)
    if done.returncode != 0:
        outcome.findings = [failure_of("export-fails", done)]
        return outcome
    outcome.script = script
    best = outcome.result["best"]["plan"]
    try:
        outcome.findings = list(checker.check_file(script.read_text(), job.trainer, job.cluster, best))
    except Exception as error:  # what the checker cannot read is no file that starts
        outcome.findings = [Finding("checker-breaks", f"{type(error).__name__}: {error}")]
    return outcome


def try_jobs(program, jobs, count, folder, workers):
    """Outcomes in the order of drawing, until `count` jobs have a plan."""
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        numbered = itertools.islice(enumerate(jobs), count * MOST_DRAWN)
        waiting = collections.deque()
        while sum(outcome.planned for outcome in outcomes) < count:
            for number, job in itertools.islice(numbered, 2 * workers - len(waiting)):
                waiting.append(pool.submit(try_job, program, job, folder / f"{number:04}"))
            if not waiting:
                break
            outcomes.append(waiting.popleft().result())
            if len(outcomes) % 50 == 0:
                print(
                    f"  {sum(outcome.planned for outcome in outcomes)} of {len(outcomes)} drawn jobs have a plan",
                    file=sys.stderr,
                    flush=True,
                )
        for late in waiting:
            late.cancel()
    return outcomes


def try_slurm(outcomes):
    """Every script with lines of #SBATCH on hosts as its machine has them. Returns how many were tried."""
    hosts = collections.Counter()
    scripts = [outcome for outcome in outcomes if outcome.script and "#SBATCH" in outcome.script.read_text()]
    for outcome in scripts:
        cluster = Cluster.of(outcome.job.cluster)
        hosts[cluster.name] = max(hosts[cluster.name], cluster.hosts)
    if not scripts:
        return 0
    with slurm.Slurm(hosts) as controller:
        for outcome in scripts:
            refusal = controller.refusal(outcome.script, outcome.job.machine)
            if refusal:
                outcome.findings.append(Finding("sbatch", refusal))
    return len(scripts)


def table(title, rows):
    widths = [max(len(str(row[at])) for row in rows) for at in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        print(
            "  "
            + "  ".join(
                str(cell).ljust(width) if at == 0 else str(cell).rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths))
            )
        )


def print_outcomes(outcomes):
    planned = [outcome for outcome in outcomes if outcome.planned]
    good = [outcome for outcome in planned if not outcome.findings]
    rows = [("trainer", "plans", "could start", "drawn without a plan")]
    for trainer in TRAINERS:
        of = lambda some: sum(outcome.job.trainer == trainer for outcome in some)
        rows.append((trainer, of(planned), of(good), of(outcomes) - of(planned)))
    table("by trainer", rows)
    rows = [("machine", "plans", "could start")]
    for machine in sorted({outcome.job.machine for outcome in planned}):
        of = lambda some: sum(outcome.job.machine == machine for outcome in some)
        rows.append((machine, of(planned), of(good)))
    table("by machine", rows)
    print_reasons(planned)
    print(
        f"\n{len(good)} of {len(planned)} plans could start as exported; "
        f"{len(outcomes) - len(planned)} more drawn jobs have no plan, or ask what their trainer does not run"
    )
    return len(planned) - len(good)


def print_reasons(planned):
    reasons = collections.defaultdict(list)
    for outcome in planned:
        for rule in dict.fromkeys(finding.rule for finding in outcome.findings):
            reasons[rule].append(outcome)
    if reasons:
        print("\nreasons, each with the shortest command that shows it")
    for rule, shown in sorted(reasons.items(), key=lambda item: -len(item[1])):
        by_trainer = collections.Counter(outcome.job.trainer for outcome in shown)
        shortest = min(shown, key=lambda outcome: len(outcome.job.command()))
        text = next(finding.text for finding in shortest.findings if finding.rule == rule)
        counts = ", ".join(f"{name} {count}" for name, count in sorted(by_trainer.items()))
        print(f"  {len(shown):4} x {rule} ({counts})\n" f"         {text}\n         {shortest.job.command()}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trivium")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--without-slurm", action="store_true")
    parser.add_argument("--without-economy", action="store_true")
    return parser.parse_args()


def main():
    given = arguments()
    count = 2000 if given.all else given.jobs
    program = Program(given.trivium)
    models, profiles = program.json("models")["models"], program.json("profiles")["profiles"]
    unknown = sorted({profile["name"] for profile in profiles} - set(MACHINES) - {"generic-cpu"})
    failed = len(unknown)
    for name in unknown:
        print(f"{name}: hardware.py does not know this machine")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or pathlib.Path(temporary)
        outcomes = try_jobs(program, draw(models, profiles, given.seed), count, folder, given.workers)
        if given.without_slurm:
            print("Slurm: left out, as --without-slurm asks")
        elif slurm.missing_programs():
            print(
                f"Slurm: FAILED, no {' and '.join(slurm.missing_programs())} here; install slurmctld and slurm-client, "
                "or leave it out, --without-slurm"
            )
            failed += 1
        else:
            print(f"Slurm: sbatch --test-only tried {try_slurm(outcomes)} scripts")
        if given.without_economy:
            print("economy: left out, as --without-economy asks")
        else:
            failed += economy.check(program, outcomes, given.seed, given.all, given.workers)
        failed += print_outcomes(outcomes)
    planned = sum(outcome.planned for outcome in outcomes)
    enough = planned >= count
    if not enough:
        print(f"only {planned} of {count} plans were found among {len(outcomes)} jobs")
    sys.exit(1 if failed or not enough else 0)


if __name__ == "__main__":
    main()
