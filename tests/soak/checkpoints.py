#!/usr/bin/env python3
"""Trainings that meet one fault after the other; their losses must be those of a training that was left alone.

usage: checkpoints.py TRIVIUM [FAULTS] [TRAININGS] [SEED]

A training of STEPS steps keeps checkpoints. While it has not reached its end it is started again with --resume, and
most starts meet a fault, drawn at random: the process is killed, the disk is full, one call that writes, flushes,
renames or closes fails (libtrivium_faults.so next to TRIVIUM, where it was built), a file of the newest checkpoint is
cut short, or a second training wants the same folder. Every step that is printed must have the loss of the calm
training, bit by bit, and no fault may cost the last good checkpoint.
"""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STEPS = 24
JOB = ["run", "--model", "gpt-tiny", "--cluster", "this-machine", "--data", "2", "--zero-stage", "1", "--global-batch", "4",
       "--micro-batch", "1", "--sequence", "32", "--corpus", "text.txt", "--timeline-steps", "0", "--steps", str(STEPS),
       "--json"]
KINDS = ["kill", "full disk", "failing call", "cut file", "two writers"]


class Soak:
    def __init__(self, program, faults, trainings, seed):
        self.program, self.trainings = os.path.abspath(program), trainings
        self.each = -(-faults // trainings)
        self.random = random.Random(seed)
        self.library = os.path.join(os.path.dirname(self.program), "libtrivium_faults.so")
        self.kinds = [k for k in KINDS if k != "failing call" or os.path.exists(self.library)]
        self.counts = {k: {"faults": 0, "ended the run": 0, "noticed": 0} for k in self.kinds}
        self.wrong = []
        self.folder = ""  # of the checkpoints, by its full name: the library knows files by theirs

    def words(self, *more):
        words = [self.program, *JOB, "--checkpoint", self.folder, "--checkpoint-every", "1", "--keep", "2", *more]
        return words + ["--resume"] if os.path.isdir("ck") else words

    def start(self, **how):
        """A training with its steps in the file `steps`, as a process."""
        with open("steps", "ab") as out, open("err", "wb") as err:
            return subprocess.Popen(self.words(), stdout=out, stderr=err, **how)

    def whole(self):
        """The step of the newest whole checkpoint; -1: there is none."""
        if not os.path.isdir("ck"):
            return -1
        seen = subprocess.run([self.program, "checkpoint", "inspect", "ck", "--json"], capture_output=True, check=False)
        return json.loads(seen.stdout)["step"] if seen.returncode == 0 else -1

    def meet(self, kind):
        """One start of the training with one fault. Returns the exit code."""
        if kind == "kill":
            child = self.start()
            time.sleep(self.random.uniform(0.02, 0.35))
            child.send_signal(signal.SIGKILL)
            return child.wait()
        if kind == "full disk":
            size = self.random.randrange(1, 1 << 20)
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            return self.start(preexec_fn=limit).wait()
        if kind == "failing call":
            call = str(self.random.randrange(120))
            return self.start(env={**os.environ, "LD_PRELOAD": self.library, "TRIVIUM_FAULT_UNDER": self.folder,
                                   "TRIVIUM_FAULT_CALL": call}).wait()
        if kind == "cut file":
            steps = sorted(name for name in os.listdir("ck") if name.startswith("step-")) if os.path.isdir("ck") else []
            if len(steps) > 1:  # with a single one nothing could be gone back to
                folder = os.path.join("ck", steps[-1])
                file = os.path.join(folder, self.random.choice(sorted(os.listdir(folder))))
                os.truncate(file, self.random.randrange(os.path.getsize(file)))
            child = self.start()
            time.sleep(self.random.uniform(0.05, 0.3))
            child.send_signal(signal.SIGKILL)
            return child.wait()
        first = self.start()
        while first.poll() is None and not os.path.exists(os.path.join("ck", "lock")):
            time.sleep(0.002)
        second = subprocess.run(self.words("--seed", "7"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if first.poll() is None and second.returncode == 0:
            self.wrong.append("a second writer trained in the folder of the first")
        with open("err", "ab") as err:  # what the second was told
            err.write(second.stderr)
        first.send_signal(signal.SIGKILL)
        return first.wait()

    def train(self, number, calm):
        shutil.rmtree("ck", ignore_errors=True)
        open("steps", "wb").close()
        for fault in range(self.each):
            kind = self.random.choice(self.kinds)
            before = self.whole()
            if before == STEPS:  # the end was reached: begin once more
                self.check(number, calm)
                shutil.rmtree("ck")
                open("steps", "wb").close()
                before = -1
            code = self.meet(kind)
            with open("err", errors="replace") as err:
                text = err.read()
            after = self.whole()
            count = self.counts[kind]
            count["faults"] += 1
            count["ended the run"] += code != 0
            count["noticed"] += any(word in text for word in ("error:", "ignored", "taken over", "cannot"))
            least = before - 1 if kind == "cut file" else before
            if after < least:
                self.wrong.append(f"training {number}, fault {fault} ({kind}): step {before} was there, now {after}: {text}")
        if self.whole() < STEPS and self.start().wait() != 0:
            with open("err", errors="replace") as err:
                self.wrong.append(f"training {number} does not go on: {err.read()}")
        self.check(number, calm)

    def check(self, number, calm):
        with open("steps", errors="replace") as steps:
            for line in steps:
                try:
                    step = json.loads(line)
                except ValueError:  # the process was killed while it printed
                    continue
                if step["loss"] != calm[step["step"]]:
                    self.wrong.append(f"training {number}, step {step['step']}: loss {step['loss']}, calm "
                                      f"{calm[step['step']]}")

    def run(self):
        with tempfile.TemporaryDirectory(prefix="trivium-soak-") as place:
            os.chdir(place)
            self.folder = os.path.join(os.path.realpath(place), "ck")
            os.environ["XDG_DATA_HOME"] = os.path.join(place, "data")
            with open("text.txt", "w") as text:
                text.writelines(f"In the beginning was the Word, and line {i}.\n" for i in range(400))
            alone = subprocess.run([self.program, *JOB], capture_output=True, check=True)
            calm = {step["step"]: step["loss"] for step in map(json.loads, alone.stdout.splitlines())}
            for number in range(self.trainings):
                self.train(number, calm)
            os.chdir("/")
        print(f"{'fault':14} {'met':>6} {'ended the run':>14} {'noticed':>8}")
        for kind, count in self.counts.items():
            print(f"{kind:14} {count['faults']:6} {count['ended the run']:14} {count['noticed']:8}")
        total = sum(count["faults"] for count in self.counts.values())
        for line in self.wrong[:20]:
            print("wrong:", line.strip(), file=sys.stderr)
        print(f"{total} faults over {self.trainings} trainings of {STEPS} steps: "
              + ("every loss bitwise that of a run left alone, no checkpoint lost" if not self.wrong
                 else f"{len(self.wrong)} things wrong"))
        return 1 if self.wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    numbers = [int(word) for word in sys.argv[2:]]
    defaults = [1000, 50, random.randrange(1 << 30)]
    sys.exit(Soak(sys.argv[1], *(numbers + defaults[len(numbers):])).run())
