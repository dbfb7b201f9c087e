"""Runs one command under limits and says what is wrong with how it ended."""
import os
import re
import resource
import select
import signal
import subprocess
import time

SECONDS = 5  # of a core; beyond that an answer to a small input is called a hang
ANSWER = 5  # by the clock, for Ctrl-C: other work may hold the machine up
KILLED_AFTER = 30  # by the clock
MEMORY_MIB = 1024 + 256  # of resident memory: the default limit of an input, and the program itself
LONGEST_LINE = 600

# Texts that only libraries write.
LIBRARY_TEXT = re.compile(
    r"json\.exception|map::at|\bsto[ifdlu]+\b|basic_string|vector::|std::|terminate called|what\(\):|Could not convert"
    r"|bad_alloc|filesystem error|Assertion|unordered_map")
ALLOWED_CODES = {0, 1, 2, 3, 4, 5, 130}


class Outcome:
    """How a command ended: `code` (negative: a signal), seconds by the clock and of a core, MiB, what it printed, whether
    it had to be killed or was interrupted, and the list of `faults`."""

    def __init__(self, code, wall, core, mib, out, err, hung=False, interrupted=False):
        self.code, self.wall, self.core, self.mib, self.out, self.err = code, wall, core, mib, out, err
        self.hung, self.interrupted = hung, interrupted
        self.answer = 0.0  # seconds by the clock from the interrupt to the end
        self.faults = []


def run(command, folder, environment=None, stdin=subprocess.DEVNULL, limits=(), interrupt_after=None):
    """Runs a list of words in a folder. `limits`: pairs (RLIMIT_…, value) for the child. `interrupt_after`: seconds to
    Ctrl-C; None: never."""
    out_path, err_path = os.path.join(folder, ".out"), os.path.join(folder, ".err")

    def settle():
        for what, value in [*limits, (resource.RLIMIT_CORE, 0)]:
            resource.setrlimit(what, (value, value))

    begin = time.monotonic()
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        child = subprocess.Popen(command, cwd=folder, stdin=stdin, stdout=out, stderr=err,
                                 preexec_fn=settle if limits else None, env=environment, start_new_session=True)
    handle = os.pidfd_open(child.pid)
    ended = lambda seconds: bool(select.select([handle], [], [], max(0.0, seconds))[0])
    hung, asked = False, None
    if interrupt_after is not None and not ended(interrupt_after):
        asked = time.monotonic()
        child.send_signal(signal.SIGINT)
    if not ended(begin + KILLED_AFTER - time.monotonic()):
        hung = True
        os.killpg(child.pid, signal.SIGKILL)
    _, status, usage = os.wait4(child.pid, 0)
    os.close(handle)
    end = time.monotonic()
    child.returncode = os.waitstatus_to_exitcode(status)
    with open(out_path, "rb") as out, open(err_path, "rb") as err:
        outcome = Outcome(child.returncode, end - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
                          out.read(1 << 22), err.read(1 << 20), hung, asked is not None)
    if asked is not None:
        outcome.answer = end - asked
    return outcome


def judge(outcome, file=None, codes=frozenset(ALLOWED_CODES), may_take_its_time=False):
    """Adds the faults: words for the columns of the table. `file`: the name that an error of code 3 must tell."""
    text = outcome.err.decode("utf-8", "replace")
    lines = text.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    faults = outcome.faults
    # Who has nothing to keep ends by the signal itself, which shells call 130 as well.
    by_interrupt = outcome.interrupted and outcome.code in (130, -signal.SIGINT)
    if outcome.hung or outcome.answer > ANSWER or (outcome.core > SECONDS and not may_take_its_time):
        faults.append("slow")
    if outcome.code < 0 and not outcome.hung and not by_interrupt:
        faults.append("signal")
    elif not outcome.hung and not by_interrupt and outcome.code not in codes:
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


class Table:
    """Counts outcomes by what was tried, and prints them."""

    def __init__(self, kept):
        self.rows, self.kept = {}, kept

    def row(self, name):
        return self.rows.setdefault(name, {"cases": 0, "s": 0.0, "Ctrl-C s": 0.0, "MiB": 0.0, "findings": 0})

    def expect(self, name, cases):
        """Gives a row its turn, so that rows stand in order whichever ends first."""
        if cases > 0:
            self.row(name)

    def add(self, row, outcome, what):
        counts = self.row(row)
        code = "signal" if outcome.code < 0 else f"exit {outcome.code}"
        if outcome.interrupted and outcome.code in (130, -signal.SIGINT):
            code = "exit 130"
        counts["cases"] += 1
        counts[code] = counts.get(code, 0) + 1
        counts["s"] = max(counts["s"], 0.0 if outcome.interrupted else outcome.core)
        counts["Ctrl-C s"] = max(counts["Ctrl-C s"], outcome.answer)
        counts["MiB"] = max(counts["MiB"], outcome.mib)
        counts["findings"] += bool(outcome.faults)
        if outcome.faults:
            print(f"{row}: {', '.join(outcome.faults)}: exit {outcome.code}, {outcome.core:.1f} s, {outcome.mib:.0f} MiB: "
                  f"{what}\n    {outcome.err.decode('utf-8', 'replace').strip()[:300]}", file=self.kept, flush=True)

    def text(self):
        """As a table of Markdown. Seconds are those of a core, the most of any case."""
        codes = sorted({key for counts in self.rows.values() for key in counts if key.startswith(("exit ", "signal"))},
                       key=lambda key: (key == "signal", int(key[5:]) if key.startswith("exit ") else 0))
        lines = ["| what was attacked | cases | " + " | ".join(codes) + " | most s | most MiB | Ctrl-C s | findings |",
                 "|---|" + "--:|" * (len(codes) + 5)]
        for name in [*self.rows, "all"]:
            of = [self.rows[name]] if name != "all" else list(self.rows.values())
            total = lambda key: sum(counts.get(key, 0) for counts in of)
            most = lambda key: max(counts[key] for counts in of)
            cells = [str(total("cases")), *(str(total(code) or "") for code in codes), f"{most('s'):.1f}",
                     f"{most('MiB'):.0f}", f"{most('Ctrl-C s'):.1f}" if most("Ctrl-C s") else "", str(total("findings"))]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def faults(self):
        return sum(counts["findings"] for counts in self.rows.values())
