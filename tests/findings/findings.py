#!/usr/bin/env python3
"""Do the acceptance lines of the report on planning hold?

findings.py TRIVIUM [--quick] [NAME...]

Somebody with a million GPU-hours to spend tried the planner and reported 19 findings, each with commands and with what
the program must do to be rid of it. Every finding but F3 (launch scripts, which tests/cli/capture has) is a function
here: it runs those commands and compares the figures. Prints a line a finding: held or NOT HELD, with the figures.
--quick: those of a few seconds each. NAME: F1, F7 and so on. Exit code 1 where one does not hold."""

import argparse
import sys
import tempfile

import answers  # noqa: F401  enters its findings, as the next two do
import files  # noqa: F401
import harness
import plans  # noqa: F401


def number_of(finding):
    return int("".join(letter for letter in finding.name if letter.isdigit()))


def judged(finding, trivium):
    """Whether the finding's lines hold, and the words of all of them, those that do not first."""
    checks = []
    try:
        checks.extend(finding.checks(trivium))
    except Exception as error:  # an answer without what the check looks for does not hold
        checks.append(harness.Check(False, f"{type(error).__name__}: {error}"))
    checks.sort(key=lambda check: bool(check.held))
    return all(check.held for check in checks), "; ".join(
        check.words if check.held else f"[{check.words}]" for check in checks
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trivium")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    chosen = [one for one in harness.ALL if not given.names or one.name in given.names]
    unknown = set(given.names) - {one.name for one in chosen}
    if unknown:
        parser.error(f"no finding {', '.join(sorted(unknown))}")
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        trivium = harness.Program(given.trivium, folder)
        for one in sorted(chosen, key=number_of):
            if given.quick and not one.quick:
                continue
            held, words = judged(one, trivium)
            broken += not held
            print(f"{one.name:4} {'held' if held else 'NOT HELD':8}  {one.title}: {words}", flush=True)
    if broken:
        print(f"{broken} do not hold; what fails stands in brackets")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
