#include "hardware_profiles/capabilities.h"

#include <array>

namespace trivium::hardware {
namespace {

bool is_gpu(const Node& node) { return node.device.kind == DeviceKind::kGpu; }

bool has_peak(const Node& node, Arithmetic arithmetic) { return node.device.peak.contains(arithmetic); }

bool has_scaled(const Node& node, Arithmetic arithmetic, Scaling scaling) {
  return has_peak(node, arithmetic) && node.device.fp8.products.contains(scaling);
}

// Profiles say how devices are joined: by NVLink switches, by NVLink from device to device, by PCIe.
bool has_nvlink(const Node& node) {
  return is_gpu(node) && (node.topology == Topology::kNvswitch || node.topology == Topology::kCubeMesh);
}

// Compute capability 8.0 brought bf16 (CUDA C++ Programming Guide, "Arithmetic Instructions"), which profiles state.
bool is_ampere_or_newer(const Node& node) { return is_gpu(node) && has_peak(node, Arithmetic::kBf16); }

constexpr std::array<CapabilityRule, 13> kTable{{
    {Capability::kHalfPrecision, "fp16", "precision", "a peak for fp16", "data sheets",
     [](const Node& node) { return has_peak(node, Arithmetic::kFp16); }},
    {Capability::kBf16, "bf16", "precision", "a peak for bf16", "data sheets; compute capability 8.0",
     [](const Node& node) { return has_peak(node, Arithmetic::kBf16); }},
    {Capability::kFlashAttention, "fused attention", "attention", "flash_attention",
     "FlashAttention's README: Ampere, Ada, Hopper or newer",
     [](const Node& node) { return node.device.flash_attention; }},
    {Capability::kFp8Tensor, "fp8, one scale a tensor", "fp8 delayed, current", "a peak and rates for fp8 tensor",
     "Transformer Engine, check_fp8_support: compute capability 8.9",
     [](const Node& node) { return has_scaled(node, Arithmetic::kFp8, Scaling::kTensor); }},
    {Capability::kFp8Block, "fp8 by blocks", "fp8 block", "a peak and rates for fp8 block",
     "Transformer Engine, check_fp8_block_scaling_support: compute capability 9.0",
     [](const Node& node) { return has_scaled(node, Arithmetic::kFp8, Scaling::kBlock); }},
    {Capability::kMxfp8, "mxfp8", "fp8 mxfp8", "a peak for fp8 and rates for mxfp8",
     "Transformer Engine, check_mxfp8_support: compute capability 10.0",
     [](const Node& node) { return has_scaled(node, Arithmetic::kFp8, Scaling::kMxfp8); }},
    {Capability::kNvfp4, "nvfp4", "fp8 nvfp4", "a peak for fp4 and rates for nvfp4",
     "Transformer Engine, check_nvfp4_support: compute capability 10.0",
     [](const Node& node) { return has_scaled(node, Arithmetic::kFp4, Scaling::kNvfp4); }},
    {Capability::kPeerBuffers, "peer buffers",
     "overlap.tensor of Megatron-Core (user buffers) and torchtitan (symmetric memory), inside one NVLink domain",
     "topology nvswitch or cube-mesh, and a peak for bf16",
     "Transformer Engine issue 1071 and pull request 1470: one node, or multi-node NVLink; PyTorch symmetric memory: "
     "peer access; GeForce has none",
     [](const Node& node) { return why_no_peer_buffers(node).empty(); }},
    {Capability::kTokenDispatch, "token dispatch", "expert_dispatch deepep and hybrid",
     "topology nvswitch or cube-mesh, and a peak for bf16",
     "Megatron-Bridge, flex_dispatcher_backend.py: compute capability 8, 9 or 10; DeepEP's README: NVLink inside a "
     "node",
     [](const Node& node) { return has_nvlink(node) && is_ampere_or_newer(node); }},
    {Capability::kSwitchSums, "sums in the switch", "no field: all-reduces are priced by the profile's tables",
     "gather_bus", "nccl-tests of the machine: all-reduces above the line rate (NVLink SHARP)",
     [](const Node& node) { return !node.gather_bus.empty(); }},
    {Capability::kCudaGraphs, "CUDA graphs", "no field: stacks that capture their steps", "a GPU",
     "CUDA 10: every GPU that a profile may describe", is_gpu},
    {Capability::kHostOffload, "offload to the host", "offload.* host",
     "nothing: every node has host_link and host_memory",
     "the host's memory is a limit of its own, refused as out-of-memory",
     [](const Node& node) { return node.host_link.value() > 0 && node.host_memory.value() > 0; }},
    {Capability::kDisk, "offload to disk", "offload.* disk", "disk", "the profile's drives",
     [](const Node& node) { return node.disk.value() > 0; }},
}};

}  // namespace

std::span<const CapabilityRule> capability_table() { return kTable; }

const CapabilityRule& rule_of(Capability capability) { return kTable.at(static_cast<std::size_t>(capability)); }

bool has(const Node& node, Capability capability) { return rule_of(capability).holds(node); }

std::string_view why_no_peer_buffers(const Node& node) {
  if (!is_gpu(node)) return "its devices are cores";
  if (!has_nvlink(node)) return "its devices are joined by PCIe, without NVLink";
  return is_ampere_or_newer(node) ? "" : "its devices are older than compute capability 8.0";
}

}  // namespace trivium::hardware
