#include "simulator/cost/core_sharing.h"

#include <cmath>
#include <iterator>

namespace trivium::simulator {
namespace {

// Between two sizes on a straight line over log(bytes); outside as at the nearest.
double slowdown_at(const std::map<std::int64_t, double>& table, double bytes) {
  const auto above = table.lower_bound(static_cast<std::int64_t>(bytes));
  if (above == table.begin()) return above->second;
  const auto below = std::prev(above);
  if (above == table.end()) return below->second;
  const double from = std::log(static_cast<double>(below->first)), to = std::log(static_cast<double>(above->first));
  return below->second + (above->second - below->second) * (std::log(bytes) - from) / (to - from);
}

}  // namespace

double core_sharing(const program::Program& program, const hardware::Node& node) {
  const int ranks = program.mesh.size();
  if (ranks <= node.devices || node.core_sharing.empty()) return 1;
  double bytes = 0;
  for (int rank = 0; rank < ranks; ++rank) bytes += static_cast<double>(program.role_of(rank).total_bytes());
  bytes /= node.devices;
  return 1 + slowdown_at(node.core_sharing, bytes) * std::log2(static_cast<double>(ranks) / node.devices);
}

}  // namespace trivium::simulator
