#include "simulator/cost/copy_cost.h"

#include <algorithm>

namespace trivium::simulator {
namespace {

// An fp32 gradient; an fp32 copy of the parameter, where it is narrower, and two moments.
constexpr double kGradient = 4, kMoments = 8;

}  // namespace

double copied_share(const program::Op& op, program::DType precision, const program::StackTraits& stack) {
  const bool of_state = op.pass == program::Pass::kOptimizer && program::is_copy(op.kind);
  if (!of_state || stack.host_adam == 0) return 1;
  const auto parameter = static_cast<double>(program::size_of(precision));
  const double state = (program::is_half(precision) ? kGradient : 0) + kMoments;
  return (op.kind == program::OpKind::kFetch ? kGradient : parameter) / state;
}

base::Seconds copy_cost(base::Bytes bytes, bool disk, int sharing, const hardware::Node& node) {
  const base::Seconds link =
      bytes * static_cast<double>(std::min(sharing, node.devices_per_host_link)) / node.host_link;
  return disk ? std::max(link, bytes * static_cast<double>(sharing) / node.disk) : link;
}

}  // namespace trivium::simulator
