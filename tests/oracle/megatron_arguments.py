"""megatron_arguments.py CHECKOUT RANKS FILE: reads a script of `trivium export` as the trainer's own code reads it.

CHECKOUT is of Megatron-LM or of Megatron-DeepSpeed. FILE is started with launchers that only keep their arguments; the
checkout's parse_args and validate_args take those of pretrain_gpt.py. Prints what they made of them as JSON.
"""

import json
import os
import pathlib
import subprocess
import sys
import types
import typing

import torch
import typing_extensions

checkout, ranks, script = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
for launcher in ("torchrun", "deepspeed"):
    pathlib.Path(launcher).write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > arguments\n", encoding="utf-8")
    os.chmod(launcher, 0o755)
subprocess.run(["bash", script], env={**os.environ, "PATH": f".:{os.environ['PATH']}", "HEAD": "host0", "DATA": "text"},
               check=True)
words = pathlib.Path("arguments").read_text(encoding="utf-8").splitlines()

# No GPU is here: it is said to be an H100. Python below 3.12 keeps `override` elsewhere.
torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0)
torch.cuda.get_device_capability = lambda *_: (9, 0)
typing.override = typing_extensions.override
os.environ.update(WORLD_SIZE=ranks, RANK="0", LOCAL_RANK="0", CUDA_DEVICE_MAX_CONNECTIONS="1")
sys.path.insert(0, str(checkout))
sys.argv = words[words.index("pretrain_gpt.py"):]
if (checkout / "megatron" / "training" / "arguments.py").exists():
    from megatron.training import arguments as megatron_arguments
    from megatron.training.arguments import parse_args, validate_args
    # Transformer Engine does not install without a GPU: it is said to be the one that the arguments ask for.
    megatron_arguments.is_te_min_version = lambda *_, **__: True
else:
    from megatron.arguments import parse_args, validate_args
arguments = parse_args()
validate_args(arguments)


def value(*names):
    return next((getattr(arguments, name) for name in names if hasattr(arguments, name)), None)


experts = value("num_experts")
print("\n" + json.dumps({
    "layers": value("num_layers"), "hidden": value("hidden_size"), "heads": value("num_attention_heads"),
    "experts": (experts[0] if isinstance(experts, list) else experts) or 1,
    "sequence": value("seq_length"), "global_batch": value("global_batch_size"), "micro_batch": value("micro_batch_size"),
    "tensor": value("tensor_model_parallel_size"), "pipeline": value("pipeline_model_parallel_size"),
    "context": value("context_parallel_size", "ds_sequence_parallel_size"), "data": value("data_parallel_size"),
    "expert": value("expert_model_parallel_size", "moe_expert_parallel_size") or 1,
    "sequence_parallel": bool(value("sequence_parallel"))}))
