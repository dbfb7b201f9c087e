// trivium simulate: one plan on one cluster, event by event.
#include "simulator/simulate.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/disturbance.h"
#include "cli/failures.h"
#include "cli/figures.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/prepare.h"
#include "cli/render.h"
#include "edge/files.h"
#include "program/chrome_trace.h"

namespace trivium::cli {
namespace {

struct SimulateOptions {
  JobOptions job;
  std::string granularity = "op";
  std::string trace;
  bool ignore_memory = false;
  bool json = false;
  DisturbanceOptions disturbance;
  FailureOptions failures;
};

void run(const SimulateOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  const simulator::Disturbance disturbance = disturbance_of(options.disturbance);
  const Prepared prepared = prepare(request, options.ignore_memory);
  simulator::SimulationOptions how;
  how.timeline = !options.trace.empty();
  how.every_rank = plays_every_rank(options.disturbance);
  how.unshared = true;
  how.disturbance = disturbance;
  how.disturbance.jitter = 0;  // drawn below; this is the run that all samples vary
  // Names of a trace are those of ops, and it is ops that vary.
  const bool by_segment = options.granularity == "segment" && !how.timeline && disturbance.none();
  how.granularity = by_segment ? simulator::Granularity::kSegment : simulator::Granularity::kOp;
  const simulator::Simulation simulation = simulator::simulate(prepared.program, request.cluster, how).value_or_throw();
  if (how.timeline) {
    edge::write_file_atomically(options.trace, program::chrome_trace(prepared.program, simulation.timeline));
  }
  const auto seed = static_cast<std::uint64_t>(request.file.job.training.seed);
  std::optional<simulator::Uncertainty> uncertainty;
  if (disturbance.jitter > 0) {
    uncertainty =
        simulator::sample_iterations(prepared.program, request.cluster, disturbance, options.disturbance.samples, seed)
            .value_or_throw();
  }
  std::optional<FailureOutlook> failures;
  if (wants_failures(options.failures)) failures = outlook(options.failures, request, simulation);
  if (options.json) {
    nlohmann::json json = simulation_json(request, prepared.program, simulation, prepared.too_big.has_value());
    if (uncertainty) json["uncertainty"] = uncertainty_json(disturbance, *uncertainty, seed);
    if (failures) json["failures"] = failures_json(*failures);
    print_json(json);
  } else {
    std::string text = simulation_report(request, simulation, prepared.too_big);
    if (uncertainty) text += uncertainty_line(disturbance, *uncertainty, seed);
    if (failures) text += failures_report(*failures);
    print(text);
  }
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand("simulate", "Predict one plan's iteration, breakdown and memory");
  add_job_options(*command, options->job);
  add_price_option(*command, options->job);
  command->add_option("--granularity", options->granularity, "What the simulator plays: every op, or whole segments")
      ->check(CLI::IsMember({"op", "segment"}))
      ->capture_default_str();
  add_output(*command, "--trace", options->trace, "Write the timeline for chrome://tracing and Perfetto",
             OutputKind::kTrace);
  command->add_flag("--ignore-memory", options->ignore_memory, "Simulate a plan that does not fit");
  command->add_flag("--json", options->json, "JSON on stdout");
  add_disturbance_options(*command, options->disturbance);
  add_failure_options(*command, options->failures);
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
