// Where the time of an iteration goes: a partition of the compute lane that sums exactly.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simulator/schedule/engine.h"

namespace trivium::simulator {

enum class Part : std::uint8_t {
  kCompute,
  kRecompute,
  kExposedTensor,
  kExposedContext,
  kExposedExpert,
  kExposedData,
  kExposedPipeline,
  kExposedOffload,
  kBubble,
  kOptimizer,
  kOther
};
constexpr int kParts = 11;
std::string_view name_of(Part part);  ///< "compute", "exposed_tensor", …

/// Picoseconds by part; their sum is the iteration.
using Breakdown = std::array<std::int64_t, kParts>;

/// Partition of [0, iteration_ps] of one stage. Busy time of the compute lane counts by what it computes; time it idles
/// counts as exposed communication while a transfer or collective of this stage is under way (tensor, then context,
/// data, pipeline and offload), else as bubble: it waits for other stages. `other` is what a segment's own overlap
/// leaves unexplained. `spans`: of the stage, in order of start. `op_ps`: durations of the stage's ops, to split
/// whole-segment spans.
Breakdown break_down(const program::Program& program, const program::Role& role, const std::vector<Span>& spans,
                     const std::vector<std::vector<std::int64_t>>& op_ps, std::int64_t iteration_ps);

}  // namespace trivium::simulator
