"""Trains a llama of 10 million parameters with PyTorch on two processes of this machine and records what both do.

train.py OUT [--wrap fsdp|ddp] [--variant plain|slow-rank|unfused] [--steps N]

Writes OUT/rank0.pt.trace.json.gz and OUT/rank1.pt.trace.json.gz, traces of PyTorch's profiler (Kineto) of the last N
steps, without what tells of the machine, and OUT/seconds.json: the time of the steps before them, which no profiler
slowed. `slow-rank`: rank 1 computes every MLP four times. `unfused`: attention as two products and a softmax.
"""

import argparse
import gzip
import json
import os
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCABULARY, SEQUENCE, BATCH = 4, 320, 8, 4, 40, 896, 8192, 256, 4
RANKS = 2


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def unfused_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / HEAD**0.5
    future = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, float("-inf")), -1) @ v


def fused_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.attend = fused_attention if fused else unfused_attention
        self.wq = nn.Linear(HIDDEN, HEADS * HEAD, bias=False)
        self.wk = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.wv = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.wo = nn.Linear(HEADS * HEAD, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (w(x).view(BATCH, SEQUENCE, -1, HEAD).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        return self.wo(self.attend(q, k, v).transpose(1, 2).reshape(BATCH, SEQUENCE, -1))


class Mlp(nn.Module):
    def __init__(self, times):
        super().__init__()
        self.times = times
        self.w1, self.w3 = nn.Linear(HIDDEN, FFN, bias=False), nn.Linear(HIDDEN, FFN, bias=False)
        self.w2 = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        for _ in range(self.times - 1):
            with torch.no_grad():
                self.w2(F.silu(self.w1(x)) * self.w3(x))
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, fused, times):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(HIDDEN, eps=1e-5), nn.RMSNorm(HIDDEN, eps=1e-5)
        self.attention, self.mlp = Attention(fused), Mlp(times)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        return x + self.mlp(self.norm_2(x))


class Llama(nn.Module):
    def __init__(self, fused=True, times=1):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer(fused, times) for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(HIDDEN, eps=1e-5), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        turns = torch.outer(torch.arange(SEQUENCE), 10000.0 ** (-torch.arange(0, HEAD, 2) / HEAD)).repeat(1, 2)
        self.register_buffer("cos", turns.cos())
        self.register_buffer("sin", turns.sin())

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))


def wrapped(model, wrap):
    if wrap == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (RANKS,), mesh_dim_names=("fsdp",))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


# Operators that only look at tensors another way, or make room: no work, and half of all events.
VIEWS = {"aten::" + name for name in (
    "view", "_unsafe_view", "reshape", "_reshape_alias", "t", "transpose", "expand", "as_strided", "slice", "select", "narrow",
    "split", "split_with_sizes", "chunk", "unsqueeze", "squeeze", "empty", "empty_like", "empty_strided", "new_empty",
    "new_empty_strided", "resize_", "set_", "resolve_conj", "resolve_neg", "detach", "alias", "item",
    "_local_scalar_dense")} | {"detach"}


# Without those, without what tells of the machine or of the place that the trace was written to, and what nobody reads.
def trimmed(trace):
    for key in ("host_name", "trace_id", "traceName"):
        trace.pop(key, None)
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") != "Trace" and e["name"] not in VIEWS]
    first = min(e["ts"] for e in events)
    threads = {t: i for i, t in enumerate(sorted({str(e["tid"]) for e in events}))}
    trace["baseTimeNanoseconds"] += int(first * 1000)
    kept = []
    for event in events:
        args = {k: v for k, v in event.get("args", {}).items() if k in ("External id", "Input Dims") and v}
        types = event.get("args", {}).get("Input type")
        if types and (event["name"] in ("aten::mm", "aten::bmm") or event["name"].startswith("c10d::")):
            args["Input type"] = types[:2]
        kept.append({"ph": "X", "cat": event["cat"], "name": event["name"], "tid": threads[str(event["tid"])],
                     "ts": round(event["ts"] - first, 3), "dur": event["dur"], "args": args})
    trace["traceEvents"] = kept
    return trace


def keep(profiler, path):
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(raw)
        with open(raw, encoding="utf-8") as file:
            trace = trimmed(json.load(file))
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        packed.write(json.dumps(trace, separators=(",", ":")).encode())


def train(rank, options, meeting):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
    times = 4 if options.variant == "slow-rank" and rank == 1 else 1
    model = wrapped(Llama(options.variant != "unfused", times), options.wrap)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
    torch.manual_seed(2 + rank)
    seconds = []

    def step():
        begin = time.perf_counter()
        batch = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1))
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - begin)

    for _ in range(4):
        step()
    unprofiled = seconds[1:]
    path = os.path.join(options.out, f"rank{rank}.pt.trace.json.gz")
    with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=options.steps, repeat=1),
            on_trace_ready=lambda profiler: keep(profiler, path)) as profiler:
        for _ in range(options.steps + 1):
            step()
            profiler.step()
    if rank == 0:
        with open(os.path.join(options.out, "seconds.json"), "w", encoding="utf-8") as file:
            json.dump({"unprofiled_s": unprofiled, "profiled_s": seconds[-options.steps:],
                       "parameters": sum(p.numel() for p in model.parameters())}, file)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--wrap", choices=("fsdp", "ddp"), default="fsdp")
    parser.add_argument("--variant", choices=("plain", "slow-rank", "unfused"), default="plain")
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (options, os.path.join(folder, "meeting")), nprocs=RANKS)


if __name__ == "__main__":
    main()
