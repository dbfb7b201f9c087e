"""Grok-1 in PyTorch, as its release computes it (github.com/xai-org/grok-1, model.py), with the names and the config.json
of its ports to transformers, which itself has no such model."""

import json
import math
import types

import torch
from safetensors.torch import save_file
from torch import nn


class Norm(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(config["hidden_size"]))
        self.epsilon = config["rms_norm_eps"]

    def forward(self, x):
        return self.scale * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon))


def turned(x):
    """Heads (…, tokens, dim) by their positions; components i and i + dim / 2 turn together."""
    tokens, half = x.shape[-2], x.shape[-1] // 2
    angles = torch.outer(torch.arange(tokens).float(), 10000.0 ** (-torch.arange(half).float() / half))
    first, second = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.dim = config["hidden_size"] // config["num_attention_heads"]
        keys = self.dim * config["num_key_value_heads"]
        self.q_proj = nn.Linear(config["hidden_size"], config["hidden_size"], bias=False)
        self.k_proj = nn.Linear(config["hidden_size"], keys, bias=False)
        self.v_proj = nn.Linear(config["hidden_size"], keys, bias=False)
        self.o_proj = nn.Linear(config["hidden_size"], config["hidden_size"], bias=False)

    def forward(self, x):
        heads = [p(x).unflatten(-1, (-1, self.dim)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)]
        shared = self.config["num_attention_heads"] // self.config["num_key_value_heads"]
        k, v = turned(heads[1]).repeat_interleave(shared, 1), heads[2].repeat_interleave(shared, 1)
        scores = turned(heads[0]) @ k.transpose(-1, -2) * self.config["attn_output_multiplier"]
        most = self.config["max_attn_value"]
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        shares = (most * torch.tanh(scores / most)).masked_fill(later, -math.inf).softmax(-1)
        return self.o_proj((shares @ v).transpose(1, 2).flatten(2))


class Expert(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.linear = nn.Linear(config["hidden_size"], config["intermediate_size"], bias=False)
        self.linear_v = nn.Linear(config["hidden_size"], config["intermediate_size"], bias=False)
        self.linear_1 = nn.Linear(config["intermediate_size"], config["hidden_size"], bias=False)

    def forward(self, x):
        return self.linear_1(nn.functional.gelu(self.linear(x), approximate="tanh") * self.linear_v(x))


class Mixture(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.top_k = config["num_experts_per_tok"]
        self.gate = nn.Linear(config["hidden_size"], config["num_experts"], bias=False)
        self.experts = nn.ModuleList(Expert(config) for _ in range(config["num_experts"]))

    def forward(self, x):
        shares = self.gate(x).softmax(-1)
        least = shares.topk(self.top_k, -1).values[..., -1:]
        weights = torch.where(shares >= least, shares, 0)
        return sum(weights[..., i, None] * expert(x) for i, expert in enumerate(self.experts))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attn, self.moe_block = Attention(config), Mixture(config)
        self.pre_attn_norm, self.post_attn_norm = Norm(config), Norm(config)
        self.pre_moe_norm, self.post_moe_norm = Norm(config), Norm(config)

    def forward(self, x):
        x = x + self.post_attn_norm(self.attn(self.pre_attn_norm(x)))
        return x + self.post_moe_norm(self.moe_block(self.pre_moe_norm(x)))


class Grok1(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.members = config
        self.config = types.SimpleNamespace(model_type=config["model_type"])
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.model.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.model.norm = Norm(config)
        with torch.no_grad():
            self.model.embed_tokens.weight *= 0.1
            for layer in self.model.layers:  # scores that their cap bends, choices that rounding does not change
                layer.attn.q_proj.weight *= 2
                layer.moe_block.gate.weight *= 3

    def forward(self, ids):
        x = self.model.embed_tokens(ids) * self.members["embedding_multiplier_scale"]
        for layer in self.model.layers:
            x = layer(x)
        logits = self.model.norm(x) @ self.model.embed_tokens.weight.T * self.members["output_multiplier_scale"]
        return types.SimpleNamespace(logits=logits)

    def save_pretrained(self, folder, **_):
        (folder / "config.json").write_text(json.dumps(self.members, indent=2) + "\n")
        save_file({name: p.detach().contiguous() for name, p in self.named_parameters()}, folder / "model.safetensors",
                  metadata={"format": "pt"})
