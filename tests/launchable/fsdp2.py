"""PyTorch 2.9, fully_shard: a script of its own with constants at its top, started with torchrun."""

from exported import assignments
import hosts


def check(file, cluster, found):
    place = hosts.check_hosts(file, cluster, found)
    said = assignments(file.python)
    data, shard, zero = said["DATA"], said.get("SHARD", said["DATA"]), said["ZERO"]
    if place:
        # the script itself: "this plan is for N processes"
        found.require(
            place[0] * place[1] == data, "world-size", f"{data} replicas for {place[0]} x {place[1]} processes"
        )
    # torch/distributed/device_mesh.py, init_device_mesh: the mesh has as many ranks as the world
    found.divides(shard, data, "shards", f"replicas over shards of {shard}")
    found.divides(
        said["MICRO_BATCH"] * data, said["GLOBAL_BATCH"], "batch", f"global batch over mb{said['MICRO_BATCH']} DP{data}"
    )
    found.require(
        zero in (0, 2, 3), "zero-stage", f"ZeRO-{zero}: fully_shard shares gradients and parameters, DDP nothing"
    )
    found.require(said["RECOMPUTE"] in ("none", "full"), "recompute", str(said["RECOMPUTE"]))
    # CUDA C++ programming guide, "Tensor cores": bfloat16 from compute capability 8.0 on
    found.require(
        said["PRECISION"] != "bf16" or cluster.machine.sm >= (8, 0), "bf16-device", f"bf16 on {cluster.machine.gpu}"
    )
    alone = {"tensor": 1, "pipeline": 1, "context": 1, "expert": 1}
    return {**alone, "data": data, "micro_batch": said["MICRO_BATCH"], "eight_bits": False}
