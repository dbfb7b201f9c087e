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
    "replan": ["seeds/run.json"], "report": JOB + ["-o", "page.html"], "sample": ["--checkpoint", "seeds/ck", "--prompt",
                                                                                  "In", "--tokens", "2"],
    "tokenize": ["seeds/text.txt", "-o", "out.bin"], "checkpoint inspect": ["seeds/ck"],
    "checkpoint convert": ["seeds/ck", "out.safetensors"], "export": JOB + ["--to", "megatron"],
    "import": ["seeds/launch.sh", "--cluster", "dgx-a100-80gb:2"], "validate": ["seeds/plan.json", "seeds/run.json"],
    "calibrate": ["seeds/run.json", "-o", "out.json"], "models": [], "profiles": [], "doctor": [],
    "completion": ["bash"],
}
LEFT_OUT = {"--help", "--threads", "--gpus"}


def options_of(program, command):
    help_text = subprocess.run([program, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"^\s+(?:-\w,)?(--[a-z][\w-]*)", help_text, re.M)) - LEFT_OUT)


def attack(program, place, table, random, share):
    for command, begin in BEGIN.items():
        for option in options_of(program, command):
            for value in VALUES:
                if random.random() >= share:
                    continue
                words = [program, *command.split(), *begin, option]
                words += [] if value == "" and random.random() < 0.5 else [value.encode("utf-8", "surrogateescape")]
                outcome = run(words, place)
                judge(outcome)
                # A search may take its time; whoever asks for a billion devices as well.
                if outcome.code == 0 and not outcome.hung and "slow" in outcome.faults:
                    outcome.faults.remove("slow")
                table.add("options of " + command, outcome, f"{option} {value!r}")
