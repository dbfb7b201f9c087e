"""Every option of every command, with values that nobody means."""
import re
import subprocess

from judge import judge, run
from readers import JOB

VALUES = ["", "0", "-1", "1", "3", "nan", "inf", "-inf", "1e308", "1e-320", "99999999999999999999", "0.5", "x", "true",
          "1 ns", "1 TiB", "-5 GiB", "nothing.json", ".", "/dev/full", "a\nb", "\x1b[31m", "M\udcfcller", "x" * 3000,
          "1,2,3", "a=b", "--json", "../..", "0=2", "%s%n"]

BEGIN = {
    "plan": JOB[:6], "simulate": JOB, "explain": JOB, "program": JOB, "scale": JOB[:6],
    "compare": ["seeds/plan.json", "seeds/plan.json"], "run": JOB + ["--corpus", "seeds/text.txt", "--steps", "1"],
    "replan": ["seeds/run.json"], "report": JOB + ["-o", "page.html"],
    "sample": ["--checkpoint", "seeds/ck", "--prompt", "In", "--tokens", "2"],
    "tokenize": ["seeds/text.txt", "-o", "out.bin"], "checkpoint inspect": ["seeds/ck"],
    "checkpoint convert": ["seeds/ck", "out.safetensors"], "export": JOB + ["--to", "megatron"],
    "import": ["seeds/launch.sh", "--cluster", "dgx-a100-80gb:2"], "validate": ["seeds/plan-run.json", "seeds/run.json"],
    "calibrate": ["seeds/run.json", "-o", "out.json"], "profile": ["--quick", "-o", "out.json"], "models": [],
    "profiles": [], "doctor": [], "completion": ["bash"],
}
# Searches, trainings and measurements take the time they take, and answer Ctrl-C. So does what simulates as often as is asked.
LONG = {"plan", "explain", "scale", "run", "sample", "profile", "calibrate", "simulate"}
PATIENCE = 4  # seconds to Ctrl-C


def options_of(program, command):
    help_text = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"^\s+(?:-\w,)?(--[a-z][\w-]*)", help_text, re.M)) - {"--help"})


def _attack(program, place, command, words):
    encoded = [word.encode("utf-8", "surrogateescape") for word in words]
    outcome = run([program, *command.split(), *BEGIN[command], *encoded], place, interrupt_after=PATIENCE)
    # 1: an output that cannot be written, and a gate that was told to fail.
    judge(outcome, may_take_its_time=command in LONG)
    return outcome, " ".join(repr(word) if len(word) < 100 else repr(word[:20]) + "..." for word in words)


def one(program, place, command, option, number, random):
    value = VALUES[number]
    alone = value == "" and random.random() < 0.5
    return _attack(program, place, command, [option] if alone else [option, value])


def pair(program, place, command, options, random):
    """Two or three options at once."""
    words = []
    for option in random.sample(options, min(len(options), random.choice([2, 3]))):
        words += [option] if random.random() < 0.3 else [option, random.choice(VALUES)]
    return _attack(program, place, command, words)
