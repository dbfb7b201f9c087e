#include "gui/model/sensitivity.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "gui/model/display_name.h"
#include "planner/advice/explain.h"
#include "planner/advice/neighbours.h"
#include "planner/bound/evaluate.h"

namespace trivium::gui {
namespace {

constexpr double kBetter = 1.1;
constexpr const char* kHostLink = "links to the host +10 %";

struct Improvement {
  const char* words;
  std::function<void(hardware::Node&)> apply;
};

const std::vector<Improvement>& improvements() {
  static const std::vector<Improvement> kImprovements{
      {"arithmetic +10 %",
       [](hardware::Node& node) {
         node.device.compute_scale *= kBetter;
         for (auto& [kind, rate] : node.device.op_rates) {
           rate.seconds_per_flop /= kBetter;
           rate.seconds_per_block /= kBetter;
         }
       }},
      {"memory bandwidth +10 %",
       [](hardware::Node& node) {
         node.device.memory_bandwidth = node.device.memory_bandwidth * kBetter;
         for (auto& [kind, rate] : node.device.op_rates) rate.seconds_per_byte /= kBetter;
       }},
      {"links in the node +10 %",
       [](hardware::Node& node) {
         node.intra.bandwidth = node.intra.bandwidth * kBetter;
         for (auto& [ranks, bus] : node.allreduce_bus) bus = bus * kBetter;
       }},
      {"network bandwidth +10 %",
       [](hardware::Node& node) { node.network.bandwidth = node.network.bandwidth * kBetter; }},
      {kHostLink, [](hardware::Node& node) { node.host_link = node.host_link * kBetter; }},
      {"latencies −10 %",
       [](hardware::Node& node) {
         node.intra.latency = node.intra.latency / kBetter;
         node.network.latency = node.network.latency / kBetter;
         node.collective_skew = node.collective_skew / kBetter;
         for (auto& [ranks, latency] : node.allreduce_latency) latency = latency / kBetter;
       }},
      {"time to issue a kernel −10 %", [](hardware::Node& node) {
         node.device.kernel_issue = node.device.kernel_issue / kBetter;
         for (auto& [kind, rate] : node.device.op_rates) rate.overhead = rate.overhead / kBetter;
       }}};
  return kImprovements;
}

Sensitivity outcome(const std::string& change, const std::variant<std::int64_t, program::Infeasible>& simulated,
                    double here) {
  Sensitivity result{display_name(change), 0, ""};
  if (const auto* no = std::get_if<program::Infeasible>(&simulated)) {
    result.refusal = display_name(no->reason);
  } else {
    result.gain = static_cast<double>(std::get<std::int64_t>(simulated)) / here - 1;
  }
  return result;
}

/// As plans are ranked (ps); nothing where it cannot run, or `stop` came.
std::optional<double> iteration_alone(const Evaluation& evaluation, const std::stop_token& stop) {
  if (!evaluation.runs()) return std::nullopt;
  const auto alone = planner::iteration(evaluation.scenario.file.job, evaluation.scenario.cluster, false, stop);
  if (!std::holds_alternative<std::int64_t>(alone) || stop.stop_requested()) return std::nullopt;
  return static_cast<double>(std::get<std::int64_t>(alone));
}

std::vector<Sensitivity> gains_over(double here, const Evaluation& evaluation, const std::stop_token& stop) {
  std::vector<Sensitivity> gains;
  const program::Offload& off = evaluation.scenario.file.job.plan.offload;
  const bool offloads = std::ranges::any_of(std::array{off.optimizer, off.gradients, off.parameters, off.activations},
                                            [](program::Storage where) { return where != program::Storage::kNone; });
  for (const Improvement& improvement : improvements()) {
    if (stop.stop_requested()) break;
    if (improvement.words == kHostLink && !offloads) continue;
    hardware::Cluster better = evaluation.scenario.cluster;
    for (hardware::NodeGroup& group : better.groups) improvement.apply(group.node);
    const auto simulated = planner::iteration(evaluation.scenario.file.job, better, false);
    gains.push_back(outcome(improvement.words, simulated, here));
  }
  return gains;
}

}  // namespace

std::vector<Sensitivity> machine_gains(const Evaluation& evaluation, const std::stop_token& stop) {
  const std::optional<double> here = iteration_alone(evaluation, stop);
  return here ? gains_over(*here, evaluation, stop) : std::vector<Sensitivity>{};
}

Insight insight(const Evaluation& evaluation, const std::stop_token& stop) {
  Insight result;
  const std::optional<double> alone = iteration_alone(evaluation, stop);
  if (!alone) return result;
  const double here = *alone;
  const program::Job& job = evaluation.scenario.file.job;
  const hardware::Cluster& cluster = evaluation.scenario.cluster;
  result.machine = gains_over(here, evaluation, stop);
  if (stop.stop_requested()) return result;
  std::vector<planner::Tried> neighbours = planner::try_neighbours(job, cluster, stop);
  for (const planner::Tried& tried : neighbours) {
    result.plans.push_back(outcome(tried.neighbour.change, tried.outcome, here));
    result.plans.back().narrow = tried.narrow;
  }
  if (stop.stop_requested()) return result;
  result.sentences = planner::explain(*evaluation.program, evaluation.figures, cluster, std::move(neighbours));
  for (std::string& sentence : result.sentences) sentence = display_name(sentence);
  return result;
}

}  // namespace trivium::gui
