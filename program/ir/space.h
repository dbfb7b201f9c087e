// Where the bytes of a rank lie.
#pragma once

#include <cstdint>
#include <string_view>

namespace trivium::program {

/// Memory of a rank is split into spaces; a buffer lies at a fixed offset of its chunk's part of a space.
enum class Space : std::uint8_t {
  kParameter,
  kGradient,
  kOptimizer,  ///< moments and, with 16-bit parameters, the fp32 master copy
  kFrame,      ///< what a micro-batch keeps between its forward and its backward; one frame per micro-batch in flight
  kWorkspace,  ///< alive within one body; shared by all bodies of the rank
  kTokens,     ///< ids and labels of a micro-batch, in frames like kFrame
  kDeferred,   ///< what a micro-batch keeps between the two halves of a split backward, in frames of its own
  kStaging,    ///< on the device: what is kept elsewhere, while it is used or copied
  kOffloadedState,       ///< optimizer state in the host's memory or on its disk (Plan::offload)
  kOffloadedGradient,    ///< gradients there
  kOffloadedActivation,  ///< activations there, in frames like kFrame
  kScalar,               ///< loss (fp64) and gradient norm (two fp64) of the step; one per rank
  kGathered,  ///< buckets that are whole only while they are used: gathered parameters, gradients not yet reduced
  kOffloadedParameter,  ///< parameters in the host's memory or on its disk, whole or as shards
  kForwardWorkspace     ///< likewise kWorkspace, of forwards that take turns with a backward
};
constexpr int kSpaces = 15;

/// Whether what lies there is alive within one body.
constexpr bool is_workspace(Space space) { return space == Space::kWorkspace || space == Space::kForwardWorkspace; }

std::string_view name_of(Space space);

/// Whether a space lies outside the device.
constexpr bool is_offloaded(Space space) {
  return space == Space::kOffloadedState || space == Space::kOffloadedGradient ||
         space == Space::kOffloadedActivation || space == Space::kOffloadedParameter;
}

}  // namespace trivium::program
