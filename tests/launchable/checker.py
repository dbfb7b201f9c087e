"""Whether an exported file could start on a cluster, judged by the rules of the trainer that it is for.

Nothing here uses Trivium: the file is read as bash, Slurm and the trainer read it, the hardware is in hardware.py, and
every rule names the place in the trainer's own source or documentation."""

import deepspeed
import fsdp2
import megatron
import megatron_bridge
import torchtitan
from exported import Exported, Unreadable
from findings import Finding, Findings
from hardware import Cluster

CHECKS = {
    "megatron": megatron.check,
    "megatron-bridge": megatron_bridge.check,
    "torchtitan": torchtitan.check,
    "deepspeed": deepspeed.check,
    "fsdp2": fsdp2.check,
}


def check_file(text, trainer, cluster, plan=None):
    """The findings of one file. `plan`: the fields of the plan that it was exported from, whose split it has to
    have."""
    found = Findings()
    try:
        sizes = CHECKS[trainer](Exported(text), Cluster.of(cluster), found)
    except Unreadable as error:
        return [Finding("unreadable", str(error))]
    for name in sizes if plan else ():
        if plan[name] != sizes[name]:
            found.append(Finding("not-the-plan", f"{name} {plan[name]} in the plan, {sizes[name]} in the file"))
    return found
