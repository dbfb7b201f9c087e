// How well this machine's runs are predicted: profile it, calibrate on a few plans, measure twenty others, predict
// them. The plans it calibrates on run in every round along with the others, so that disturbances of the machine affect
// both. A plan counts by the lower decile of its steps and a plan of the calibration set by its run with the lowest:
// disturbances only slow the machine, and long steps more surely than short ones.
//   trivium-fidelity CORPUS [ROUNDS [STEPS]]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/error.h"
#include "calibration/fit/calibrate.h"
#include "calibration/measurements/statistics.h"
#include "program/lower/lower.h"
#include "runtime/data/corpus.h"
#include "runtime/executor/train.h"
#include "runtime/microbench/profile.h"
#include "simulator/predict/simulate.h"
#include "tests/fidelity/plans.h"

namespace {

using namespace trivium;
using fidelity::Case;

// What is asked of predictions (docs/journal/benchmarks.md).
constexpr double kMeanErrorWithACoreEach = 0.08, kMeanErrorSharingCores = 0.15;
constexpr double kLeastSpearman = 0.95, kMostRegret = 0.03;
constexpr double kPercent = 100, kMilliseconds = 1e3;
constexpr std::size_t kWarmUp = 2;
constexpr double kUndisturbed = 0.1;  // of the steps, from the fastest

/// A plan that teaches, with its run of every round.
struct Lesson {
  const Case* plan = nullptr;
  std::vector<program::RunRecord> runs = {};
};

struct Outcome {
  const Case* plan = nullptr;
  int ranks = 1;
  std::vector<double> steps = {};   // of all rounds, s
  std::vector<double> rounds = {};  // median step of each, s
  double predicted = 0;

