// How well this machine's runs are predicted: profile it, calibrate on one split, predict others, measure them.
//   trivium-fidelity CORPUS [MODEL] [STEPS]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "calibration/calibrate.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/job_json.h"
#include "program/lower.h"
#include "program/verify.h"
#include "runtime/executor/train.h"
#include "runtime/microbench/profile.h"
#include "simulator/simulate.h"

namespace {

using namespace trivium;

constexpr int kRounds = 5;          // every split is measured this many times, in turn with the others
constexpr double kMaxError = 0.15;  // what a prediction of another split on two ranks may be off by

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Split {
  std::string name;
  Fields fields;
  std::vector<double> medians = {};  // of the rounds, s
};

program::Job job_of(const std::string& model, const Fields& fields) {
  program::Job job;
  job.model = models::load_model(model);
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = 8;
  job.plan.precision = program::DType::kFp32;
  for (const auto& [field, text] : fields) program::set_field(job.plan, job.training, field, text);
  return job;
}

hardware::Cluster cluster_of(const hardware::Node& node) { return {node.name, {{node, 1}}}; }

program::Program prepared(const program::Job& job, const hardware::Cluster& cluster) {
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered))
    throw edge::Failure(edge::ErrorKind::kNoPlan, no->reason);
  return simulator::order(std::get<program::Program>(std::move(lowered)), cluster).value_or_throw();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

program::RunRecord measured(const program::Job& job, const hardware::Cluster& cluster,
                            const runtime::data::Corpus& corpus, std::int64_t steps) {
  const program::Program program = prepared(job, cluster);
  runtime::TrainOptions options;
  options.steps = steps;
  options.timeline_steps = steps - 2;
  runtime::TrainResult result = runtime::train_in_threads(program, corpus, options);
  program::RunRecord record;
  record.job = job;
  record.cluster = cluster.name;
  record.backend = "cpu-threads";
  record.program_hash = program::hash_of(program);
  record.steps = std::move(result.steps);
  record.timeline = std::move(result.timeline);
  record.peak_memory_bytes = std::move(result.memory_bytes);
  return record;
}

double seconds_of(const program::RunRecord& record) {
  std::vector<double> seconds;
  for (std::size_t i = 2; i < record.steps.size(); ++i)
    seconds.push_back(record.steps[i].seconds);  // behind the warm-up
  return median(seconds);
}

std::vector<Split> splits() {
  return {{"tensor 2", {{"tensor", "2"}}},
          {"tensor 2, sequence parallel", {{"tensor", "2"}, {"sequence_parallel", "true"}}},
          {"tensor 2, micro-batch 2", {{"tensor", "2"}, {"micro_batch", "2"}}},
          {"tensor 2, full recompute", {{"tensor", "2"}, {"recompute", "full"}}},
          {"pipeline 2, 1f1b", {{"pipeline", "2"}}},
          {"pipeline 2, gpipe", {{"pipeline", "2"}, {"schedule", "gpipe"}}},
          {"pipeline 2, interleaved", {{"pipeline", "2"}, {"virtual_stages", "2"}, {"schedule", "interleaved"}}},
          {"pipeline 2, full recompute", {{"pipeline", "2"}, {"recompute", "full"}}},
          {"pipeline 2, sequential", {{"pipeline", "2"}, {"schedule", "sequential"}}},
          {"data 2", {{"data", "2"}}},
          {"data 2, ZeRO-1", {{"data", "2"}, {"zero_stage", "1"}}},
          {"data 2, micro-batch 4", {{"data", "2"}, {"micro_batch", "4"}}}};
}

int compare(const std::string& text, const std::string& model, std::int64_t steps) {
  const auto corpus =
      runtime::data::open_corpus(text, job_of(model, {}).training.sequence, models::load_model(model).vocab);
  runtime::ProfileOptions options;
  options.quick = true;
  options.ranks = 2;
  options.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const hardware::Node profile = runtime::profile_this_machine(options);
  // The split that teaches is none of those predicted.
  const program::RunRecord lesson =
      measured(job_of(model, {{"tensor", "2"}, {"recompute", "selective"}}), cluster_of(profile), *corpus, steps);
  const calibration::Fit fit = calibration::calibrate(profile, std::span(&lesson, 1));
  for (const std::string& line : fit.report) fmt::print(stderr, "{}\n", line);
  const hardware::Cluster before = cluster_of(profile), after = cluster_of(fit.node);
  std::vector<Split> all = splits();
  for (int round = 0; round < kRounds; ++round) {
    for (Split& split : all) {
      fmt::print(stderr, "round {} of {}: {}\n", round + 1, kRounds, split.name);
      split.medians.push_back(seconds_of(measured(job_of(model, split.fields), after, *corpus, steps)));
    }
  }
  fmt::print("{} on two ranks of this machine; calibrated on tensor 2 with selective recomputation alone\n\n", model);
  fmt::print("{:<28} {:>9} {:>8} {:>10} {:>7} {:>10} {:>7}\n", "split", "measured", "repeats", "profiled", "error",
             "calibrated", "error");
  double sum = 0, worst = 0;
  for (const Split& split : all) {
    const auto predict = [&](const hardware::Cluster& cluster) {
      return simulator::simulate(prepared(job_of(model, split.fields), cluster), cluster, {})
          .value_or_throw()
          .iteration_s;
    };
    const double truth = median(split.medians), first = predict(before), second = predict(after);
    const auto [low, high] = std::minmax_element(split.medians.begin(), split.medians.end());
    fmt::print("{:<28} {:>6.2f} ms {:>6.1f} % {:>7.2f} ms {:>+5.1f} % {:>7.2f} ms {:>+5.1f} %\n", split.name,
               1e3 * truth, 100 * (*high - *low) / truth, 1e3 * first, 100 * (first / truth - 1), 1e3 * second,
               100 * (second / truth - 1));
    sum += std::abs(second / truth - 1);
    worst = std::max(worst, std::abs(second / truth - 1));
  }
  fmt::print("\nmean error {:.1f} %, worst {:.1f} % (repeats: spread of {} medians of {} steps each)\n",
             100 * sum / static_cast<double>(all.size()), 100 * worst, kRounds, steps - 2);
  return worst <= kMaxError ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: trivium-fidelity CORPUS [MODEL] [STEPS]\n");
    return 2;
  }
  try {
    return compare(argv[1], argc > 2 ? argv[2] : "gpt-tiny", argc > 3 ? std::max(4L, std::atol(argv[3])) : 14);
  } catch (const edge::Failure& failure) {
    fmt::print(stderr, "error: {}\n", failure.what());
    return static_cast<int>(failure.error().kind);
  }
}
