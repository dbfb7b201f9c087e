"""Records tests/data/deepspeed_cpu.log: twelve steps of a small transformer under DeepSpeed on one core, what it logs.

DS_ACCELERATOR=cpu python record_deepspeed.py > deepspeed_cpu.log 2>&1: its loggers keep warnings alone unless they are told.
"""

import logging
import os

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
                  DS_ACCELERATOR="cpu")
import deepspeed  # noqa: E402: reads the environment
import torch  # noqa: E402
from deepspeed.runtime.utils import see_memory_usage  # noqa: E402
from deepspeed.utils import logger  # noqa: E402
from torch import nn  # noqa: E402

VOCABULARY, SEQUENCE, HIDDEN, HEADS, MICRO_BATCH, MICRO_BATCHES = 97, 32, 48, 4, 2, 48
CONFIG = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": MICRO_BATCH, "steps_per_print": 2,
          "wall_clock_breakdown": False, "zero_optimization": {"stage": 0},
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}}}


def main():
    for each in (logger, *logger.handlers):
        each.setLevel(logging.INFO)
    torch.set_num_threads(1)
    layers = (nn.TransformerEncoderLayer(HIDDEN, HEADS, 4 * HIDDEN, 0.0, batch_first=True) for _ in range(2))
    model = nn.Sequential(nn.Embedding(VOCABULARY, HIDDEN), *layers, nn.Linear(HIDDEN, VOCABULARY))
    deepspeed.init_distributed(dist_backend="gloo")
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=CONFIG)
    for _ in range(MICRO_BATCHES):
        tokens = torch.randint(VOCABULARY, (MICRO_BATCH, SEQUENCE + 1))
        logits = engine(tokens[:, :-1])
        engine.backward(nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()))
        engine.step()
    see_memory_usage("after training", force=True)


main()
