#include "simulator/memory/crowding.h"

#include <algorithm>
#include <cmath>

namespace trivium::simulator {
namespace {

constexpr double kSlope = 8;    // of the time, per share of the memory that is missing
constexpr double kMost = 0.35;  // what was seen at the most

/// Parameters of the largest unit that is gathered by itself.
double unit_bytes(const program::Program& program) {
  std::int64_t largest = 0;
  for (const program::ChunkTemplate& kind : program.kinds) {
    for (const program::Bucket& bucket : kind.buckets) largest = std::max(largest, bucket.elements);
  }
  return static_cast<double>(largest * program::size_of(program.settings.precision));
}

}  // namespace

double crowding(const program::Program& program, std::span<const StageMemory> memory) {
  if (program.stack.crowded_above <= 0) return 1;
  const double holes = unit_bytes(program);
  double fullest = 0;
  for (const StageMemory& m : memory) {
    fullest = std::max(fullest, (static_cast<double>(m.total()) + holes) / static_cast<double>(m.capacity));
  }
  return 1 + std::clamp(kSlope * (fullest - program.stack.crowded_above), 0.0, kMost);
}

std::int64_t iteration_of_makespan(std::int64_t makespan_ps, const program::Program& program,
                                   std::span<const StageMemory> memory) {
  const double factor = crowding(program, memory);
  if (factor == 1) return makespan_ps;
  return static_cast<std::int64_t>(std::llround(static_cast<double>(makespan_ps) * factor));
}

}  // namespace trivium::simulator
