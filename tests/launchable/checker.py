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
    """The findings of one file. `plan`: the fields of the plan that it was exported from, which it has to say."""
    found = Findings()
    try:
        said = CHECKS[trainer](Exported(text), Cluster.of(cluster), found)
    except Unreadable as error:
        return [Finding("unreadable", str(error))]
    if plan:
        meant = {**plan, "eight_bits": plan.get("fp8", "none") != "none"}
        for name, value in said.items():
            if name in meant and meant[name] != value:
                found.append(Finding("not-the-plan", f"{name} {meant[name]} in the plan, {value} in the file"))
    return found
