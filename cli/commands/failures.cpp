#include "cli/commands/failures.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/render/render.h"
#include "simulator/studies/checkpoint_size.h"
#include "simulator/studies/whole_training.h"

namespace trivium::cli {
namespace {

constexpr int kDrawnFailures = 1000;
constexpr std::uint64_t kSeed = 1;

base::Seconds time_of(const std::string& option, const std::string& text, base::Seconds otherwise, bool zero_allowed) {
  if (text.empty()) return otherwise;
  const auto parsed = base::parse_seconds(text);
  if (!parsed) throw base::Failure(base::ErrorKind::kUsage, fmt::format("{}: {}", option, parsed.error().message));
  if (!zero_allowed && parsed.value() <= base::Seconds(0)) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("{} {}: must be above zero", option, text));
  }
  return parsed.value();
}

}  // namespace

void add_failure_options(CLI::App& command, FailureOptions& options) {
  const std::string group = "Failures";
  command.add_flag("--failures", options.asked, "Estimate goodput under failures, with the figures below")
      ->group(group);
  command.add_option("--mtbf", options.mtbf, "Mean time between failures of one device; 50700 h unless told")
      ->type_name("TIME")
      ->group(group);
  command
      .add_option("--checkpoint-cost", options.checkpoint,
                  "Time that writing a checkpoint holds the training up; its bytes at 1 GB/s per node unless told")
      ->type_name("TIME")
      ->group(group);
  command.add_option("--restart-cost", options.restart, "From a failure to the next step; 10 min unless told")
      ->type_name("TIME")
      ->group(group);
  command.add_option("--checkpoint-interval", options.interval, "Work between checkpoints; the best unless told")
      ->type_name("TIME")
      ->group(group);
}

bool wants_failures(const FailureOptions& options) {
  return options.asked || !options.mtbf.empty() || !options.checkpoint.empty() || !options.restart.empty() ||
         !options.interval.empty();
}

FailureOutlook outlook(const FailureOptions& options, const JobRequest& request,
                       const simulator::Simulation& simulation) {
  const program::Job& job = request.file.job;
  FailureOutlook found;
  const double nodes = simulator::nodes_of(job.plan, request.cluster);
  found.failures.devices = job.plan.ranks();
  found.failures.device_mtbf = time_of("--mtbf", options.mtbf, simulator::kDeviceMtbf, false);
  found.failures.checkpoint =
      time_of("--checkpoint-cost", options.checkpoint,
              simulator::checkpoint_size(job) / (simulator::kCheckpointBandwidth * nodes), false);
  found.failures.restart = time_of("--restart-cost", options.restart, simulator::kRestart, true);
  found.young = young_interval(found.failures);
  found.daly = daly_interval(found.failures);
  found.best = best_interval(found.failures);
  found.interval = time_of("--checkpoint-interval", options.interval, found.best, false);
  found.goodput = goodput(found.failures, found.interval);
  found.simulated_goodput = simulated_goodput(found.failures, found.interval,
                                              found.failures.mtbf() * (kDrawnFailures * found.goodput), kSeed);
  if (job.training.total_tokens > 0) {
    found.training_s = simulator::whole_training(job, request.cluster, simulation)->seconds / found.goodput;
  }
  return found;
}

nlohmann::json failures_json(const FailureOutlook& outlook) {
  return {{"device_mtbf_s", outlook.failures.device_mtbf.value()},
          {"mtbf_s", outlook.failures.mtbf().value()},
          {"checkpoint_s", outlook.failures.checkpoint.value()},
          {"restart_s", outlook.failures.restart.value()},
          {"checkpoint_interval_s", outlook.interval.value()},
          {"best_interval_s", outlook.best.value()},
          {"young_interval_s", outlook.young.value()},
          {"daly_interval_s", outlook.daly.value()},
          {"goodput", outlook.goodput},
          {"simulated_goodput", outlook.simulated_goodput},
          {"training_s", outlook.training_s > 0 ? nlohmann::json(outlook.training_s) : nlohmann::json()}};
}

std::string failures_report(const FailureOutlook& outlook) {
  const simulator::Failures& f = outlook.failures;
  std::string text = fmt::format("\nfailures: one every {} on {} devices (one device: {}), checkpoint {}, restart {}\n",
                                 duration(f.mtbf().value()), integer(f.devices), duration(f.device_mtbf.value()),
                                 seconds(f.checkpoint.value()), seconds(f.restart.value()));
  text += fmt::format("  checkpoint every {} of work (best {}; Young {}, Daly {})\n", seconds(outlook.interval.value()),
                      seconds(outlook.best.value()), seconds(outlook.young.value()), seconds(outlook.daly.value()));
  text += fmt::format("  goodput {} of the time, {} over a thousand failures drawn one by one\n",
                      percent(outlook.goodput), percent(outlook.simulated_goodput));
  if (outlook.training_s > 0) text += fmt::format("  the whole training takes {}\n", duration(outlook.training_s));
  return text;
}

}  // namespace trivium::cli
