"""Finds the program and runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

from ._errors import HardwareError, error_of


def program() -> str:
    """The program that is run: $TRIVIUM_PROGRAM, else the one in this package, else the one on the path."""
    chosen = os.environ.get("TRIVIUM_PROGRAM")
    if chosen:
        return chosen
    own = Path(__file__).parent / "bin" / "trivium"
    found = str(own) if own.exists() else shutil.which("trivium")
    if found is None:
        raise HardwareError("no program trivium; install the wheel, or name one in TRIVIUM_PROGRAM", 5)
    return found


def run_text(arguments: Sequence[str]) -> str:
    """What the program writes on stdout. Errors: TriviumError by its exit code."""
    environment = dict(os.environ, TRIVIUM_NO_PROGRESS="1", NO_COLOR="1")
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise error_of(done.returncode, done.stderr, done.stdout)
    return done.stdout


def run_json(*arguments: str) -> Any:
    """What a command writes with --json, as it is."""
    return json.loads(run_text([*arguments, "--json"]))


def version() -> str:
    """Of the program: "0.2.0"."""
    return run_text(["--version"]).split()[1]


def main() -> None:
    """The program itself, for the command line of an environment."""
    os.execv(program(), ["trivium", *sys.argv[1:]])
