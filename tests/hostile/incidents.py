"""What happens to a training besides bad files: signals, full disks, closed streams, two writers, foreign files."""
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import time

from judge import Outcome, judge, run

JOB = ["--model", "gpt-tiny", "--cluster", "this-machine", "--global-batch", "4", "--micro-batch", "1", "--sequence", "32"]
TRAINING = ["run", *JOB, "--corpus", "seeds/text.txt", "--timeline-steps", "0"]


def digest(folder):
    sums = {}
    for parent, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(parent, file)
            with open(path, "rb") as content:
                sums[path] = hashlib.md5(content.read()).hexdigest()
    return sums


def inspect(program, place, folder):
    return run([program, "checkpoint", "inspect", folder], place)


def interrupted(program, place, table, number, stop):
    """A signal in the middle of a training: a checkpoint stands there afterwards."""
    folder = f"signal-{number}"
    with open(os.path.join(place, ".steps"), "wb") as out, open(os.path.join(place, ".err"), "wb") as err:
        child = subprocess.Popen([program, *TRAINING, "--steps", "1000000", "--checkpoint", folder], cwd=place, stdout=out,
                                 stderr=err, start_new_session=True)
    begin = time.monotonic()
    while os.path.getsize(os.path.join(place, ".steps")) == 0 and time.monotonic() - begin < 20:
        time.sleep(0.02)
    time.sleep(0.03 * number)
    child.send_signal(stop)
    try:
        child.wait(20)
        hung = False
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        hung = True
    with open(os.path.join(place, ".err"), "rb") as err:
        outcome = Outcome(child.returncode, time.monotonic() - begin, 0, 0, b"", err.read(), hung)
    if stop != signal.SIGKILL:
        judge(outcome)
        if inspect(program, place, folder).code != 0:
            outcome.faults.append("lost")
    else:
        outcome.code = 0  # as it must be
        rest = run([program, *TRAINING, "--steps", "2", "--checkpoint", folder, "--resume"], place)
        if rest.code != 0:
            outcome.faults.append("lost")
    table.add("signals", outcome, f"{stop.name} {number}")
    shutil.rmtree(os.path.join(place, folder), ignore_errors=True)


def full_disk(program, place, table, size):
    """No file may grow beyond so many bytes: the checkpoint that was there before is there afterwards."""
    run([program, *TRAINING, "--steps", "2", "--checkpoint", "full"], place)
    outcome = run([program, *TRAINING, "--steps", "4", "--checkpoint", "full", "--resume", "--checkpoint-every", "1",
                   "--keep", "1"], place, limits=[(resource.RLIMIT_FSIZE, size)])
    judge(outcome)
    if inspect(program, place, "full").code != 0 or any(name.endswith(".tmp") for name in os.listdir(
            os.path.join(place, "full"))):
        outcome.faults.append("lost")
    table.add("full disks", outcome, f"{size} bytes")
    shutil.rmtree(os.path.join(place, "full"))


def streams(program, place, table):
    for number, (redirect, may_fail) in enumerate([(">&-", True), ("2>&-", False), (">&- 2>&- <&-", True),
                                                   (">/dev/full", True), ("2>/dev/full", False), ("| head -1", False),
                                                   ("2>&1 | true", False)]):
        folder = f"stream-{number}"
        line = " ".join([program, *TRAINING, "--steps", "3", "--checkpoint", folder, redirect])
        outcome = run(["sh", "-c", line], place)
        judge(outcome)
        outcome.faults = [f for f in outcome.faults if f != "not one error"]  # there may be nobody to tell
        if outcome.code not in ((0, 1) if may_fail else (0,)):
            outcome.faults.append("code")
        if not os.path.isdir(os.path.join(place, folder, "step-00000003")):
            outcome.faults.append("lost")
        table.add("closed streams", outcome, redirect)
        shutil.rmtree(os.path.join(place, folder), ignore_errors=True)


def two_writers(program, place, table):
    first = subprocess.Popen([program, *TRAINING, "--steps", "1000000", "--checkpoint", "shared", "--checkpoint-every",
                              "1"], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not os.path.exists(os.path.join(place, "shared", "latest")):
        time.sleep(0.02)
    for words in ([*TRAINING, "--steps", "2", "--seed", "2", "--checkpoint", "shared"],
                  [*TRAINING, "--steps", "2", "--checkpoint", "shared", "--resume"]):
        outcome = run([program, *words], place)
        judge(outcome)
        if outcome.code != 2:
            outcome.faults.append("code")
        table.add("two writers", outcome, " ".join(words[-3:]))
    first.send_signal(signal.SIGINT)
    first.wait(20)
    if inspect(program, place, "shared").code != 0:
        outcome.faults.append("lost")
    shutil.rmtree(os.path.join(place, "shared"))


def inputs_stay(program, place, table):
    """Every output named like every input."""
    before = digest(os.path.join(place, "seeds"))
    for words in ([*TRAINING, "--steps", "1", "--record", "{}"], [*TRAINING, "--steps", "1", "--trace", "{}"],
                  ["simulate", "seeds/plan.json", "--trace", "{}"], ["report", "seeds/plan.json", "-o", "{}"],
                  ["export", "seeds/plan.json", "--to", "megatron", "-o", "{}"], ["replan", "seeds/run.json", "-o", "{}"],
                  ["import", "seeds/launch.sh", "--model", "gpt2-124m", "--cluster", "dgx-a100-80gb:2", "-o", "{}"],
                  ["tokenize", "seeds/text.txt", "-o", "{}"], ["checkpoint", "convert", "seeds/ck", "{}"],
                  ["calibrate", "seeds/run.json", "-o", "{}"], ["validate", "seeds/plan-run.json", "seeds/run.json", "--csv",
                                                                "{}"],
                  ["plan", "--model", "seeds/toy.json", "--cluster", "seeds/node.json", "--global-batch", "4", "-o", "{}"]):
        own = [word for word in words if word.startswith("seeds/") and os.path.isfile(os.path.join(place, word))]
        foreign = ["seeds/vocab.json", "seeds/merges.txt", "seeds/ck/latest", "seeds/ck/step-00000002/checkpoint.json"]
        for file in own + [os.path.join(place, word) for word in own] + foreign:
            outcome = run([program] + [word.replace("{}", file) for word in words], place)
            judge(outcome)
            if digest(os.path.join(place, "seeds")) != before:
                outcome.faults.append("lost")
                before = digest(os.path.join(place, "seeds"))
            table.add("inputs as outputs", outcome, " ".join(words[:2]) + " " + file)


def attack(program, place, table, trials):
    for number in range(trials):
        interrupted(program, place, table, number,
                    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL][number % 4])
    least = 4096  # less would not even hold what the command says of it
    for size in range(least, 1 << 20, (1 << 20) // max(1, trials)):
        full_disk(program, place, table, size)
    streams(program, place, table)
    two_writers(program, place, table)
    inputs_stay(program, place, table)
