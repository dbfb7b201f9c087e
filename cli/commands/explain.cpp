// trivium explain: why a plan takes the time it takes, or why another one is not the answer.
#include "planner/advice/explain.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/render/figures.h"
#include "cli/render/render.h"
#include "planner/advice/measured.h"
#include "planner/advice/why_not.h"
#include "program/plan/job_json.h"
#include "simulator/simulate.h"

namespace trivium::cli {
namespace {

struct ExplainOptions {
  JobOptions job;
  std::string why_not;
  bool json = false;
};

std::string lines(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

void explain_other(const ExplainOptions& options, const JobRequest& request) {
  // The other plan is judged on this job: the same model, batch and cluster.
  program::Job favourite = request.file.job;
  favourite.plan = program::read_plan_file(options.why_not).job.plan;
  const planner::WhyNot why = planner::why_not(request.file.job, favourite, request.cluster);
  if (!options.json) return print(program::summary(favourite.plan) + "\n" + lines(why.sentences));
  nlohmann::json json{{"schema", "trivium.why-not/1"},
                      {"verdict", why.verdict},
                      {"rule", why.rule.empty() ? nlohmann::json() : nlohmann::json(why.rule)},
                      {"sentences", why.sentences},
                      {"plan", program::to_json(favourite.plan)},
                      {"iteration_s", why.iteration_s > 0 ? nlohmann::json(why.iteration_s) : nlohmann::json()},
                      {"bound_s", why.bound_s > 0 ? nlohmann::json(why.bound_s) : nlohmann::json()}};
  auto& differences = json["differences"] = nlohmann::json::array();
  for (const program::Difference& d : why.differences) {
    differences.push_back({{"field", d.field}, {"chosen", d.before}, {"other", d.after}});
  }
  print_json(json);
}

void run(const ExplainOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  const simulator::Prepared prepared = prepare(request, false);
  if (!options.why_not.empty()) return explain_other(options, request);
  const simulator::Simulation simulation = simulator::simulate(prepared, {}).value_or_throw();
  std::vector<std::string> sentences = planner::explain(prepared.program(), simulation, request.cluster);
  const auto promise =
      planner::plausibility_of(prepared.program().job, request.cluster, simulation, hardware::measured_mfu());
  if (promise) sentences.push_back(promise->words);
  if (options.json) {
    nlohmann::json json = headline_json(simulation);
    json["schema"] = "trivium.explanation/1";
    json["sentences"] = sentences;
    print_json(json);
    return;
  }
  print(lines(sentences));
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Say why a plan takes its time and what to change first, or why not another plan");
  add_job_options(*command, options->job);
  command->add_option("--why-not", options->why_not, "Say what rules this plan out, or how much slower it is and where")
      ->type_name("PLAN");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
