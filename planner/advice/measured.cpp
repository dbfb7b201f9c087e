#include "planner/advice/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "base/readable.h"
#include "simulator/iteration/mfu_text.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::planner {
namespace {

using base::percent;
using base::seconds;
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

std::optional<Measured> measured_on(const program::Job& job, const hardware::Cluster& cluster,
                                    const std::vector<MeasuredMfu>& entries) {
  const program::Plan& plan = job.plan;
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
        hardware::best_measured(entries, device.name, plan.attention == program::Attention::kFlash,
                                job.model.experts.has_value(), hardware::precision_class(name_of(plan.fp8)));
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

// Devices of one chip differ in memory and power: "a100" of a100-sxm-40gb.
std::string_view chip_of(std::string_view device) { return device.substr(0, device.find('-')); }

}  // namespace

std::optional<Plausibility> plausibility_of(const program::Job& job, const hardware::Cluster& cluster,
                                            const simulator::Simulation& simulation,
                                            const std::vector<MeasuredMfu>& measured) {
  const program::Plan& plan = job.plan;
  if (plan.precision != program::DType::kBf16 && plan.precision != program::DType::kFp16) return std::nullopt;
  const auto best = measured_on(job, cluster, measured);
  if (!best) return std::nullopt;
  const MeasuredMfu& run = *best->run;
  Plausibility promise;
  promise.measured = best->mfu;
  promise.above = simulation.mfu > best->mfu;
  const std::string which =
      fmt::format("{}{} ({}; {})", best->mixed ? percent(best->mfu) + " over the kinds of devices, of them " : "",
                  percent(run.mfu), run.what, run.source);
  const std::string of = fmt::format("published runs in validation/ of {} in {} on {}",
                                     run.mixture ? "mixtures" : "dense models", run.precision, run.device);
  const std::string mfu = simulator::mfu_text(simulation.mfu, plan);
  const char* attention = plan.attention == program::Attention::kFlash ? "flash" : "unfused";
  if (!promise.above) {
    promise.words =
        fmt::format("MFU {} lies below the best of the {} with {} attention, {}.", mfu, of, attention, which);
    return promise;
  }
  promise.words = fmt::format(
      "MFU {} lies {:.1f} points above the {} with {} attention: the best is {}. "
      "What lifts it: {}. "
      "The simulator replays that run {}, so take the difference as unproved until you have measured it.",
      mfu, 100 * (simulation.mfu - best->mfu), of, attention, which, what_lifts(simulation),
      fmt::format("{:.1f} {}", 100 * std::abs(run.error), run.error < 0 ? "% too fast" : "% too slow"));
  return promise;
}

std::optional<SameModelRun> same_model_run(const program::Job& job, const hardware::Cluster& cluster,
                                           const simulator::Simulation& simulation,
                                           const std::vector<hardware::MeasuredRun>& runs) {
  if (!cluster.homogeneous() || job.training.lora.used()) return std::nullopt;
  const models::Model& model = job.model;
  const std::int64_t experts = model.experts ? model.experts->count : 0;
  const std::int64_t sequence = job.training.sequence, batch = job.training.global_batch;
  const std::string& device = cluster.groups.front().node.device.name;
  const std::string precision = hardware::precision_class(name_of(job.plan.fp8));
  const auto is_job = [&](const hardware::MeasuredRun& run) {
    return run.sequence == sequence && run.global_batch == batch && run.devices == job.plan.ranks();
  };
  const hardware::MeasuredRun* best = nullptr;
  const auto rank = [&](const hardware::MeasuredRun& run) {
    return std::tuple(run.device == device, is_job(run), run.sequence == sequence, run.tokens_per_s_per_device());
  };
  for (const hardware::MeasuredRun& run : runs) {
    const bool same = chip_of(run.device) == chip_of(device) && run.precision == precision &&
                      run.layers == model.layers && run.hidden == model.hidden && run.heads == model.heads &&
                      run.experts == experts;
    if (same && (best == nullptr || rank(run) > rank(*best))) best = &run;
  }
  if (best == nullptr) return std::nullopt;
  const double each = simulation.tokens_per_s / job.plan.ranks();
  return SameModelRun{*best, is_job(*best), each / best->tokens_per_s_per_device() - 1};
}

std::string same_model_text(const program::Job& job, const hardware::Cluster& cluster,
                            const simulator::Simulation& simulation, const std::vector<hardware::MeasuredRun>& runs) {
  const auto found = same_model_run(job, cluster, simulation, runs);
  if (!found) return "";
  const hardware::MeasuredRun& best = found->run;
  const std::string what =
      found->same_job ? "same job"
                      : fmt::format("{} devices, batch {} x {}", best.devices, best.global_batch, best.sequence);
  const std::string more =
      found->faster > 0
          ? fmt::format("the plan promises {} more tokens a second and device", percent(found->faster))
          : fmt::format("the plan stays {} below its tokens a second and device", percent(-found->faster));
  return fmt::format(
      "The best published run of this model in {} on {}: {} ({}), {}: {} with {}, which is simulated as {}; {}.",
      best.precision, best.device, best.run, best.source, what, seconds(best.iteration_s), best.plan,
      seconds(best.iteration_s * (1 + best.error)), more);
}

}  // namespace trivium::planner
