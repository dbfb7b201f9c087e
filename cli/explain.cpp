// trivium explain: why a plan takes the time it takes.
#include "planner/explain.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/options.h"
#include "cli/prepare.h"
#include "cli/render.h"
#include "simulator/simulate.h"

namespace trivium::cli {
namespace {

struct Options {
  JobOptions job;
  bool json = false;
};

void run(const Options& options) {
  const JobRequest request = resolve_plan(options.job);
  const Prepared prepared = prepare(request, false);
  const simulator::Simulation simulation = simulator::simulate(prepared.program, request.cluster, {}).value_or_throw();
  const std::vector<std::string> sentences = planner::explain(prepared.program, simulation, request.cluster);
  if (options.json) {
    nlohmann::json json = headline_json(simulation);
    json["schema"] = "trivium.explanation/1";
    json["sentences"] = sentences;
    print_json(json);
    return;
  }
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  print(text);
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Say why a plan takes its time, and what to change first");
  add_job_options(*command, options->job);
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
