"""Records tests/data/kineto_cpu.pt.trace.json.gz: a small GPT's training steps on cores, as PyTorch's profiler sees them.

record_kineto.py FILE.pt.trace.json.gz: writes what the profiler exports, byte for byte. Give a path without folders: the
profiler keeps it in the trace.
"""

import sys

import torch
from torch import nn

VOCABULARY, SEQUENCE, HIDDEN, HEADS, LAYERS, BATCH, STEPS = 97, 32, 48, 4, 2, 2, 3


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        q, k, v = (t.view(BATCH, SEQUENCE, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm_1(x)).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, SEQUENCE, HIDDEN))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(SEQUENCE, HIDDEN)
        self.layers, self.norm = nn.Sequential(*(Layer() for _ in range(LAYERS))), nn.LayerNorm(HIDDEN)

    def forward(self, tokens):
        x = self.norm(self.layers(self.tokens(tokens) + self.places.weight))
        return x @ self.tokens.weight.T


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=STEPS - 1, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(sys.argv[1])) as profiler:
        for _ in range(STEPS):
            batch = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1))
            loss = nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()


main()
