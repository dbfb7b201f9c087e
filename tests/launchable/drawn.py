"""Jobs drawn from what Trivium ships: models x clusters x trainers, with a seed."""

import dataclasses
import random

from hardware import MACHINES

TRAINERS = ("megatron", "megatron-bridge", "torchtitan", "deepspeed", "fsdp2")
STATE_BYTES = 18  # a parameter, its gradient and AdamW's state in mixed precision (arXiv 2104.04473 and others)
MOST_GPUS = 288
RECIPES = ("delayed", "current", "block", "mxfp8", "nvfp4")


@dataclasses.dataclass(frozen=True)
class Job:
    model: str
    cluster: str
    trainer: str
    batch: int
    sequence: int
    more: tuple = ()

    @property
    def options(self):
        return [
            "--model",
            self.model,
            "--sequence",
            str(self.sequence),
            "--cluster",
            self.cluster,
            "--global-batch",
            str(self.batch),
            "--for",
            self.trainer,
            *self.more,
        ]

    @property
    def machine(self):
        return self.cluster.partition(":")[0]

    def command(self):
        return "trivium plan " + " ".join(self.options)


def draw(models, profiles, seed):
    """Endless jobs. `models`: as `trivium models --json` lists them, `profiles`: as `trivium profiles --json`. The
    number of nodes is drawn among those that hold the model's state and not many times more, so that most jobs have a
    plan; every trainer comes as often as the others."""
    random_of = random.Random(seed)
    models = [model for model in models if model["parameters"] > 2e8]
    profiles = [profile for profile in profiles if profile["name"] in MACHINES]
    trainers = []
    while True:
        trainers = trainers or random_of.sample(TRAINERS, len(TRAINERS))
        model, profile = random_of.choice(models), random_of.choice(profiles)
        node = profile["devices"]
        least = model["parameters"] * STATE_BYTES / (profile["memory_bytes"] * node)
        # Half of them powers of two, as people rent them, the others anything.
        nodes = random_of.choice([1, 2, 4, 8, 16, 32]) if random_of.random() < 0.6 else random_of.randint(1, 24)
        if not least <= nodes <= max(8 * least, 4) or nodes * node > MOST_GPUS or nodes * node < 2:
            continue
        if nodes > 1 and not profile["adapters"]:
            continue  # cards of one host
        longest = model["max_sequence"]
        sequence = random_of.choice(
            [length for length in (512, 1024, 2048, 4096, 8192, 16384, 32768) if length <= longest] or [longest]
        )
        replicas = random_of.choice([1, 2, 4, 8, 16])
        batch = (
            nodes * node * replicas
            if random_of.random() < 0.7
            else random_of.choice([64, 96, 128, 192, 256, 512, 1024])
        )
        more = ("--fp8", random_of.choice(RECIPES)) if random_of.random() < 0.2 else ()
        yield Job(model["name"], f"{profile['name']}:{nodes}", trainers.pop(), batch, sequence, more)
