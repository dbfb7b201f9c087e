"""Runs one command under limits and says what is wrong with how it ended."""
import os
import re
import resource
import signal
import subprocess
import time

SECONDS = 5  # beyond that an answer to a small input is called a hang
KILLED_AFTER = 20
MEMORY_MIB = 1024 + 256  # of resident memory: the default limit of an input, and the program itself
LONGEST_LINE = 600

# Texts that only libraries write.
LIBRARY_TEXT = re.compile(
    r"json\.exception|map::at|\bsto[ifdlu]+\b|basic_string|vector::|std::|terminate called|what\(\):|Could not convert"
    r"|bad_alloc|filesystem error|Assertion|unordered_map")
ALLOWED_CODES = {0, 1, 2, 3, 4, 5, 130}


class Outcome:
    """How a command ended: `code` (negative: a signal), seconds, MiB, what it printed, and the list of `faults`."""

    def __init__(self, code, seconds, mib, out, err, hung):
        self.code, self.seconds, self.mib, self.out, self.err, self.hung = code, seconds, mib, out, err, hung
        self.faults = []


def run(command, folder, environment=None, stdin=subprocess.DEVNULL, limits=()):
    """Runs a list of words in a folder. `limits`: pairs (RLIMIT_…, value) for the child."""
    out_path, err_path = os.path.join(folder, ".out"), os.path.join(folder, ".err")

    def settle():
        for what, value in limits:
            resource.setrlimit(what, (value, value))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    begin = time.monotonic()
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        child = subprocess.Popen(command, cwd=folder, stdin=stdin, stdout=out, stderr=err, preexec_fn=settle,
                                 env=environment, start_new_session=True)
    hung, status, usage = False, None, None
    while status is None:
        pid, ended, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            status = ended
        elif time.monotonic() - begin > KILLED_AFTER and not hung:
            hung = True
            os.killpg(child.pid, signal.SIGKILL)
        else:
            time.sleep(0.002)
    child.returncode = os.waitstatus_to_exitcode(status)
    with open(out_path, "rb") as out, open(err_path, "rb") as err:
        return Outcome(child.returncode, time.monotonic() - begin, usage.ru_maxrss / 1024, out.read(1 << 22),
                       err.read(1 << 20), hung)


def judge(outcome, file=None):
    """Adds the faults: words for the columns of the table. `file`: the name that an error must tell."""
    text = outcome.err.decode("utf-8", "replace")
    lines = text.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    faults = outcome.faults
    if outcome.hung or outcome.seconds > SECONDS:
        faults.append("slow")
    if outcome.code < 0 and not outcome.hung:
        faults.append("signal")
    elif not outcome.hung and outcome.code not in ALLOWED_CODES:
        faults.append("code")
    if outcome.mib > MEMORY_MIB:
        faults.append("memory")
    if LIBRARY_TEXT.search(text):
        faults.append("library text")
    if outcome.code > 0 and not outcome.hung and len(errors) != 1:
        faults.append("not one error")
    if outcome.code == 3 and file and errors and file not in errors[0]:
        faults.append("no file")
    if any(len(line) > LONGEST_LINE for line in lines):
        faults.append("long line")
    if any(byte < 32 and byte not in (9, 10, 13) for byte in outcome.err):
        faults.append("raw control")
    return faults


FAULTS = ["slow", "signal", "code", "memory", "library text", "not one error", "no file", "long line", "raw control",
          "lost"]


class Table:
    """Counts outcomes by what was tried, and prints them."""

    def __init__(self, kept):
        self.rows, self.kept = {}, kept

    def add(self, row, outcome, what):
        counts = self.rows.setdefault(row, {})
        for key in ["inputs", f"exit {outcome.code}" if outcome.code >= 0 else "signals"] + outcome.faults:
            counts[key] = counts.get(key, 0) + 1
        if outcome.faults:
            print(f"{row}: {', '.join(outcome.faults)}: exit {outcome.code}, {outcome.seconds:.1f} s, "
                  f"{outcome.mib:.0f} MiB: {what}\n    {outcome.err.decode('utf-8', 'replace').strip()[:200]}",
                  file=self.kept, flush=True)

    def text(self):
        codes = sorted({key for counts in self.rows.values() for key in counts if key.startswith("exit ")})
        columns = ["inputs"] + codes + FAULTS
        width = max([len(row) for row in self.rows] + [8])
        lines = ["  ".join(["reader".ljust(width)] + columns)]
        totals = {}
        for row, counts in self.rows.items():
            for column in columns:
                totals[column] = totals.get(column, 0) + counts.get(column, 0)
            lines.append("  ".join([row.ljust(width)] + [str(counts.get(c, 0)).rjust(len(c)) for c in columns]))
        lines.append("  ".join(["all".ljust(width)] + [str(totals.get(c, 0)).rjust(len(c)) for c in columns]))
        return "\n".join(lines)

    def faults(self):
        return sum(counts.get(fault, 0) for counts in self.rows.values() for fault in FAULTS)
