// trivium export: the file that launches a plan in another trainer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "base/error.h"
#include "base/files.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/values.h"
#include "cli/render/figures.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "planner/bound/evaluate.h"
#include "planner/launch/launch.h"
#include "planner/space/trainers.h"
#include "program/lower/lower.h"
#include "simulator/cost/supported.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

struct ExportOptions {
  JobOptions job;
  std::string trainer, output;
  bool json = false;
};

/// A field that our own programs do not run yet may still be exported; a plan that contradicts itself may not, nor one
/// that its hardware cannot run.
void check_plan(const JobRequest& request) {
  auto no = program::check(request.file.job);
  if (no && no->rule.ends_with("-supported")) return;
  if (!no) no = simulator::unsupported_by(request.file.job, request.cluster);
  if (!no) return;
  throw base::Failure(base::ErrorKind::kNoPlan, fmt::format("the plan cannot run: {} ({})", no->reason, no->rule));
}

const launch::TrainerVersion& trainer_named(const std::string& name) {
  const auto all = launch::trainers();
  return *std::find_if(all.begin(), all.end(), [&](const launch::TrainerVersion& t) { return t.name == name; });
}

/// What an iteration takes as planned, and as the trainer runs what the file says.
struct Price {
  std::string stack;
  double planned_s = 0, launched_s = 0;
  std::string why_not;  ///< the launched plan does not run; empty: it does
};

/// Nothing where trainer and plan are alike, or the plan is none that we simulate.
std::optional<Price> price_of(const JobRequest& request, const launch::TrainerVersion& trainer,
                              const std::vector<launch::Loss>& losses) {
  const planner::TrainerSpace* space = planner::find_trainer_space(trainer.name);
  program::Job launched = request.file.job;
  const std::optional<program::Plan> changed = launch::as_launched(launched, losses);
  if (changed) launched.plan = *changed;
  // A plan that names another trainer's stack was priced as one already.
  const bool is_ours = launched.plan.stack == program::Plan{}.stack;
  if (space != nullptr && is_ours) launched.plan.stack = space->stack;
  if (!changed && launched.plan.stack == request.file.job.plan.stack) return std::nullopt;
  const auto simulated = [&](const program::Job& job, bool must_fit) {
    return planner::simulation_that_fits(job, request.cluster, must_fit, {});
  };
  const auto planned = simulated(request.file.job, false);
  if (!std::holds_alternative<simulator::Simulation>(planned)) return std::nullopt;
  Price price{launched.plan.stack, std::get<simulator::Simulation>(planned).iteration_s, 0, ""};
  const auto there = simulated(launched, true);
  if (const auto* no = std::get_if<program::Infeasible>(&there)) {
    price.why_not = no->reason;
  } else {
    price.launched_s = std::get<simulator::Simulation>(there).iteration_s;
  }
  return price;
}

void say_price(const std::string& trainer, const Price& price) {
  if (!price.why_not.empty()) {
    base::say("warning: {}: what the file says does not run, by stack {}: {}\n", trainer, price.stack, price.why_not);
    return;
  }
  base::say("note: {}: {} an iteration as planned, {} as the file says and stack {} runs it ({:+.1f} %)\n", trainer,
            seconds(price.planned_s), seconds(price.launched_s), price.stack,
            100 * (price.launched_s / price.planned_s - 1));
}

void say_defaults(const std::string& trainer, const std::vector<launch::Setting>& defaults) {
  if (defaults.empty()) return;
  base::say("note: {}: the file has Trivium's defaults of {}; options of the same names set them\n", trainer,
            launch::text_of(defaults));
}

nlohmann::json price_json(const std::optional<Price>& price) {
  if (!price) return {};
  return {{"stack", price->stack},
          {"planned_s", price->planned_s},
          {"launched_s", price->why_not.empty() ? nlohmann::json(price->launched_s) : nlohmann::json()},
          {"why_not", price->why_not.empty() ? nlohmann::json() : nlohmann::json(price->why_not)}};
}

nlohmann::json defaults_json(const std::vector<launch::Setting>& defaults) {
  nlohmann::json json = nlohmann::json::array();
  for (const launch::Setting& setting : defaults) json.push_back({{"field", setting.field}, {"value", setting.value}});
  return json;
}

void run(const ExportOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  check_plan(request);
  const launch::TrainerVersion& trainer = trainer_named(options.trainer);
  const launch::Launch written =
      launch::export_plan(request.file.job, request.cluster, trainer.trainer, request.chosen);
  for (const launch::Loss& loss : written.losses) {
    base::say("warning: {}: {}: {}\n", options.trainer, loss.field, loss.what);
  }
  const std::optional<Price> price = price_of(request, trainer, written.losses);
  if (price) say_price(options.trainer, *price);
  say_defaults(options.trainer, written.defaults);
  if (!options.output.empty()) base::write_file_atomically(options.output, written.text);
  if (!options.json) {
    if (options.output.empty()) print(written.text);
    return;
  }
  nlohmann::json json{{"schema", "trivium.export/1"}, {"trainer", trainer.name},      {"software", trainer.software},
                      {"version", trainer.version},   {"version_date", trainer.date}, {"form", written.form},
                      {"text", written.text},         {"price", price_json(price)}};
  auto& losses = json["not_expressed"] = nlohmann::json::array();
  for (const launch::Loss& loss : written.losses)
    losses.push_back({{"field", loss.field},
                      {"what", loss.what},
                      {"becomes", loss.becomes.empty() ? nlohmann::json() : nlohmann::json(loss.becomes)}});
  json["defaults"] = defaults_json(written.defaults);
  print_json(json);
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write the file that launches a plan in another trainer");
  std::vector<std::string> names;
  for (const launch::TrainerVersion& trainer : launch::trainers()) names.emplace_back(trainer.name);
  command->add_option("--to", options->trainer, "The trainer")->required()->check(one_of(names));
  add_job_options(*command, options->job);
  add_output(*command, "-o,--output", options->output, "Write it there instead of on stdout", OutputKind::kLaunch);
  command->add_flag("--json", options->json, "JSON on stdout: the text and what it cannot say");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
