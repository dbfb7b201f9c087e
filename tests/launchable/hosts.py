"""Hosts, processes and Slurm's lines: what has to fit the machine whatever the trainer."""


def world_of(file):
    nodes = file.launch_number("nnodes", "num-nodes")
    processes = file.launch_number("nproc-per-node", "num-gpus")
    return nodes, processes


def check_hosts(file, cluster, found):
    """Processes against the GPUs of hosts. Returns (hosts, processes a host), or None where the file says neither.

    torchrun starts nproc_per_node processes on each of nnodes hosts and gives each its LOCAL_RANK, with which every
    trainer here calls torch.cuda.set_device (PyTorch 2.9, torch/distributed/run.py, "--nproc-per-node"; Megatron-LM
    d98e8a64ddf3, megatron/training/initialize.py, _initialize_distributed): more of them than GPUs is an invalid
    device ordinal. DeepSpeed takes --num_gpus devices of every host (edaa72212672, deepspeed/launcher/runner.py, main).
    """
    nodes, processes = world_of(file)
    if not found.require(
        nodes and processes, "no-hosts", f"{file.launcher} says {nodes} hosts of {processes} processes"
    ):
        return None
    machine = cluster.machine
    found.require(
        processes <= machine.host_gpus,
        "processes-in-host",
        f"{processes} processes in a host of {machine.host_gpus} {machine.gpu}",
    )
    found.require(
        nodes * processes <= cluster.gpus,
        "more-than-cluster",
        f"{nodes} x {processes} processes on {cluster.gpus} GPUs",
    )
    if processes <= machine.host_gpus:
        found.require(nodes <= cluster.hosts, "more-than-cluster", f"{nodes} hosts of {cluster.hosts}")
    if file.has_sbatch:
        check_sbatch(file, nodes, processes, found)
    if file.launcher == "deepspeed":
        check_hostfile(file, nodes, processes, found)
    return nodes, processes


def check_sbatch(file, nodes, processes, found):
    """Slurm's sbatch(1): --nodes hosts with --gpus-per-node GPUs each. One task a host starts torchrun, which starts
    the rest, so every host needs a task, and as many GPUs as torchrun starts processes."""
    said = file.sbatch
    found.require(
        said.get("nodes") == str(nodes),
        "sbatch-nodes",
        f"#SBATCH --nodes={said.get('nodes')}, torchrun --nnodes {nodes}",
    )
    found.require(
        said.get("ntasks-per-node") == "1",
        "sbatch-tasks",
        f"#SBATCH --ntasks-per-node={said.get('ntasks-per-node')} would start torchrun so often in a host",
    )
    gpus = said.get("gpus-per-node", said.get("gres", "").rpartition(":")[2])
    found.require(
        gpus.isdigit() and int(gpus) >= processes,
        "sbatch-gpus",
        f"#SBATCH asks for {gpus or 'no'} GPUs a host, torchrun starts {processes} processes",
    )


def check_hostfile(file, nodes, processes, found):
    """deepspeed/launcher/runner.py, fetch_hostfile: without the file, --num_nodes above 1 raises "Num nodes is >1 but
    no extra nodes available via hostfile"; lines are "NAME slots=N" (_parse_hostfile)."""
    if nodes == 1:
        return
    if not found.require("hostfile" in file.launch, "no-hostfile", f"--num_nodes {nodes} without --hostfile"):
        return
    name = file.launch["hostfile"][0]
    if name in file.files:
        lines = [line.split() for line in file.files[name].splitlines() if line.strip() and not line.startswith("#")]
        hosts = [words[0] for words in lines]
        found.require(len(set(hosts)) == len(hosts) >= nodes, "hostfile-hosts", f"{len(set(hosts))} hosts for {nodes}")
        slots = {word.partition("=")[2] for words in lines for word in words if word.startswith("slots=")}
    else:
        # The file is left to the user, with what it must say in a comment.
        slots = {word.partition("=")[2].strip('"') for word in file.text.split() if word.startswith("slots=")}
    found.require(slots == {str(processes)}, "hostfile-slots", f"slots {sorted(slots)} for --num_gpus {processes}")
