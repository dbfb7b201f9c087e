// trivium simulate: one plan on one cluster, event by event.
#include "simulator/predict/simulate.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "cli/commands/disturbance.h"
#include "cli/commands/failures.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/options/values.h"
#include "cli/process/interrupts.h"
#include "cli/render/figures.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "program/record/chrome_trace.h"
#include "simulator/placement/placed_cluster.h"
#include "simulator/studies/link_use.h"
#include "simulator/studies/uncertainty.h"

namespace trivium::cli {
namespace {

struct SimulateOptions {
  JobOptions job;
  std::string granularity = "op";
  std::string trace;
  bool ignore_memory = false;
  bool links = false;
  bool json = false;
  DisturbanceOptions disturbance;
  FailureOptions failures;
};

/// A line on stderr of what is being done, as long as it is.
class Doing {
 public:
  Doing()
      : teller_([this](const std::stop_token& over) {
          ProgressLine line;
          std::unique_lock lock(mutex_);
          while (!ended_.wait_for(lock, over, kTellEvery, [] { return false; }) && !over.stop_requested()) {
            if (!words_.empty()) line.show(words_);
          }
        }) {}

  void say(std::string words) {
    const std::lock_guard lock(mutex_);
    words_ = std::move(words);
  }

 private:
  static constexpr auto kTellEvery = std::chrono::milliseconds(200);
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::string words_;
  std::jthread teller_;  // last: it uses the others
};

/// What was simulated, and what of it an interrupt left out.
struct SimulationTrace {
  simulator::Prediction prediction;
  std::optional<simulator::Uncertainty> uncertainty;
};

SimulationTrace simulation_of(const SimulateOptions& options, const JobRequest& request,
                              const simulator::SimulationOptions& how, double jitter, const std::stop_token& stop,
                              Doing& doing) {
  doing.say(fmt::format("simulating {} ranks", request.file.job.plan.ranks()));
  SimulationTrace simulated{predict(request, options.ignore_memory, how, stop), std::nullopt};
  if (jitter <= 0) return simulated;
  const auto& [simulation, prepared] = simulated.prediction;
  simulator::Disturbance disturbance = how.disturbance;
  disturbance.jitter = jitter;
  const int samples = options.disturbance.samples;
  const auto say = [&](int done) {
    doing.say(
        fmt::format("{} without jitter; {} of {} samples with it", seconds(simulation.iteration_s), done, samples));
  };
  say(0);
  const auto seed = static_cast<std::uint64_t>(request.file.job.training.seed);
  auto sampled = simulator::sample_until(prepared.costed(), disturbance, samples, seed, stop, say);
  if (sampled || !stop.stop_requested()) simulated.uncertainty = std::move(sampled).value_or_throw();
  return simulated;
}

std::string_view words_of(program::Group group) {
  return group == program::Group::kNone ? "copies" : program::name_of(group);
}

std::string links_report(const std::vector<simulator::WireUse>& wires, double iteration_s) {
  Table table({"<wires", "<for", "<group", "sent by a device", "busy", "of the iteration", "exposed", "filled"});
  for (const simulator::WireUse& wire : wires) {
    table.add({std::string(name_of(wire.wire)), "all", "", size(static_cast<std::int64_t>(wire.bytes)),
               seconds(wire.busy_s), percent(wire.busy_share(iteration_s)), percent(wire.exposed_s / iteration_s),
               percent(wire.filled())});
    for (const simulator::LinkUse& use : wire.uses) {
      table.add({"", std::string(name_of(use.phase)), std::string(words_of(use.group)),
                 size(static_cast<std::int64_t>(use.bytes)), seconds(use.busy_s), percent(use.busy_s / iteration_s), "",
                 ""});
    }
  }
  return "\n" + table.text() +
         "mean over the stages; filled: of a device's share of the wires while it is busy; exposed: busy while nothing "
         "is computed\n";
}

nlohmann::json links_json(const std::vector<simulator::WireUse>& wires) {
  nlohmann::json json = nlohmann::json::array();
  for (const simulator::WireUse& wire : wires) {
    nlohmann::json one{
        {"wires", name_of(wire.wire)},    {"bytes_per_s", wire.capacity.value()}, {"bytes", wire.bytes},
        {"busy_s", wire.busy_s},          {"exposed_s", wire.exposed_s},          {"filled", wire.filled()},
        {"uses", nlohmann::json::array()}};
    for (const simulator::LinkUse& use : wire.uses) {
      one["uses"].push_back({{"for", name_of(use.phase)},
                             {"group", words_of(use.group)},
                             {"operations", use.operations},
                             {"bytes", use.bytes},
                             {"busy_s", use.busy_s}});
    }
    json.push_back(std::move(one));
  }
  return json;
}

void run(const SimulateOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  const simulator::Disturbance disturbance = disturbance_of(options.disturbance);
  const Interrupts interrupts;
  std::optional<Doing> doing(std::in_place);
  simulator::SimulationOptions how;
  how.timeline = !options.trace.empty() || options.links;
  how.every_rank = simulates_every_rank(options.disturbance);
  how.unshared = true;
  how.disturbance = disturbance;
  how.disturbance.jitter = 0;  // drawn later; this is the run that all samples vary
  // Names of a trace are those of ops, and it is ops that vary.
  const bool by_segment = options.granularity == "segment" && !how.timeline && disturbance.none();
  how.granularity = by_segment ? simulator::Granularity::kSegment : simulator::Granularity::kOp;
  const SimulationTrace simulated =
      simulation_of(options, request, how, disturbance.jitter, interrupts.token(), *doing);
  doing.reset();
  const auto& [prediction, uncertainty] = simulated;
  const auto& [simulation, prepared] = prediction;
  if (!options.trace.empty()) {
    base::write_file_atomically(options.trace, program::chrome_trace(prepared.program(), simulation.timeline));
  }
  const auto seed = static_cast<std::uint64_t>(request.file.job.training.seed);
  std::optional<FailureOutlook> failures;
  if (wants_failures(options.failures)) failures = outlook(options.failures, request, simulation);
  std::vector<simulator::WireUse> links;
  if (options.links) {
    const simulator::PlacedCluster placed(request.file.job.plan, request.cluster);
    links = simulator::link_use(prepared.program(), simulation.timeline, placed.get());
  }
  if (options.json) {
    nlohmann::json json = simulation_json(request, prepared.program(), simulation, prepared.too_big().has_value());
    if (uncertainty) json["uncertainty"] = uncertainty_json(disturbance, *uncertainty, seed);
    if (options.links) json["links"] = links_json(links);
    if (failures) json["failures"] = failures_json(*failures);
    print_json(json);
  } else {
    std::string text = simulation_report(request, simulation, prepared.too_big());
    if (uncertainty) text += uncertainty_line(disturbance, *uncertainty, seed);
    if (options.links) text += links_report(links, simulation.iteration_s);
    if (failures) text += failures_report(*failures);
    print(text);
  }
  tell_unmeasured(options.job);
  const std::size_t drawn = uncertainty ? uncertainty->samples_ps.size() : 0;
  if (disturbance.jitter > 0 && drawn < static_cast<std::size_t>(options.disturbance.samples)) {
    throw base::Failure(base::ErrorKind::kInterrupted,
                        fmt::format("interrupted after {} of {} samples", drawn, options.disturbance.samples));
  }
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Predict one plan's iteration, breakdown and memory");
  add_job_options(*command, options->job);
  add_price_option(*command, options->job);
  command->add_option("--granularity", options->granularity, "What is simulated: every op, or whole segments")
      ->check(one_of({"op", "segment"}))
      ->capture_default_str();
  add_output(*command, "--trace", options->trace, "Write the timeline for chrome://tracing and Perfetto",
             OutputKind::kTrace);
  command->add_flag("--ignore-memory", options->ignore_memory, "Simulate a plan that does not fit");
  command->add_flag("--links", options->links, "What goes over which wires, for what, and how full they are");
  command->add_flag("--json", options->json, "JSON on stdout");
  add_disturbance_options(*command, options->disturbance);
  add_failure_options(*command, options->failures);
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
