// trivium report: what is known of a plan as one HTML page.
#include <memory>
#include <optional>

#include "base/files.h"
#include "cli/commands/disturbance.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/render/figures.h"
#include "cli/render/output.h"
#include "planner/advice/explain.h"
#include "planner/advice/neighbours.h"
#include "report/plan_report.h"
#include "simulator/predict/simulate.h"
#include "simulator/studies/uncertainty.h"

namespace trivium::cli {
namespace {

constexpr double kLow = .05, kMiddle = .5, kHigh = .95;

struct ReportOptions {
  JobOptions job;
  DisturbanceOptions disturbance;
  std::string output;
};

std::vector<report::ChangeBar> other_plans(const JobRequest& request, double iteration_s) {
  std::vector<report::ChangeBar> bars;
  for (const planner::Tried& tried : planner::try_neighbours(request.file.job, request.cluster)) {
    const double seconds = tried.fits() ? static_cast<double>(tried.iteration_ps()) * kSecondsPerPs : iteration_s;
    bars.push_back({tried.neighbour.change, seconds / iteration_s - 1,
                    tried.fits() ? "" : std::get<program::Infeasible>(tried.outcome).reason});
  }
  return bars;
}

std::optional<report::Spread> spread(const ReportOptions& options, const JobRequest& request, double nominal_s,
                                     const simulator::Prepared& prepared) {
  const simulator::Disturbance chance = disturbance_of(options.disturbance);
  if (chance.jitter == 0) return std::nullopt;
  const auto seed = static_cast<std::uint64_t>(request.file.job.training.seed);
  const simulator::Uncertainty all =
      simulator::sample_iterations(prepared.costed(), chance, options.disturbance.samples, seed).value_or_throw();
  const auto at = [&](double share) { return all.quantile_ps(share) * kSecondsPerPs; };
  return report::Spread{chance.jitter, options.disturbance.samples, nominal_s, at(kLow), at(kMiddle), at(kHigh)};
}

void run(const ReportOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  simulator::SimulationOptions how;
  how.timeline = true;
  how.every_rank = simulates_every_rank(options.disturbance);
  how.disturbance = disturbance_of(options.disturbance);
  how.disturbance.jitter = 0;  // drawn in `spread`; this is the run that all samples vary
  const auto [simulated, prepared] = predict(request, /*ignore_memory=*/true, how);
  const report::PlanReport page{request.file,
                                request.cluster,
                                prepared.program(),
                                simulated,
                                simulated.timeline,
                                prepared.too_big() ? prepared.too_big()->reason : "",
                                planner::explain(prepared.program(), simulated, request.cluster),
                                {},
                                other_plans(request, simulated.iteration_s),
                                spread(options, request, simulated.iteration_s, prepared),
                                {},
                                {}};
  base::write_file_atomically(options.output, report::plan_report(page));
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write what is known of a plan as one HTML page");
  add_job_options(*command, options->job);
  add_price_option(*command, options->job);
  add_output(*command, "-o,--output", options->output, "The page", OutputKind::kPage)->required();
  add_disturbance_options(*command, options->disturbance);
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
