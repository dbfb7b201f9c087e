#!/usr/bin/env python3
"""Metamorphic tests of `trivium plan`: what must not make a job faster, and what must not make it slower.

usage: sweep.py TRIVIUM [JOBS]

JOBS is a file with the options of a `trivium plan` on each line (# begins a comment); without it the twelve jobs of
jobs.txt. For every job the best plan is searched, and then
  - under each restriction of restrictions.txt: none may find a faster plan than the whole space's proved bound;
  - on the cluster with faster links, more memory and one node more: none may be slower;
  - by itself: `trivium simulate` must print the iteration that `trivium plan` promised.
A plan that is faster by less than the share that a search may leave (its bound) contradicts nothing; it is counted.
Exit code 1 where a contradiction was found."""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROUNDING = 1e-6  # of an iteration: figures are printed with so many digits
NO_PLAN = 4
PATIENCE_S = 600


def lines_of(path):
    """The lines of a file without comments and empty ones."""
    stripped = (line.split("#")[0].strip() for line in pathlib.Path(path).read_text().splitlines())
    return [line for line in stripped if line]


class CannotRun(Exception):
    """What the trainer of --for cannot run."""


class Sweep:
    def __init__(self, trivium, folder):
        self.trivium = trivium
        self.folder = pathlib.Path(folder)
        self.contradictions = 0
        self.within_gap = 0
        self.searches = 0

    def trivium_json(self, *arguments):
        """What a command prints as JSON; None where no plan fits."""
        done = subprocess.run([self.trivium, *arguments, "--json"], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode == NO_PLAN:
            return None
        if done.stderr.startswith("error: --for "):
            raise CannotRun(done.stderr.strip().removeprefix("error: "))
        if done.returncode != 0:
            sys.exit(f"{shlex.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def plan(self, job, *more):
        self.searches += 1
        found = self.trivium_json("plan", *job, *more)
        if found is None or not found["best"]:
            return None
        return found

    def contradict(self, text):
        self.contradictions += 1
        print(f"    CONTRADICTION: {text}", flush=True)

    def restrict(self, job, whole, restriction):
        option, _, assigned = restriction.partition(" ")
        field = assigned.partition("=")[0]
        if option == "--fix" and "--" + field.replace("_", "-") in job:
            print(f"    {restriction} left out: the job fixes it itself", flush=True)
            return
        try:
            found = self.plan(job, *shlex.split(restriction))
        except CannotRun as error:
            print(f"    {restriction} left out: {error}", flush=True)
            return
        if found is None:
            return
        best, bound = whole["best"]["iteration_s"], whole["search"]["bound_s"]
        seconds = found["best"]["iteration_s"]
        if seconds < bound * (1 - ROUNDING):
            self.contradict(f"{restriction}: {seconds:.6g} s, below the bound {bound:.6g} s of the whole space")
        elif seconds < best * (1 - ROUNDING):
            self.within_gap += 1

    def improve(self, job, whole):
        """Better hardware, of clusters that are named NAME:N."""
        at = job.index("--cluster") + 1
        name, _, count = job[at].partition(":")
        if not count.isdigit() or "+" in job[at]:
            return
        profile = self.trivium_json("profiles", name)
        if profile is None:
            return
        best = whole["best"]["iteration_s"]
        node = {"schema": "trivium.hardware/1", "base": name, "name": "better"}
        changes = {
            "a network twice as fast": {"network": self.twice(profile, "network")},
            "links in the node twice as fast": {"intra": self.twice(profile, "intra")},
            "a way to the host twice as fast": {"host_link": self.twice_text(profile.get("host_link"))},
            "twice the memory": {"device": self.roomier(profile["device"])},
        }
        for words, change in changes.items():
            if None in change.values():
                continue
            places = [f"/{name}/{part}" for name, value in change.items() if isinstance(value, dict) for part in value
                      if part != "base"]
            places += [f"/{name}" for name, value in change.items() if not isinstance(value, dict)]
            change = {**change, "sources": {place: "twice as good, for a test" for place in places}}
            path = self.folder / "better.json"
            path.write_text(json.dumps({"schema": "trivium.cluster/1", "name": "better",
                                        "groups": [{"node": {**node, **change}, "count": int(count)}]}))
            self.not_slower(job, at, str(path), best, words)
        self.not_slower(job, at, f"{name}:{int(count) + 1}", best, "one node more")

    def not_slower(self, job, at, cluster, best, words):
        found = self.plan([*job[:at], cluster, *job[at + 1:]])
        seconds = found["best"]["iteration_s"] if found else None
        gap = best * (1 - found["search"]["bound_s"] / found["search"]["best_s"]) if found else 0
        if seconds is None or seconds > (best + gap) * (1 + ROUNDING):
            self.contradict(f"{words}: {seconds} s instead of {best:.6g} s")

    @staticmethod
    def twice_text(text):
        if not text:
            return None
        number, _, unit = text.partition(" ")
        return f"{2 * float(number):g} {unit}"

    @classmethod
    def twice(cls, profile, link):
        if link not in profile:
            return None
        return {**profile[link], "bandwidth": cls.twice_text(profile[link]["bandwidth"])}

    @classmethod
    def roomier(cls, device):
        """The device with twice the memory and all of its other figures."""
        return {**device, "memory": cls.twice_text(device["memory"])}

    def simulate(self, whole):
        path = self.folder / "best.json"
        path.write_text(json.dumps(whole))
        simulated = self.trivium_json("simulate", str(path))["iteration_s"]
        promised = whole["best"]["iteration_s"]
        if abs(simulated - promised) > ROUNDING * promised:
            self.contradict(f"simulate prints {simulated:.6g} s where plan promised {promised:.6g} s")

    def sweep(self, line, restrictions):
        job = shlex.split(line)
        whole = self.plan(job)
        if whole is None:
            print(f"{line}\n    no plan fits", flush=True)
            return
        best = whole["best"]
        print(f"{line}\n    {best['iteration_s']:.6g} s, proved: {best['proved']}, "
              f"in {whole['search']['seconds']:.2f} s", flush=True)
        self.simulate(whole)
        for restriction in restrictions:
            self.restrict(job, whole, restriction)
        self.improve(job, whole)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    jobs = lines_of(sys.argv[2] if len(sys.argv) == 3 else HERE / "jobs.txt")
    restrictions = lines_of(HERE / "restrictions.txt")
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(sys.argv[1], folder)
        for line in jobs:
            sweep.sweep(line, restrictions)
    print(f"{len(jobs)} jobs, {len(restrictions)} restrictions, {sweep.searches} searches: "
          f"{sweep.contradictions} contradictions; {sweep.within_gap} plans are faster by less than a search may leave")
    sys.exit(1 if sweep.contradictions else 0)


if __name__ == "__main__":
    main()
