"""A llama small enough for cores, with experts in place of MLPs where they are asked for."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F


@dataclass
class Shape:
    layers: int = 4
    hidden: int = 256
    heads: int = 8
    kv_heads: int = 4
    ffn: int = 704
    vocabulary: int = 4096
    sequence: int = 128
    experts: int = 0
    fused: bool = True


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def unfused_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    future = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, float("-inf")), -1) @ v


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.head, self.fused = shape.hidden // shape.heads, shape.fused
        self.q = nn.Linear(shape.hidden, shape.heads * self.head, bias=False)
        self.k = nn.Linear(shape.hidden, shape.kv_heads * self.head, bias=False)
        self.v = nn.Linear(shape.hidden, shape.kv_heads * self.head, bias=False)
        self.o = nn.Linear(shape.heads * self.head, shape.hidden, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (w(x) for w in (self.q, self.k, self.v))
        batch, tokens = q.shape[:2]
        q, k, v = (t.view(batch, tokens, -1, self.head).transpose(1, 2) for t in (q, k, v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        times = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True) if self.fused else unfused_attention(q, k, v)
        return self.o(y.transpose(1, 2).reshape(batch, tokens, -1))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.up = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Exchange(torch.autograd.Function):
    """All-to-all of rows, whose backward is the one the other way."""

    @staticmethod
    def forward(ctx, x, give, take):
        ctx.give, ctx.take = give, take
        out = x.new_empty(sum(take), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), take, give)
        return out

    @staticmethod
    def backward(ctx, gradient):
        out = gradient.new_empty(sum(ctx.give), gradient.shape[1])
        dist.all_to_all_single(out, gradient.contiguous(), ctx.give, ctx.take)
        return out, None, None


class Experts(nn.Module):
    """One expert a token; every rank keeps experts / ranks of them. `crowd`: the rank that most tokens are sent to."""

    crowd = None

    def __init__(self, shape):
        super().__init__()
        self.ranks = dist.get_world_size()
        self.local = nn.ModuleList(Mlp(shape) for _ in range(shape.experts // self.ranks))
        self.router = nn.Linear(shape.hidden, shape.experts, bias=False)

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights = self.router(rows).softmax(-1)
        count = rows.shape[0]
        chosen = torch.arange(count) % weights.shape[1]  # as a balancing loss would have it
        if Experts.crowd is not None:
            first = Experts.crowd * len(self.local)
            chosen = torch.where(torch.arange(count) % 8 < 6, first + chosen % len(self.local), chosen)
        order = chosen.argsort(stable=True)
        sizes = torch.bincount(chosen, minlength=weights.shape[1])
        theirs = torch.empty_like(sizes)
        dist.all_to_all_single(theirs, sizes)
        give = sizes.view(self.ranks, -1).sum(1).tolist()
        arriving = theirs.view(self.ranks, -1)
        take = arriving.sum(1).tolist()
        got = Exchange.apply(rows[order], give, take)
        owner = torch.arange(len(self.local)).repeat(self.ranks).repeat_interleave(arriving.reshape(-1))
        done = torch.zeros_like(got)
        for i, expert in enumerate(self.local):
            at = (owner == i).nonzero().squeeze(1)
            done = done.index_add(0, at, expert(got[at]))
        back = Exchange.apply(done, take, give)
        mixed = torch.zeros_like(rows).index_copy(0, order, back)
        return (mixed * weights.gather(1, chosen[:, None])).view_as(x)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(shape.hidden, eps=1e-5), nn.RMSNorm(shape.hidden, eps=1e-5)
        self.attention = Attention(shape)
        self.mlp = Experts(shape) if shape.experts else Mlp(shape)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        return x + self.mlp(self.norm_2(x))


class Llama(nn.Module):
    """Layers `first` to `last`; the embedding with the first, norm and head with the last."""

    def __init__(self, shape, first=0, last=None):
        super().__init__()
        last = shape.layers if last is None else last
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden) if first == 0 else None
        self.layers = nn.ModuleList(Layer(shape) for _ in range(first, last))
        whole = last == shape.layers
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5) if whole else None
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False) if whole else None
        half = shape.hidden // shape.heads // 2
        turns = torch.outer(torch.arange(shape.sequence), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", turns.cos(), persistent=False)
        self.register_buffer("sin", turns.sin(), persistent=False)

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return x if self.head is None else self.head(self.norm(x))


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
