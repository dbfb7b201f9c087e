// Devices, nodes, links and clusters as the simulator sees them. Values only; the JSON form is in load.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "hardware_profiles/physics.h"

namespace trivium::hardware {

enum class DeviceKind { kGpu, kCpu };
enum class Arithmetic { kFp64, kFp32, kTf32, kBf16, kFp16, kFp8, kFp4 };

/// Measured cost of one op kind on a device whose kernels are profiled rather than modelled (the CPU backend):
/// seconds = overhead + flops * seconds_per_flop + bytes * seconds_per_byte + blocks * seconds_per_block.
struct OpRate {
  base::Seconds overhead;
  double seconds_per_flop = 0;
  double seconds_per_byte = 0;
  double seconds_per_block = 0;  ///< attention: of every 64 queries of a head and sample
  double spread = 0;             ///< relative spread (p90-p10)/p50 of what it was measured from; 0 where unknown
};

/// How the operands of a product in 8 bits or fewer are scaled.
enum class Scaling { kTensor, kBlock, kMxfp8, kNvfp4 };

/// What products of one kind of scaling reach (docs/explanation/cost-model.md).
struct ScaledProduct {
  double efficiency = 0;  ///< over gemm_efficiency, of the fp8 (nvfp4: fp4) peak inside a full wave of tiles
  double ramp = 0;        ///< steps of k that filling and draining a tile's pipeline costs
};

/// Products in 8 bits and the casts before them; without `products` the device has none.
struct Fp8Rates {
  std::map<Scaling, ScaledProduct> products;
  double cast_efficiency = 0;                ///< of memory_bandwidth, of what a cast reads and writes
  double amax_efficiency = 0;                ///< of what is read to find a tensor's largest number
  base::Seconds cast_latency, amax_latency;  ///< of a kernel that has next to nothing to do
};

/// One accelerator, or one CPU core used as a device.
struct Device {
  std::string name;
  DeviceKind kind = DeviceKind::kGpu;
  std::map<Arithmetic, base::FlopsPerSecond> peak;  ///< dense matrix peak; absent: not supported (bf16 on V100)
  base::Bytes memory;                               ///< capacity as the vendor counts it
  base::Bytes reserved;                             ///< context, NCCL, fragmentation: not usable by a plan
  double usable = 1;  ///< share of `memory` that a plan may be predicted to fill; below 1 where a search keeps distance
  base::BytesPerSecond memory_bandwidth;
  int multiprocessors = 0;  ///< SMs; 1 for a CPU core
  bool flash_attention = false;
  base::Watts idle_power, peak_power;
  base::Watts power_limit;  ///< that it is held to (`nvidia-smi -pl`), below peak_power; 0: to none

  // Calibrated physics, shared by all runs on the machine (docs/explanation/cost-model.md has the formulas).
  double compute_scale = 1.0;       ///< sustained clocks of this cluster against the reference
  double gemm_efficiency = 0.76;    ///< of peak, inside a full wave of tiles
  double wgrad_efficiency = 0.94;   ///< weight-gradient GEMM (fp32 accumulation), over the forward's
  double memory_efficiency = 0.77;  ///< of memory_bandwidth, for memory-bound kernels
  base::Seconds kernel_issue;       ///< host time to issue one kernel (floor for small ops)
  Physics physics;
  Fp8Rates fp8;
  /// By op kind name, of attention also by its kernels (program::RateKind); replaces the physics for that kind.
  std::map<std::string, OpRate> op_rates;

