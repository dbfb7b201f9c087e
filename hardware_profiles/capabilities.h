// What hardware can do, one rule each: the search, the simulator and the files for other trainers all ask here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

enum class Capability : std::uint8_t {
  kHalfPrecision,   ///< products in fp16
  kBf16,            ///< products in bf16
  kFlashAttention,  ///< fused attention kernels
  kFp8Tensor,       ///< fp8 with one scale a tensor: delayed and current scaling
  kFp8Block,        ///< fp8 scaled by blocks
  kMxfp8,           ///< fp8 in the format of the Open Compute Project
  kNvfp4,           ///< NVIDIA's 4-bit format
  kPeerBuffers,     ///< kernels that read and write the memory of peers over NVLink
  kTokenDispatch,   ///< DeepEP and HybridEP
  kSwitchSums,      ///< the NVLink switch adds up all-reduces (NVLink SHARP)
  kCudaGraphs,      ///< captured launches
  kHostOffload,     ///< state and activations in the host's memory, the optimizer on its cores
  kDisk             ///< state on local drives
};

struct CapabilityRule {
  Capability capability{};
  std::string_view name;   ///< "peer buffers"
  std::string_view used;   ///< by which fields of a plan, or where it is priced
  std::string_view needs;  ///< what the profile of a node must say
  std::string_view source;
  bool (*holds)(const Node& node);
};

/// One row for every capability, in the order of the enumeration.
std::span<const CapabilityRule> capability_table();
const CapabilityRule& rule_of(Capability capability);

/// Whether nodes of the kind have it. Where several must cooperate, all of them must lie in one node: an NVLink domain.
bool has(const Node& node, Capability capability);

/// Why peers of the node cannot reach each other's memory: "its devices are joined by PCIe, without NVLink". Empty:
/// they can.
std::string_view why_no_peer_buffers(const Node& node);

}  // namespace trivium::hardware
