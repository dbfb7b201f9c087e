#!/usr/bin/env python3
"""Feeds the program with damaged files, senseless options, signals, full disks and other users, and prints how it took them.

Exit code 1 where anything is wrong: a signal, a hang, memory beyond the limit, a library's text, an error without its
file, data that were lost. What is wrong is told line by line in FOLDER/faults.txt, and FOLDER/kept holds the files. A case
depends on the seed and its own name alone, whatever else is run and in which order.
"""
import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import incidents
import options
import readers
import strangers
from judge import Table

CASES = []  # pairs of a row of the table and what makes one case of it: (kind, arguments...)
CHOSEN = None


def all_cases(chosen):
    wanted = lambda name: not chosen.only or name in chosen.only
    cases = []
    for name, reader in readers.READERS.items():
        if wanted(name) or wanted("readers"):
            cases += [(name, ("mutation", name, number)) for number in range(chosen.inputs)]
            cases += [(name, ("trap", name, which)) for which in readers.TRAPS if reader.traps]
    for command in options.BEGIN:
        row = "options of " + command
        if wanted(row) or wanted("options"):
            found = options.options_of(chosen.program, command)
            every = [(row, ("option", command, option, number)) for option in found for number in range(len(options.VALUES))]
            source = random.Random(f"{chosen.seed} {row}")
            cases += [case for case in every if source.random() < chosen.share]
            cases += [(row, ("pair", command, number)) for number in range(chosen.pairs if len(found) > 1 else 0)]
    random.Random(chosen.seed).shuffle(cases)  # slow ones lie apart
    return cases


def stamp(folder):
    """What changes when a file below the folder does."""
    found = []
    for parent, _, files in os.walk(folder):
        for file in files:
            status = os.stat(os.path.join(parent, file))
            found.append((parent, file, status.st_ino, status.st_size, status.st_mtime_ns))
    return hash(tuple(sorted(found)))


def place_of_this_process():
    """A folder with seeds of its own, made when it is first asked for."""
    place = os.path.join(CHOSEN.folder, f"worker-{os.getpid()}")
    if not os.path.isdir(place):
        os.makedirs(place)
        shutil.copytree(os.path.join(CHOSEN.folder, "seeds"), os.path.join(place, "seeds"))
        os.environ["XDG_DATA_HOME"] = os.path.join(place, "data")
        os.environ["HOME"] = place
    return place


def perform(number):
    """Runs one case. Returns its row, outcome and words."""
    row, (kind, name, *rest) = CASES[number]
    place = place_of_this_process()
    source = random.Random(f"{CHOSEN.seed} {kind} {name} {rest}")
    seeds = os.path.join(place, "seeds")
    before = stamp(seeds)
    if kind == "mutation":
        outcome, data = readers.mutation(CHOSEN.program, place, name, source)
        what = f"mutation {rest[0]}"
        if outcome.faults:
            kept = os.path.join(CHOSEN.folder, "kept", f"{name}-{rest[0]}".replace(" ", "-").replace("/", "-"))
            with open(kept, "wb") as file:
                file.write(data)
    elif kind == "trap":
        outcome, what = readers.trap(CHOSEN.program, place, name, rest[0], os.path.join(CHOSEN.folder, "traps")), rest[0]
    elif kind == "option":
        outcome, what = options.one(CHOSEN.program, place, name, *rest, source)
    else:
        outcome, what = options.pair(CHOSEN.program, place, name, options.options_of(CHOSEN.program, name), source)
    if stamp(seeds) != before:
        outcome.faults.append("lost")
        shutil.rmtree(seeds)
        shutil.copytree(os.path.join(CHOSEN.folder, "seeds"), seeds)
    outcome.out = b""
    return row, outcome, what


def main():
    global CASES, CHOSEN
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="trivium")
    parser.add_argument("--inputs", type=int, default=400, help="mutations for each reader")
    parser.add_argument("--share", type=float, default=0.15, help="of the combinations of option and value")
    parser.add_argument("--pairs", type=int, default=60, help="of options at once, for each command")
    parser.add_argument("--trials", type=int, default=16, help="signals, and sizes of full disks")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a row of the table, or: readers, options, incidents, strangers")
    parser.add_argument("--folder", help="where to work; a temporary one that is kept where something was wrong")
    CHOSEN = parser.parse_args()
    CHOSEN.program = os.path.abspath(CHOSEN.program)
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    temporary = CHOSEN.folder is None
    CHOSEN.folder = os.path.abspath(CHOSEN.folder or tempfile.mkdtemp(prefix="trivium-hostile-"))
    for name in ["kept", "traps"]:
        os.makedirs(os.path.join(CHOSEN.folder, name))
    os.environ.update({"XDG_DATA_HOME": os.path.join(CHOSEN.folder, "data"), "NO_COLOR": "1", "TRIVIUM_NO_PROGRESS": "1"})
    # Shells ignore it for what runs in the background, nohup the other, and what is started here inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    begin = time.monotonic()
    readers.make_seeds(CHOSEN.program, CHOSEN.folder, tree)
    readers.make_traps(os.path.join(CHOSEN.folder, "traps"))
    CASES = all_cases(CHOSEN)
    with open(os.path.join(CHOSEN.folder, "faults.txt"), "w", errors="replace") as kept:
        table = Table(kept)
        for row in dict.fromkeys(row for row in [*readers.READERS, *("options of " + name for name in options.BEGIN)]):
            table.expect(row, sum(case[0] == row for case in CASES))
        with multiprocessing.get_context("fork").Pool(CHOSEN.jobs) as pool:
            for done, (row, outcome, what) in enumerate(pool.imap_unordered(perform, range(len(CASES)), 8), 1):
                table.add(row, outcome, what)
                if done % 2000 == 0:
                    print(f"{done} of {len(CASES)} cases, {table.faults()} findings, {time.monotonic() - begin:.0f} s",
                          file=sys.stderr, flush=True)
        if not CHOSEN.only or "incidents" in CHOSEN.only:
            incidents.attack(CHOSEN.program, CHOSEN.folder, table, CHOSEN.trials)
        if not CHOSEN.only or "strangers" in CHOSEN.only:
            strangers.attack(CHOSEN.program, CHOSEN.folder, table)
    print(table.text())
    print(f"{time.monotonic() - begin:.0f} s, {CHOSEN.jobs} at a time, seed {CHOSEN.seed}")
    if table.faults() == 0:
        if temporary:
            shutil.rmtree(CHOSEN.folder)
        return 0
    print(f"what is wrong: {CHOSEN.folder}/faults.txt", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