  /// What it draws at full load.
  base::Watts full_power() const { return power_limit.value() > 0 ? power_limit : peak_power; }
  /// Of the peak, the clocks that products and fused attention run at: compute_scale, which is that of peak_power, less
  /// what a lower power_limit takes from it.
  double sustained_scale() const;
};

/// How the devices of one node reach each other.
enum class Topology { kNvswitch, kCubeMesh, kPcie, kSharedMemory };

/// A link as collectives see it: affine time = latency + bytes / bandwidth.
struct Link {
  base::BytesPerSecond bandwidth;  ///< one direction, one device (or one network adapter)
  base::Seconds latency;           ///< per collective step, measured end to end
  double efficiency = 1.0;         ///< of bandwidth, reached by large messages
};

struct Node {
  std::string name;
  std::vector<std::string> bases;  ///< profiles it was said to differ from, the nearest first; its values are its own
  Device device;
  int devices = 0;        ///< devices in the node: those that one NVLink domain or bus joins
  int host_devices = 0;   ///< devices of one host, where a domain spans several hosts (NVL72: 4); 0: all of the node
  int whole_devices = 0;  ///< devices of the profile, where a job takes only `devices` of them; 0: it takes them all
  Topology topology = Topology::kNvswitch;
  Link intra;                                         ///< device to device inside the node
  std::map<int, base::BytesPerSecond> allreduce_bus;  ///< measured all-reduce bus bandwidth by group size (1 GiB)
  /// Measured bus bandwidth of reduce-scatters and all-gathers by group size, where the switch itself sums all-reduces
  /// (NVLink SHARP) and their table says nothing of the halves; may be empty
  std::map<int, base::BytesPerSecond> gather_bus;
  std::map<int, base::Seconds> allreduce_latency;  ///< measured time of a tiny all-reduce by group size; may be empty
  /// Of cores: by which share ops take longer with two ranks a core, by the bytes of all ranks per core; may be empty
  std::map<std::int64_t, double> core_sharing;
  int adapters = 0;  ///< network adapters of the node
  Link network;      ///< of one adapter
  /// Rings and trees over N nodes reach efficiency x (2 / N)^falloff of the adapters
  double network_falloff = 0;
  int leaf_nodes = 0;              ///< nodes under one leaf switch of a fat tree; 0: the network never blocks
  double oversubscription = 1;     ///< what the nodes of a leaf can send over what its uplinks carry
  base::Seconds collective_skew;   ///< extra time of a collective per log2(ranks): hosts that arrive late
  bool asynchronous_lanes = true;  ///< false: collectives run on the compute lane (CPU backend)
  base::Bytes host_memory;
  base::BytesPerSecond host_link;              ///< device to host memory, one direction
  int devices_per_host_link = 1;               ///< neighbours behind one PCIe switch share its way to the host
  base::BytesPerSecond disk;                   ///< of the node's local drives together; 0: none to offload to
  base::Watts overhead_power;                  ///< of the node in addition to its devices
  base::DollarsPerHour price;                  ///< of the node
  std::map<std::string, std::string> stacks;   ///< software on it -> the variant of it that its measured runs show
  std::map<std::string, std::string> sources;  ///< JSON pointer of a constant -> where it comes from

  /// Devices that one host holds, which launchers call a node.
  int devices_of_host() const { return host_devices > 0 ? host_devices : devices; }
};

struct NodeGroup {
  Node node;
  int count = 0;
  int site = 0;  ///< where it stands: groups of one site reach each other through their adapters alone
};

/// What joins two sites: all that crosses it shares its bandwidth, and has its latency in addition to that of the
/// nodes' adapters.
struct SiteLink {
  int a = 0, b = 0;    ///< sites, a < b
  Link link;           ///< bandwidth: each way, of all flows together
  std::string source;  ///< where its constants come from
};

/// Nodes in rank order: ranks fill the first node's devices, then the next node's.
struct Cluster {
  std::string name;
  std::vector<NodeGroup> groups;
  std::vector<SiteLink> links{};  ///< sites without one are joined by their adapters alone

  int nodes() const;    ///< nodes of all groups
  int devices() const;  ///< devices of all nodes
  bool homogeneous() const { return groups.size() == 1; }
  const Node& node_of_device(int device) const;  ///< the node kind that holds the device, 0 <= device < devices()
  int node_index(int device) const;              ///< 0-based index of the node that holds the device
  int site_of_device(int device) const;          ///< the site of its group
  const SiteLink* link_between(int site, int other) const;  ///< nullptr: none, or the same site
};

}  // namespace trivium::hardware
