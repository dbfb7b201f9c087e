// How long one kernel takes on a device: pure functions of shapes and constants (docs/explanation/cost-model.md).
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "hardware_profiles/hardware.h"
#include "program/ir/op.h"
#include "program/plan/stack.h"

namespace trivium::simulator {

/// Time of a compute op. A device with an OpRate for the kind is costed from what was measured; else by physics: GEMMs
/// by tiles and waves, memory-bound kernels by bytes, never below the host's issue time. The device must support the
/// op's dtype (`Device::peak`): the check of a plan refuses it earlier.
base::Seconds compute_cost(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack);

/// Time on the device alone, as if the host had issued it long before.
base::Seconds device_cost(const program::Op& op, const hardware::Device& device, const program::StackTraits& stack);

/// What the time of an op depends on, wherever the ranks lie.
struct OpWork {
  base::Seconds device, issue;  ///< of the kernel; of the host, where it issues the op apart from the device
  bool elsewhere = false;       ///< communication and copies
  bool holds_kernels = false;
  bool issued = false, synchronises = false;
  bool tensor_collective = false;
};
std::vector<OpWork> segment_work(std::span<const program::Op> ops, const hardware::Device& device,
                                 const program::StackTraits& stack);

/// Times of the ops of a run that the host issues without waiting (a segment of a body), same order. The host runs
/// ahead of long kernels, so its floor holds for the run as a whole and not kernel by kernel: the sum is never above
/// that of compute_cost over the same ops. `communication`, copies included (empty, or one entry an op, 0 for compute),
/// comes back as it is, `collective_issue` more of the host's time for every tensor collective: issuing it keeps the
/// host busy, and on the compute lane the host runs ahead of it as of kernels.
std::vector<base::Seconds> segment_costs(std::span<const program::Op> ops, const hardware::Device& device,
                                         const program::StackTraits& stack,
                                         std::span<const base::Seconds> communication = {},
                                         base::Seconds collective_issue = base::Seconds(0));
std::vector<base::Seconds> segment_costs(std::span<const OpWork> work, const hardware::Device& device,
                                         std::span<const base::Seconds> communication, base::Seconds collective_issue);

}  // namespace trivium::simulator
