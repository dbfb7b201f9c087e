"""A Slurm of our own: slurmctld in a temporary folder, which knows the shipped machines as partitions of hosts with
GPUs.

No host runs slurmd: nodes in state CLOUD count as powered down and are scheduled all the same (slurm.conf(5), NodeName,
State; https://slurm.schedmd.com/elastic_computing.html). `sbatch --test-only` validates a script's options against them
and says when and where it would start; nothing is submitted. Authentication is auth/none, which has no keys."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from hardware import MACHINES

START_S = 30
CONFIGURATION = """\
ClusterName=launchable
SlurmctldHost=localhost(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmdPort={slurmd_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=300
MpiDefault=none
"""


# Daemons lie where only root's PATH leads.
os.environ["PATH"] += ":/usr/sbin"


def missing_programs():
    """What is not here of Debian's packages slurmctld and slurm-client."""
    return [name for name in ("slurmctld", "sbatch", "scontrol") if shutil.which(name) is None]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    """`hosts`: {machine: how many}. Use as a context: slurmctld runs within."""

    def __init__(self, hosts):
        self.hosts = hosts

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="launchable-slurm-"))
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        port, slurmd_port = free_ports(2)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        lines = [CONFIGURATION.format(user=user, port=port, slurmd_port=slurmd_port, folder=self.folder)]
        for name, count in sorted(self.hosts.items()):
            nodes = f"{name}-[1-{count}]" if count > 1 else f"{name}-1"
            gpus = MACHINES[name].host_gpus
            lines.append(
                f"NodeName={nodes} CPUs=64 RealMemory=1000000 Gres=gpu:{gpus} State=CLOUD\n"
                f"PartitionName={name} Nodes={nodes} MaxTime=INFINITE State=UP\n"
            )
        (self.folder / "slurm.conf").write_text("".join(lines))
        (self.folder / "gres.conf").write_text("")
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.output = open(self.folder / "output", "w")
        self.process = subprocess.Popen(
            ["slurmctld", "-D", "-f", str(self.folder / "slurm.conf")],
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env=self.environment,
        )
        self.wait()
        return self

    def wait(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            if subprocess.run(["scontrol", "ping"], env=self.environment, capture_output=True).returncode == 0:
                return
            time.sleep(0.2)
        log = self.folder / "slurmctld.log"
        text = (self.folder / "output").read_text() + (log.read_text() if log.exists() else "")
        self.__exit__()
        raise RuntimeError("slurmctld did not start:\n" + "\n".join(text.splitlines()[-5:]))

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def refusal(self, script, machine):
        """Why sbatch does not take a script on a machine's hosts; None where it does."""
        done = subprocess.run(
            ["sbatch", "--test-only", f"--partition={machine}", str(script)],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason"])[-1]
