"""Faults that a job can be given. Each knows what it costs the rank that has it, by this script's own clock."""

import gc
import io
import os
import signal
import time

import torch

STALL = 0.12  # seconds


class Fault:
    """`name` on `rank`; -1: on all ranks. `spent` sums its seconds of the step that runs."""

    def __init__(self, name, victim, rank):
        self.name, self.here = name, victim in (-1, rank)
        self.spent, self.stopper, self.said = 0.0, None, None
        self.junk = torch.randn(384, 384)
        self.keep = []

    def is_(self, name):
        return self.here and self.name == name

    def timed(self, work):
        begin = time.perf_counter()
        work()
        self.spent += time.perf_counter() - begin

    def install(self, model):
        """Hooks of modules, once."""
        modules = [m for m in model.modules() if type(m).__name__ in ("Linear", "RMSNorm", "Attention", "Mlp")]
        if self.is_("host"):
            for module in modules:
                module.register_forward_pre_hook(lambda *_: self.timed(lambda: time.sleep(0.002)))
        layers = [m for m in model.modules() if type(m).__name__.endswith("Layer")]  # FSDP2's too
        if self.is_("gc") and layers:
            self.keep = [[{"n": i}] for i in range(400_000)]
            layers[len(layers) // 2].register_forward_pre_hook(lambda *_: self.timed(gc.collect))
        if self.is_("slow_clock"):
            self.start_stopper()

    def start_stopper(self):
        """Halts this process half of the time, as a device that is throttled."""
        target = os.getpid()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            stopped = 0.0
            try:
                while os.getppid() == target:
                    begin = time.perf_counter()
                    os.kill(target, signal.SIGSTOP)
                    time.sleep(0.001)
                    os.kill(target, signal.SIGCONT)
                    stopped += time.perf_counter() - begin
                    os.write(write, f"{stopped:.6f}\n".encode())
                    time.sleep(0.001)
            finally:
                os.kill(target, signal.SIGCONT)
                os._exit(0)
        os.set_blocking(read, False)
        self.stopper, self.said = child, read

    def end(self):
        if self.stopper:
            os.kill(self.stopper, signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGCONT)
            os.waitpid(self.stopper, 0)

    def before_step(self, number):
        self.spent = 0.0
        if self.is_("loader"):
            self.timed(lambda: time.sleep(STALL))
        if self.is_("other_work"):
            self.timed(self.multiply)
        if self.is_("slow_clock"):
            self.stopped_until_now()

    def multiply(self):
        y = self.junk
        for _ in range(60):
            y = (y @ self.junk).clamp(-1, 1)

    def stopped_until_now(self):
        """Seconds since the last call that this process was halted."""
        text = b""
        try:
            while piece := os.read(self.said, 1 << 16):
                text += piece
        except BlockingIOError:
            pass
        last = float(text.split()[-1]) if text else getattr(self, "last", 0.0)
        since = last - getattr(self, "last", 0.0)
        self.last = last
        return since

    def after_step(self, number, model, evaluate):
        if self.is_("checkpoint") and number % 4 == 2:
            self.timed(lambda: self.save(model))
        if self.is_("evaluation") and number % 4 == 2:
            self.timed(evaluate)

    def save(self, model):
        state = {k: v.clone() for k, v in list(model.state_dict().items())[:4]}
        torch.save(state, io.BytesIO())
        time.sleep(3 * STALL)  # a file system that many write to
