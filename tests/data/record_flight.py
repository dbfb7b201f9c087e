"""Records dumps of PyTorch's Flight Recorder on two CPU processes (gloo, PyTorch 2.10), as flight_*_rank_* here.

usage: record_flight.py missing|disagree FOLDER       # starts both ranks; paths of the machine are shortened

missing: after an all-gather rank 0 enters an all-reduce that rank 1 never enters.
disagree: both enter collective number 3 of the default group, one an all-reduce, the other a broadcast.
"""

import os
import subprocess
import sys
import time


def train(rank, case, folder):
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as c10d

    dist.init_process_group("gloo")
    x = torch.ones(1000)
    for _ in range(2):
        dist.all_reduce(x)
    if case == "missing":
        second = dist.new_group([0, 1], group_desc="second")
        dist.all_gather_into_tensor(torch.zeros(2000), x, group=second)
        if rank == 0:
            dist.all_reduce(x, group=second, async_op=True)
    elif rank == 0:
        dist.all_reduce(x, async_op=True)
    else:
        dist.broadcast(x[:500], 0, async_op=True)
    time.sleep(1)
    dump = c10d._dump_fr_trace_json() if case == "disagree" else c10d._dump_fr_trace(True, True, False)
    dump = dump.encode() if isinstance(dump, str) else dump
    site = os.path.dirname(os.path.dirname(torch.__file__)).encode()
    same_length = b"/python".ljust(len(site), b"_")
    here = os.path.dirname(os.path.abspath(__file__)).encode()
    dump = dump.replace(site, same_length).replace(here, b"/job".ljust(len(here), b"_"))
    with open(os.path.join(folder, f"flight_{case}_rank_{rank}"), "wb") as file:
        file.write(dump)
    time.sleep(2)
    os._exit(0)  # nobody waits for what never ends


if __name__ == "__main__":
    if len(sys.argv) == 4:
        train(int(sys.argv[3]), sys.argv[1], sys.argv[2])
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT="29781", WORLD_SIZE="2", TORCH_FR_BUFFER_SIZE="2000")
    ranks = [
        subprocess.Popen([sys.executable, __file__, *sys.argv[1:], str(rank)], env=dict(environment, RANK=str(rank)))
        for rank in range(2)
    ]
    for rank in ranks:
        rank.wait()
