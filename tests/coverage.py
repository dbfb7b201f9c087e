#!/usr/bin/env python3
"""Lines run, by folder, of a report that gcovr wrote as JSON.

usage: coverage.py COVERAGE.json
"""

import collections
import json
import sys


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    lines, run = collections.Counter(), collections.Counter()
    for source in report["files"]:
        folder = "/".join(source["file"].split("/")[:-1][:2])
        for line in source["lines"]:
            if line.get("gcovr/noncode"):
                continue
            lines[folder] += 1
            run[folder] += line["count"] > 0
    if not lines:
        sys.exit(f"{sys.argv[1]}: no line was counted")
    width = max(map(len, lines))
    print(f"{'folder':{width}}  {'lines':>7}  {'run':>7}")
    for folder in sorted(lines):
        print(f"{folder:{width}}  {lines[folder]:7}  {100 * run[folder] / lines[folder]:6.1f}%")
    print(f"{'all':{width}}  {lines.total():7}  {100 * run.total() / lines.total():6.1f}%")


if __name__ == "__main__":
    main()
