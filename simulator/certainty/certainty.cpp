#include "simulator/certainty/certainty.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/readable.h"
#include "simulator/certainty/brief_text.h"
#include "simulator/certainty/measured_machine.h"
#include "simulator/certainty/probability_text.h"

namespace trivium::simulator {
namespace {

constexpr double kLeastDeviation = 1e-6;

/// Of the standard normal distribution.
double cumulative(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

/// Its inverse, by halving: 60 steps of an interval that holds all probabilities a double tells from 0 and 1.
double quantile(double probability) {
  double low = -40, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (cumulative(middle) < probability ? low : high) = middle;
  }
  return low;
}

/// Of Student's distribution with four degrees of freedom (Abramowitz and Stegun 1964, 26.7.4).
double student_cumulative(double t) {
  const double scaled = t / std::sqrt(1 + t * t / 4);
  return 0.5 + 0.375 * scaled * (1 - scaled * scaled / 12);
}
constexpr double kStudentReach = 2.131847;  // its 95 % quantile

/// Of a normal tail that reaches up as far as the outlook's own.
double spread_of(const ErrorOutlook& outlook) {
  return std::max(outlook.deviation * outlook.reach.high / quantile(0.95), kLeastDeviation);
}

/// The prediction is within it, also where other runs came out slower or faster by more than they spread.
PredictionInterval interval(double predicted, const ErrorOutlook& outlook) {
  return {predicted * std::exp(std::min(0.0, outlook.mean - outlook.reach.low * outlook.deviation)),
          predicted * std::exp(std::max(0.0, outlook.mean + outlook.reach.high * outlook.deviation))};
}

const hardware::Node& commonest_node(const hardware::Cluster& cluster) {
  const auto devices = [](const hardware::NodeGroup& group) { return group.count * group.node.devices; };
  return std::ranges::max_element(cluster.groups, {}, devices)->node;
}

std::string family_of(const hardware::Device& device) {
  if (device.kind == hardware::DeviceKind::kCpu) return "cpu";
  return device.name.substr(0, device.name.find('-'));
}

std::string kind_of(const program::Job& job) {
  std::string kind = job.model.experts ? "experts" : "dense";
  if (job.plan.fp8 != program::Fp8::kNone) kind += " + fp8";
  if (job.plan.context > 1) kind += " + long context";
  return kind;
}

std::string run_kind_of(const program::Job& job) {
  std::string kind = job.training.lora.used() ? "adapters" : job.model.experts ? "experts" : "dense";
  if (job.plan.fp8 != program::Fp8::kNone) kind += " + fp8";
  return kind;
}

std::string count(int runs) { return base::integer(runs); }

std::string words_of(const RunLikeness& like, const TimeOutlook& outlook) {
  if (outlook.runs > 0) {
    return fmt::format("from the errors of {} measured runs of stack {}{} on {} ({})", count(outlook.runs), like.stack,
                       outlook.sisters ? " and its sisters" : "", like.device, like.kind);
  }
  std::string words = fmt::format("no measured run of stack {} on {} ({})", like.stack, like.device, like.kind);
  if (outlook.on_device > 0)
    return words + fmt::format("; judged by {} runs of other stacks or kinds of model on {}", count(outlook.on_device),
                               like.device);
  if (outlook.of_stack > 0)
    return words +
           fmt::format("; judged by {} of the stack on other devices, and by other stacks", count(outlook.of_stack));
  return words + "; judged by other devices and stacks";
}

/// What is said of devices that are not those whose runs are asked.
std::string words_of_others(const hardware::Cluster& cluster, const std::string& device) {
  std::vector<std::string> others;
  for (const hardware::NodeGroup& group : cluster.groups) {
    const std::string family = family_of(group.node.device);
    if (family != device && std::ranges::find(others, family) == others.end()) others.push_back(family);
  }
  return others.empty() ? "" : fmt::format("; taken for alike on {}", fmt::join(others, ", "));
}

RunLikeness likeness_of_machine(const program::Job& job, const hardware::Cluster& cluster,
                                const MeasuredErrors& errors) {
  RunLikeness like = run_likeness_of(job, cluster);
  like.machine = measured_machine(commonest_node(cluster), errors.time);
  return like;
}

ErrorOutlook memory_outlook(const program::Job& job, const hardware::Cluster& cluster, const MeasuredErrors& errors) {
  if (commonest_node(cluster).device.kind == hardware::DeviceKind::kCpu) return {};
  return errors.memory.at(of_memory(likeness_of(job, cluster, 1)));
}

}  // namespace

std::string probability_text(double probability) {
  constexpr double kFinest = 0.001;
  if (probability > 1 - kFinest) return "above " + base::percent(1 - kFinest);
  if (probability < kFinest) return "below " + base::percent(kFinest);
  return base::percent(probability);
}

std::string interval_text(const PredictionInterval& seconds, double prediction_s) {
  return base::seconds_beside(seconds.low, prediction_s) + " to " + base::seconds_beside(seconds.high, prediction_s);
}

Likeness likeness_of(const program::Job& job, const hardware::Cluster& cluster, double mfu) {
  const hardware::Node& node = commonest_node(cluster);
  return {family_of(node.device), job.plan.stack, kind_of(job), node.name, ease_of(mfu)};
}

RunLikeness run_likeness_of(const program::Job& job, const hardware::Cluster& cluster) {
  const hardware::Node& node = commonest_node(cluster);
  return {family_of(node.device), job.plan.stack, run_kind_of(job), node.name};
}

Certainty certainty_of(const program::Job& job, const hardware::Cluster& cluster, const Predicted& predicted,
                       const MeasuredErrors& errors) {
  const RunLikeness like = likeness_of_machine(job, cluster, errors);
  const Composition made_of{predicted.exposed, predicted.bubble, predicted.mfu};
  const TimeOutlook time = errors.time.at(like, made_of);
  const ErrorOutlook memory = memory_outlook(job, cluster, errors);
  Certainty certainty;
  const auto seconds = [&](double distance) {
    return predicted.iteration_s * std::exp(time.at(distance) + errors.time.picked());
  };
  certainty.expected_s = seconds(time.quantiles.middle);
  certainty.iteration_s = {seconds(time.quantiles.low), seconds(time.quantiles.high)};
  certainty.peak_bytes = interval(predicted.peak_bytes, memory);
  certainty.fit_probability =
      cumulative((std::log(predicted.room / commonest_node(cluster).device.usable) - memory.mean) / spread_of(memory));
  certainty.compared = time.runs > 0;
  certainty.runs = time.runs;
  certainty.sources = time.sources;
  certainty.words = words_of(like, time) + words_of_others(cluster, like.device);
  certainty.between_plans = errors.time.between_plans();
  certainty.made_of = made_of;
  return certainty;
}

std::string brief_text(const program::Job& job, const hardware::Cluster& cluster, const Certainty& certainty) {
  const MeasuredErrors& errors = measured_errors();
  const RunLikeness like = likeness_of_machine(job, cluster, errors);
  const TimeOutlook outlook = errors.time.at(like, certainty.made_of);
  const std::string alike = words_of_others(cluster, like.device);
  if (outlook.runs > 0) {
    return fmt::format("{} runs of {}{} on {} ({}){}", count(outlook.runs), like.stack,
                       outlook.sisters ? " and sisters" : "", like.device, like.kind, alike);
  }
  const std::string none = fmt::format("no run of {} on {} ({}); judged by ", like.stack, like.device, like.kind);
  if (outlook.on_device > 0)
    return none + fmt::format("{} others on {}{}", count(outlook.on_device), like.device, alike);
  if (outlook.of_stack > 0) return none + fmt::format("{} on other devices{}", count(outlook.of_stack), alike);
  return none + "others" + alike;
}

double within_probability(const Certainty& certainty, double iteration_s) {
  const double distance = std::log(iteration_s / certainty.expected_s);
  const PredictionInterval& ends = certainty.iteration_s;
  const double reach =
      distance < 0 ? std::log(certainty.expected_s / ends.low) : std::log(ends.high / certainty.expected_s);
  return student_cumulative(distance / std::max(reach, kLeastDeviation) * kStudentReach);
}

double usable_memory(const program::Job& job, const hardware::Cluster& cluster, double probability,
                     const MeasuredErrors& errors) {
  const ErrorOutlook memory = memory_outlook(job, cluster, errors);
  if (memory.deviation == 0) return 1;  // exact
  return std::min(1.0, std::exp(-memory.mean - quantile(probability) * spread_of(memory)));
}

double beats_probability(double first_s, double second_s, const Certainty& first) {
  return cumulative(std::log(second_s / first_s) /
                    std::max(first.between_plans * std::numbers::sqrt2, kLeastDeviation));
}

}  // namespace trivium::simulator
