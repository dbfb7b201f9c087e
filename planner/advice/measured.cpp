#include "planner/advice/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/readable.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::planner {
namespace {

using base::percent;
using hardware::MeasuredMfu;
using simulator::Part;

double share(const simulator::Simulation& s, Part part) {
  return s.breakdown_s[static_cast<std::size_t>(part)] / s.iteration_s;
}

/// What lifts a plan: that which costs other runs their time.
std::string what_lifts(const simulator::Simulation& s) {
  const double communication = share(s, Part::kExposedTensor) + share(s, Part::kExposedContext) +
                               share(s, Part::kExposedExpert) + share(s, Part::kExposedData) +
                               share(s, Part::kExposedPipeline) + share(s, Part::kExposedOffload);
  const double recomputed = share(s, Part::kRecompute);
  return fmt::format("{}, bubble {}, exposed communication {}",
                     recomputed > 0 ? percent(recomputed) + " of the time recomputes" : "it recomputes nothing",
                     percent(share(s, Part::kBubble)), percent(communication));
}

/// The kind of device with most of the plan's peak says which run is named.
struct Measured {
  double mfu = 0, weight = 0;
  bool mixed = false;  ///< mfu is the mean of several kinds of devices, weighted by their peaks
  const MeasuredMfu* run = nullptr;
};

std::optional<Measured> measured_on(const program::Plan& plan, const hardware::Cluster& cluster,
                                    const std::vector<MeasuredMfu>& entries) {
  const simulator::PlacedCluster placed(plan, cluster);
  Measured all;
  double heaviest = 0, sum = 0;
  int left = plan.ranks();  // ranks fill the nodes in order
  for (const hardware::NodeGroup& group : placed.get().groups) {
    if (left <= 0) break;
    const int devices = std::min(left, group.count * group.node.devices);
    left -= devices;
    const hardware::Device& device = group.node.device;
    const auto peak = device.peak.find(hardware::Arithmetic::kFp16);
    const MeasuredMfu* run =
        hardware::best_measured(entries, device.name, plan.attention == program::Attention::kFlash);
    if (peak == device.peak.end() || run == nullptr) return std::nullopt;
    const double weight = peak->second.value() * devices;
    sum += weight * run->mfu;
    all.weight += weight;
    all.mixed |= all.run != nullptr && all.run != run;
    if (weight <= heaviest) continue;
    heaviest = weight;
    all.run = run;
  }
  if (all.run == nullptr) return std::nullopt;
  all.mfu = sum / all.weight;
  return all;
}

}  // namespace

std::optional<Plausibility> plausibility_of(const program::Job& job, const hardware::Cluster& cluster,
                                            const simulator::Simulation& simulation,
                                            const std::vector<MeasuredMfu>& measured) {
  const program::Plan& plan = job.plan;
  if (plan.precision != program::DType::kBf16 && plan.precision != program::DType::kFp16) return std::nullopt;
  if (plan.fp8 != program::Fp8::kNone) return std::nullopt;  // those are runs in 16 bits
  const auto best = measured_on(plan, cluster, measured);
  if (!best) return std::nullopt;
  const MeasuredMfu& run = *best->run;
  Plausibility promise;
  promise.measured = best->mfu;
  promise.above = simulation.mfu > best->mfu;
  const std::string which =
      fmt::format("{}{} ({}; {})", best->mixed ? percent(best->mfu) + " over the kinds of devices, of them " : "",
                  percent(run.mfu), run.what, run.source);
  const char* attention = plan.attention == program::Attention::kFlash ? "flash" : "unfused";
  if (!promise.above) {
    promise.words =
        fmt::format("MFU {} lies below the best of the published runs in validation/runs on {} with {} attention, {}.",
                    percent(simulation.mfu), run.device, attention, which);
    return promise;
  }
  promise.words = fmt::format(
      "MFU {} lies {:.1f} points above the published runs in validation/runs on {} with {} attention: the best is {}. "
      "What lifts it: {}. "
      "The simulator replays that run {}, so take the difference as unproved until you have measured it.",
      percent(simulation.mfu), 100 * (simulation.mfu - best->mfu), run.device, attention, which, what_lifts(simulation),
      fmt::format("{:.1f} {}", 100 * std::abs(run.error), run.error < 0 ? "% too fast" : "% too slow"));
  return promise;
}

}  // namespace trivium::planner
