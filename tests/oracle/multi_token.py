"""Modules of multi-token prediction in PyTorch, after DeepSeek-V3's equations (arXiv 2412.19437, section 2.2), on models of
transformers, which computes theirs for generation alone.

A module is numbered as a layer after the model's, under the names of the released files. Of eq. 21's halves these have the
embedding's first. What comes before a module is normed, as in Megatron-Core and transformers' MtpModel.
"""

import json

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import cross_entropy, pad
from transformers.modeling_layers import MtpModel


def add_modules(model, depth, share):
    """`share`: of the mean of the modules' losses in that of the model (eq. 25)."""
    config, decoder, norm = model.config, type(model.model.layers[-1]), type(model.model.norm)
    for number in range(config.num_hidden_layers, config.num_hidden_layers + depth):
        layer = decoder(config, number)
        layer.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        layer.shared_head = nn.Module()
        for holder, name in ((layer, "enorm"), (layer, "hnorm"), (layer.shared_head, "norm")):
            setattr(holder, name, norm(config.hidden_size, eps=config.rms_norm_eps))
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if "norm" not in name:
                    parameter.normal_(std=0.02) if parameter.dim() >= 2 else parameter.zero_()
        model.model.layers.append(layer)
    config.num_mtp_layers = depth
    model.share = share / depth
    return model


def hidden_states(model, ids, labels):
    """Of the model, then of every module, each (batch, tokens, hidden), normed."""
    around = {}
    first = model.model.layers[0]
    hook = first.register_forward_pre_hook(lambda _, __, kwargs: around.update(kwargs), with_kwargs=True)
    states = [model.model(ids, use_cache=False).last_hidden_state]
    hook.remove()
    for ahead, layer in enumerate(model.model.layers[model.config.num_hidden_layers:], 1):
        later = pad(labels[:, ahead - 1:], (0, ahead - 1))  # of token i the token i + ahead
        halves = layer.enorm(model.model.embed_tokens(later)), layer.hnorm(states[-1])
        states.append(layer.shared_head.norm(layer(layer.eh_proj(torch.cat(halves, -1)), **around)))
    return states


def loss_after(states, head, labels, share):
    """Eq. 24 and 25: a module's loss is a sum over the tokens that have such a target, over all tokens."""
    loss = cross_entropy(head(states[0]).flatten(0, 1), labels.flatten())
    for ahead, hidden in enumerate(states[1:], 1):
        logits = head(hidden[:, :-ahead]).flatten(0, 1)
        loss = loss + share * cross_entropy(logits, labels[:, ahead:].flatten(), reduction="sum") / labels.numel()
    return loss


def loss_of(model, ids, labels):
    return loss_after(hidden_states(model, ids, labels), model.lm_head, labels, model.share)


def complete(model, folder):
    """What transformers leaves out of the file, and the released ones have: the shared matrices again for each module."""
    file = folder / "model.safetensors"
    tensors, first = load_file(file), model.config.num_hidden_layers
    for number in range(first, first + model.config.num_mtp_layers):
        tensors[f"model.layers.{number}.embed_tokens.weight"] = model.model.embed_tokens.weight.detach().clone()
        tensors[f"model.layers.{number}.shared_head.head.weight"] = model.lm_head.weight.detach().clone()
    save_file(tensors, file, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["num_nextn_predict_layers"] = config.pop("num_mtp_layers", model.config.num_mtp_layers)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def read_by_transformers(kind, folder, ids, labels):
    """The hidden states of a folder's model and of its modules, as transformers reads and computes them; the model."""
    config = json.loads((folder / "config.json").read_text())
    first = config["num_hidden_layers"]
    kind._keys_to_ignore_on_load_unexpected = [  # those of the released models are 61, 46 and 92
        rf"model\.layers\.{first + i}\." for i in range(config["num_nextn_predict_layers"])]
    main = kind.from_pretrained(folder).eval()
    modules = MtpModel.from_pretrained(main).eval()
    positions = torch.arange(ids.shape[1])[None]
    with torch.no_grad():
        states = [main.model(ids, use_cache=False).last_hidden_state]
        for number in range(modules.num_mtp_layers):
            later = pad(labels[:, number:], (0, number))
            states.append(modules.forward_layer(number, states[-1], positions, None, input_ids=later))
    return states, main


def check_with_transformers(model, folder, ids, labels):
    """The equations above against transformers' modules."""
    theirs, _ = read_by_transformers(type(model), folder, ids, labels)
    with torch.no_grad():
        for ours, other in zip(hidden_states(model, ids, labels), theirs, strict=True):
            torch.testing.assert_close(ours, other, rtol=1e-5, atol=1e-5)
