"""Facts of the machines that Trivium ships, from the makers' documents; nothing here is read from our profiles.

`host_gpus`: GPUs that one operating system sees, which bounds processes per host. `domain_gpus`: GPUs that reach each
other's memory over NVLink (1: none). `hosts`: hosts that one "node" of our cluster names has. `sm`: CUDA compute
capability (https://developer.nvidia.com/cuda-gpus). `multicast`: whether CUDA multicast works (NVLink SHARP: NVSwitch
of the third generation or newer, which came with Hopper; CUDA driver API, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED)."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Machine:
    gpu: str
    sm: tuple
    host_gpus: int
    domain_gpus: int
    multicast: bool = False
    hosts: int = 1

    @property
    def node_gpus(self):
        return self.host_gpus * self.hosts


# NVIDIA DGX-1 (8 V100 in a cube mesh, NVLink 2) and AWS p3.16xlarge, which is the same board; DGX-2 (16 V100,
# NVSwitch).
V100 = Machine("V100", (7, 0), host_gpus=8, domain_gpus=8)
DGX2 = Machine("V100", (7, 0), host_gpus=16, domain_gpus=16)
# IDRIS, Jean Zay: "4 GPUs Nvidia Tesla V100 SXM2" a node
# (http://www.idris.fr/eng/jean-zay/cpu/jean-zay-cpu-hw-eng.html)
JEAN_ZAY_V100 = Machine("V100", (7, 0), host_gpus=4, domain_gpus=4)
# NVIDIA DGX A100 data sheet: eight A100, six NVSwitches of the second generation (no multicast).
A100 = Machine("A100", (8, 0), host_gpus=8, domain_gpus=8)
# PCIe cards: bridges of two at most, which no profile of ours has; groups of more have no NVLink.
A100_PCIE = Machine("A100 PCIe", (8, 0), host_gpus=8, domain_gpus=1)
H100_PCIE = Machine("H100 PCIe", (9, 0), host_gpus=8, domain_gpus=1)
# NVIDIA L40S data sheet: "NVLink support: no". GeForce RTX 4090: no NVLink, and the driver offers no peer access
# (NVIDIA staff,
# https://forums.developer.nvidia.com/t/standard-nvidia-cuda-tests-fail-with-dual-rtx-4090-linux-box/233202).
L40S = Machine("L40S", (8, 9), host_gpus=8, domain_gpus=1)
RTX_4090 = Machine("RTX 4090", (8, 9), host_gpus=8, domain_gpus=1)
# NVIDIA DGX H100, HGX H200, DGX B200 and DGX B300 data sheets: eight GPUs, NVSwitch of the third generation or newer.
H100 = Machine("H100", (9, 0), host_gpus=8, domain_gpus=8, multicast=True)
H200 = Machine("H200", (9, 0), host_gpus=8, domain_gpus=8, multicast=True)
H200_ONE = Machine("H200", (9, 0), host_gpus=1, domain_gpus=1)
H200_FOUR = Machine("H200", (9, 0), host_gpus=4, domain_gpus=4, multicast=True)
B200 = Machine("B200", (10, 0), host_gpus=8, domain_gpus=8, multicast=True)
B200_FOUR = Machine("B200", (10, 0), host_gpus=4, domain_gpus=4, multicast=True)
B300 = Machine("B300", (10, 3), host_gpus=8, domain_gpus=8, multicast=True)
# NVIDIA GB200 NVL72 and GB300 NVL72 data sheets: 18 compute trays of four GPUs, one NVLink domain of 72.
GB200 = Machine("GB200", (10, 0), host_gpus=4, domain_gpus=72, multicast=True, hosts=18)
GB300 = Machine("GB300", (10, 3), host_gpus=4, domain_gpus=72, multicast=True, hosts=18)

MACHINES = {
    "a100-pcie-40gb": A100_PCIE,
    "a100-pcie-80gb": A100_PCIE,
    "aws-p3-16xlarge-v100-16gb": V100,
    "azure-ndm-a100-80gb": A100,
    "b200-4x": B200_FOUR,
    "b200-hgx": B200,
    "dgx-a100-40gb": A100,
    "dgx-a100-80gb": A100,
    "dgx-b200": B200,
    "dgx-b300": B300,
    "dgx-h100": H100,
    "dgx-h100-80gb": H100,
    "dgx1-v100-16gb": V100,
    "dgx1-v100-32gb": V100,
    "dgx2-v100-32gb": DGX2,
    "eos-dgx-h100": H100,
    "gb200-nvl72": GB200,
    "gb300-nvl72": GB300,
    "gcp-a3-h100": H100,
    "grand-teton-h100-96gb-500w": H100,
    "h100-8x": H100,
    "h100-pcie-80gb": H100_PCIE,
    "h200": H200,
    "h200-hgx": H200,
    "h200-trivium": H200_ONE,
    "h800-hgx": H100,
    "hf-h100-80gb-efa": H100,
    "ibm-h100-800gbps": H100,
    "internevo-a100-80gb-4x100g-roce": A100,
    "jean-zay-a100-80gb": A100,
    "jean-zay-v100-16gb": JEAN_ZAY_V100,
    "jean-zay-v100-32gb": JEAN_ZAY_V100,
    "kempner-h200-4x": H200_FOUR,
    "l40s": L40S,
    "mlperf-b200": B200,
    "mlperf-b300": B300,
    "mlperf-gb200-nvl72": GB200,
    "mlperf-gb300-nvl72": GB300,
    "mlperf-h100": H100,
    "mlperf-h200": H200,
    "mosaic-a100-40gb": A100,
    "mosaic-a100-80gb": A100,
    "mosaic-h100-80gb": H100,
    "rtx-4090": RTX_4090,
    "selene-dgx-a100-80gb": A100,
    "simumax-b200-8x": B200,
    "vtrain-a100-80gb-800gbps": A100,
    "vtrain-hgx-a100": A100,
    "whitefiber-h200": H200,
}


@dataclasses.dataclass(frozen=True)
class Cluster:
    """So many of our "nodes" of one machine, as hosts in the order in which Slurm fills them: racks after each
    other."""

    name: str
    machine: Machine
    nodes: int

    @classmethod
    def of(cls, text):
        name, _, count = text.partition(":")
        return cls(name, MACHINES[name], int(count or 1))

    @property
    def hosts(self):
        return self.nodes * self.machine.hosts

    @property
    def gpus(self):
        return self.nodes * self.machine.node_gpus

    def in_one_domain(self, group, world, processes_per_host, segment=0):
        """Whether every group of so many consecutive ranks lies in one NVLink domain. Racks are filled one after the
        other, or with `segment` hosts of each, as Slurm's --segment asks of its block topology (sbatch(1))."""
        if group <= 1:
            return True
        if self.machine.domain_gpus == 1:
            return False
        hosts = max(1, self.machine.domain_gpus // self.machine.host_gpus)
        ranks = processes_per_host * (min(segment, hosts) or hosts)
        return all(first // ranks == (first + group - 1) // ranks for first in range(0, world, group))
