#!/usr/bin/env python3
"""Feeds the program with damaged files, senseless options, signals and full disks, and prints how it took them.

Exit code 1 where anything is wrong: a signal, a hang, memory beyond the limit, a library's text, an error without its
file, data that were lost. What is wrong is told line by line in FOLDER/faults.txt.
"""
import argparse
import os
import random
import sys
import tempfile

import incidents
import options
import readers
from judge import Table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="trivium")
    parser.add_argument("--inputs", type=int, default=200, help="mutations for each reader")
    parser.add_argument("--share", type=float, default=0.2, help="of the combinations of option and value")
    parser.add_argument("--trials", type=int, default=16, help="signals, and sizes of full disks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a reader, or: options, incidents")
    parser.add_argument("--folder", help="where to work; a temporary one that is kept where something was wrong")
    chosen = parser.parse_args()
    program = os.path.abspath(chosen.program)
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    place = chosen.folder or tempfile.mkdtemp(prefix="trivium-hostile-")
    os.makedirs(place, exist_ok=True)
    os.environ["XDG_DATA_HOME"] = os.path.join(place, "data")
    os.environ["NO_COLOR"] = "1"
    source = random.Random(chosen.seed)
    readers.make_seeds(program, place, tree)
    only = chosen.only or []
    with open(os.path.join(place, "faults.txt"), "w", errors="replace") as kept:
        table = Table(kept)
        if not only or any(name in readers.READERS for name in only):
            readers.attack(program, place, table, source, chosen.inputs, only)
        if not only or "options" in only:
            options.attack(program, place, table, source, chosen.share)
        if not only or "incidents" in only:
            incidents.attack(program, place, table, chosen.trials)
    print(table.text())
    if table.faults() == 0:
        return 0
    print(f"what is wrong: {place}/faults.txt (seed {chosen.seed})", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
