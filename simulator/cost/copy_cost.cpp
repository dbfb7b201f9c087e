#include "simulator/cost/copy_cost.h"

#include <algorithm>

namespace trivium::simulator {
namespace {

// An fp32 gradient; an fp32 copy of the parameter, where it is narrower, and two moments.
constexpr double kGradient = 4, kMoments = 8, kNarrowMoments = 4;

}  // namespace

double copied_share(const program::Op& op, const program::Settings& settings, const program::StackTraits& stack) {
  const bool of_step = op.pass == program::Pass::kOptimizer && program::is_copy(op.kind);
  const bool on_host = stack.host_adam > 0 && settings.is_offloaded(program::Space::kOffloadedState);
  if (!of_step || !on_host) return 1;
  const bool fetches = op.kind == program::OpKind::kFetch, of_parameters = op.bucket >= 0;
  if (of_parameters || (!fetches && settings.is_offloaded(program::Space::kOffloadedParameter))) return 0;
  const auto parameter = static_cast<double>(program::size_of(settings.precision));
  const double state = (program::is_half(settings.precision) ? kGradient : 0) +
                       (settings.moments == program::Moments::kFp32 ? kMoments : kNarrowMoments);
  return (fetches ? kGradient : parameter) / state;
}

base::Seconds copy_cost(base::Bytes bytes, bool disk, int sharing, const hardware::Node& node) {
  const base::Seconds link =
      bytes * static_cast<double>(std::min(sharing, node.devices_per_host_link)) / node.host_link;
  return disk ? std::max(link, bytes * static_cast<double>(sharing) / node.disk) : link;
}

}  // namespace trivium::simulator
