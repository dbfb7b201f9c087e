"""Trains one job on ranks of this machine and records what they do: OUT/rankN.json.gz and OUT/truth.json.

job.py OUT SPLIT [--fault NAME --rank N] [--batch N --micro-batches N --cut N --layers N --steps N --raw]

Splits: ddp ddp4 fsdp1 fsdp2 tp sp pp gpipe interleaved ep fsdp2_tp pp_dp. Faults: those of faults.py, and recompute,
unfused, tokens, uneven, bubble, experts, metrics. truth.json: seconds that the fault took of a step on its rank.
"""

import argparse
import gzip
import json
import os
import statistics
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
import torch
import torch.distributed as dist
import torch.distributed._composable.fsdp  # noqa: F401  imported once, before ranks are forked
import torch.distributed.pipelining  # noqa: F401
import torch.distributed.tensor.parallel  # noqa: F401

from faults import Fault
from model import Experts, Shape
from splits import RANKS, split_of


def add_options(parser):
    parser.add_argument("--fault", default="none")
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=4)
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--recompute", action="store_true")


def prepare(options):
    if options.fault == "recompute":
        options.recompute = True
    if options.fault == "uneven":
        options.cut = options.layers - 1 if options.rank == 0 else 1
    if options.fault == "bubble":
        options.micro_batches = 2
    return Shape(layers=options.layers, experts=4 if options.split == "ep" else 0, fused=options.fault != "unfused")


def keep(profiler, path):
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(raw)
        with open(raw, "rb") as file, open(path, "wb") as out:
            out.write(gzip.compress(file.read(), 1, mtime=0))


def train(rank, options, meeting):
    torch.set_num_threads(1)
    ranks = RANKS[options.split]
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
    shape = prepare(options)
    torch.manual_seed(1)
    split = split_of(options.split, shape, options, rank)
    if options.split == "ep" and options.fault == "experts":
        Experts.crowd = options.rank
    fault = Fault(options.fault, options.rank, rank)
    fault.install(split)
    optimizer = torch.optim.AdamW(split.parameters, lr=3e-4, foreach=options.split not in ("tp", "sp"))
    batch = options.batch
    if fault.is_("tokens"):
        batch = 2 * batch
    torch.manual_seed(2 + split.data_rank)
    seconds, spent, stopped = [], [], []
    made = torch.Generator().manual_seed(7 + split.data_rank)

    def step(number):
        begin = time.perf_counter()
        fault.before_step(number)
        tokens = torch.randint(shape.vocabulary, (batch, shape.sequence + 1), generator=made)
        x, y = tokens[:, :-1], tokens[:, 1:]
        split.forward_backward(x, y)
        if options.fault == "metrics":
            fault.timed(lambda: [dist.all_reduce(torch.ones(1)).__class__ for _ in range(40)])
        if options.split in ("ddp", "fsdp2", "fsdp1"):
            torch.nn.utils.clip_grad_norm_(split.parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        fault.after_step(number, split.core, lambda: [split.evaluate(x, y) for _ in range(2)])
        seconds.append(time.perf_counter() - begin)
        spent.append(fault.spent)

    for i in range(3):
        step(0)
    dist.barrier()
    if fault.is_("slow_clock"):
        fault.stopped_until_now()
    path = os.path.join(options.out, f"rank{rank}.json.gz")
    with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=options.steps, repeat=1),
            on_trace_ready=lambda profiler: keep(profiler, path)) as profiler:
        for i in range(options.steps + 1):
            if i == 1:
                dist.barrier()
                if fault.is_("slow_clock"):
                    fault.stopped_until_now()
            step(i)
            if i == options.steps and fault.is_("slow_clock"):
                stopped.append(fault.stopped_until_now() / options.steps)
            profiler.step()
    fault.end()
    profiled, cost = seconds[-options.steps:], spent[-options.steps:]
    told = {"rank": rank, "median_step_s": statistics.median(profiled), "fault_s": sum(cost) / len(cost),
            "stopped_s": stopped[0] if stopped else 0}
    gathered = [None] * ranks
    dist.all_gather_object(gathered, told)
    if rank == 0:
        with open(os.path.join(options.out, "truth.json"), "w", encoding="utf-8") as file:
            json.dump({"split": options.split, "fault": options.fault, "rank": options.rank, "ranks": gathered}, file, indent=1)
    dist.barrier()
    dist.destroy_process_group()


def run(options):
    """Forks the ranks, so that PyTorch is imported once. False: a rank failed or all took too long."""
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(RANKS[options.split]):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    train(rank, options, os.path.join(folder, "meeting"))
                    code = 0
                except BaseException:
                    import traceback
                    traceback.print_exc()
                finally:
                    os._exit(code)
            children.append(child)
        fine = True
        for child in children:
            fine = os.waitpid(child, 0)[1] == 0 and fine
        return fine


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("split", choices=RANKS)
    add_options(parser)
    raise SystemExit(0 if run(parser.parse_args()) else 1)