  double measured() const { return calibration::quantile(steps, kUndisturbed); }
  double error() const { return predicted / measured() - 1; }
  double repeats() const {
    const auto [low, high] = std::minmax_element(rounds.begin(), rounds.end());
    return *high / *low - 1;
  }
};

hardware::Cluster cluster_of(const hardware::Node& node) { return {node.name, {{node, 1}}}; }

simulator::Prepared prepared(const program::Job& job, const hardware::Cluster& cluster) {
  auto result = simulator::prepare(job, cluster, {.fits = false});
  if (!result) throw base::Failure(result.error().kind, program::summary(job.plan) + ": " + result.error().message);
  return std::move(result).value();
}

/// Seconds of an iteration with a fitted profile, in the order in which it was measured.
double predicted(const program::Job& job, const hardware::Cluster& measured_with, const hardware::Cluster& fitted) {
  const simulator::Prepared same =
      simulator::prepare(prepared(job, measured_with).program(), fitted, {.fits = false, .ordered = false})
          .value_or_throw();
  return simulator::simulate(same, {}).value_or_throw().iteration_s;
}

program::RunRecord measured(const Case& one, const hardware::Cluster& cluster, const runtime::data::Corpus& corpus,
                            std::int64_t steps) {
  const program::Job job = fidelity::job_of(one);
  const auto program = prepared(job, cluster).verified();
  runtime::TrainOptions options;
  options.steps = steps;
  options.timeline_steps = steps - static_cast<std::int64_t>(kWarmUp);
  runtime::TrainResult result = runtime::train_in_threads(program, corpus, options);
  program::RunRecord record;
  record.job = job;
  record.cluster = cluster.name;
  record.backend = "cpu-threads";
  record.program_hash = program::hash_of(program);
  record.steps = std::move(result.steps);
  record.timeline = std::move(result.timeline);
  return record;
}

std::vector<double> steps_of(const program::RunRecord& record) {
  std::vector<double> seconds;
  for (std::size_t i = kWarmUp; i < record.steps.size(); ++i) seconds.push_back(record.steps[i].seconds);
  return seconds;
}

std::vector<program::RunRecord> least_disturbed(std::vector<Lesson>& lessons) {
  const auto step = [](const program::RunRecord& run) { return calibration::quantile(steps_of(run), kUndisturbed); };
  std::vector<program::RunRecord> runs;
  for (Lesson& lesson : lessons) runs.push_back(std::move(*std::ranges::min_element(lesson.runs, {}, step)));
  return runs;
}

/// One line a plan; returns whether the sums are as asked.
bool report(const std::vector<Outcome>& outcomes, int rounds, std::int64_t steps, int cores) {
  fmt::print("{:<16} {:<44} {:>5} {:>12} {:>9} {:>12} {:>8}\n", "model", "plan", "ranks", "measured", "repeats",
             "predicted", "error");
  std::map<bool, std::vector<double>> errors;  // whether ranks share cores
  std::map<std::string, std::vector<calibration::Pair>> by_model;
  for (const Outcome& o : outcomes) {
    fmt::print("{:<16} {:<44} {:>5} {:>9.2f} ms {:>7.1f} % {:>9.2f} ms {:>+6.1f} %\n", o.plan->model,
               program::summary(fidelity::job_of(*o.plan).plan), o.ranks, kMilliseconds * o.measured(),
               kPercent * o.repeats(), kMilliseconds * o.predicted, kPercent * o.error());
    errors[o.ranks > cores].push_back(std::abs(o.error()));
    by_model[o.plan->model].push_back({o.measured(), o.predicted});
  }
  fmt::print(
      "\nmeasured: lower decile of {} steps in each of {} rounds, all plans in turn; repeats: slowest over fastest of "
      "the "
      "rounds' medians\n",
      steps - static_cast<std::int64_t>(kWarmUp), rounds);
  bool good = true;
  for (const auto& [shares, all] : errors) {
    double sum = 0;
    for (const double error : all) sum += error;
    const double mean = sum / static_cast<double>(all.size()),
                 most = shares ? kMeanErrorSharingCores : kMeanErrorWithACoreEach;
    good &= mean <= most;
    fmt::print("{:<34} mean error {:>5.1f} % of {} plans (asked: {:.0f} %)\n",
               shares ? "ranks that share cores" : "a core for every rank", kPercent * mean, all.size(),
               kPercent * most);
  }
  for (const auto& [model, pairs] : by_model) {
    const auto best = std::ranges::min_element(pairs, {}, &calibration::Pair::measured);
    const auto chosen = std::ranges::min_element(pairs, {}, &calibration::Pair::predicted);
    const double regret = chosen->measured / best->measured - 1, order = calibration::spearman(pairs).value_or(0);
    good &= order >= kLeastSpearman && regret <= kMostRegret;
    fmt::print("{:<34} Spearman {:.2f} (asked: {:.2f}), regret {:.1f} % (asked: {:.0f} %) over {} plans\n", model,
               order, kLeastSpearman, kPercent * regret, kPercent * kMostRegret, pairs.size());
  }
  return good;
}

int compare(const std::string& text, int rounds, std::int64_t steps) {
  const program::Job any = fidelity::job_of(fidelity::plans().front());
  const auto corpus = runtime::data::open_corpus(text, any.training.sequence, any.model.vocab);
  const auto say = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  runtime::ProfileOptions options;
  options.quick = true;
  options.progress = say;
  hardware::Node profile = runtime::profile_this_machine(options);
  const hardware::Cluster cluster = cluster_of(profile);
  const std::vector<Case> lessons = fidelity::lessons(), plans = fidelity::plans();
  std::vector<Lesson> taught;
  for (const Case& lesson : lessons) {
    if (fidelity::job_of(lesson).plan.ranks() <= profile.devices) taught.push_back({&lesson});
  }
  std::vector<Outcome> outcomes;
  for (const Case& plan : plans) outcomes.push_back({&plan, fidelity::job_of(plan).plan.ranks()});
  for (int round = 0; round < rounds; ++round) {
    say(fmt::format("round {} of {}", round + 1, rounds));
    for (Lesson& lesson : taught) lesson.runs.push_back(measured(*lesson.plan, cluster, *corpus, steps));
    for (Outcome& outcome : outcomes) {
      const std::vector<double> seconds = steps_of(measured(*outcome.plan, cluster, *corpus, steps));
      outcome.rounds.push_back(calibration::median(seconds));
      outcome.steps.insert(outcome.steps.end(), seconds.begin(), seconds.end());
    }
  }
  const calibration::Fit fit = calibration::calibrate(profile, least_disturbed(taught));
  for (const std::string& line : fit.report) say(line);
  for (Outcome& outcome : outcomes) {
    outcome.predicted = predicted(fidelity::job_of(*outcome.plan), cluster, cluster_of(fit.node));
  }
  fmt::print("{} cores; calibrated on {} other runs of one and two ranks\n\n", profile.devices, taught.size());
  return report(outcomes, rounds, steps, profile.devices) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: trivium-fidelity CORPUS [ROUNDS [STEPS]]\n");
    return 2;
  }
  try {
    const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 12;
    return compare(argv[1], rounds, argc > 3 ? std::max(4L, std::atol(argv[3])) : 10);
  } catch (const base::Failure& failure) {
    fmt::print(stderr, "error: {}\n", failure.what());
    return static_cast<int>(failure.error().kind);
  }
}
