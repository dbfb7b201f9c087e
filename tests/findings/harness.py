"""What checks of findings share: the program under test, and how a check says what it found."""

import dataclasses
import json
import os
import pathlib
import pty
import shlex
import subprocess
import termios

PATIENCE_S = 900
ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Check:
    """One acceptance line: whether it holds, and the figures that say so."""

    held: bool
    words: str


@dataclasses.dataclass(frozen=True)
class Finding:
    """`checks` yields Check; `quick`: it takes a few seconds."""

    name: str
    title: str
    checks: object
    quick: bool


ALL = []


def finding(name, title, quick=True):
    """Enters a function of the program that yields checks."""

    def enter(checks):
        ALL.append(Finding(name, title, checks, quick))
        return checks

    return enter


class Program:
    """trivium in a folder of its own. Commands are text, split as a shell splits them; equal ones run once."""

    def __init__(self, path, folder):
        self.path, self.folder = str(pathlib.Path(path).resolve()), pathlib.Path(folder)
        self.done = {}

    def run(self, command):
        if command not in self.done:
            self.done[command] = subprocess.run(
                [self.path, *shlex.split(command)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
            )
        return self.done[command]

    def text(self, command):
        """Standard output of a command that must succeed."""
        done = self.run(command)
        if done.returncode:
            raise AssertionError(f"trivium {command}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def json(self, command):
        return json.loads(self.text(command + " --json"))

    def best(self, command):
        return self.json(command)["best"]

    def refusal(self, command):
        """The last line of standard error; empty where the command succeeds."""
        done = self.run(command)
        return done.stderr.strip().splitlines()[-1] if done.returncode else ""

    def on_terminal(self, command, columns):
        """Lines of standard output that is a terminal of so many columns."""
        terminal, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, columns))
        with subprocess.Popen(
            [self.path, *shlex.split(command)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": str(columns)},
        ) as child:
            os.close(theirs)
            text = b""
            try:
                while read := os.read(terminal, 65536):
                    text += read
            except OSError:  # how Linux says that nobody writes to a terminal any more
                pass
            finally:
                os.close(terminal)
        if child.returncode:
            raise AssertionError(f"trivium {command}: exit {child.returncode}")
        return text.decode().splitlines()

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def read(self, name):
        return (self.folder / name).read_text(encoding="utf-8")


def split_words(plan):
    """A plan's split as the report writes it: "TP8 CP2 PP4x5 DP4 EP16", without ones."""
    parts = [f"TP{plan['tensor']}"]
    parts += [f"CP{plan['context']}"] * (plan["context"] > 1)
    virtual = f"x{plan['virtual_stages']}" if plan["virtual_stages"] > 1 else ""
    parts += [f"PP{plan['pipeline']}{virtual}"] * (plan["pipeline"] > 1)
    parts.append(f"DP{plan['data']}")
    parts += [f"EP{plan['expert']}"] * (plan["expert"] > 1)
    return " ".join(parts)


def seconds(value):
    return f"{value:.3g} s"
