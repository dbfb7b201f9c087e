// trivium export: the file that launches a plan in another trainer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "planner/launch/launch.h"
#include "program/lower/lower.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

struct ExportOptions {
  JobOptions job;
  std::string trainer, output;
  bool json = false;
};

/// A field that our own programs do not run yet may still be exported; a plan that contradicts itself may not.
void check_plan(const JobRequest& request) {
  const auto checked = program::check(request.file.job);
  const auto* no = std::get_if<program::Infeasible>(&checked);
  if (no == nullptr || no->rule.ends_with("-supported")) return;
  throw base::Failure(base::ErrorKind::kNoPlan, fmt::format("the plan cannot run: {} ({})", no->reason, no->rule));
}

const launch::TrainerVersion& trainer_named(const std::string& name) {
  const auto all = launch::trainers();
  return *std::find_if(all.begin(), all.end(), [&](const launch::TrainerVersion& t) { return t.name == name; });
}

void run(const ExportOptions& options) {
  const JobRequest request = resolve_plan(options.job);
  check_plan(request);
  const launch::TrainerVersion& trainer = trainer_named(options.trainer);
  const launch::Launch written = launch::export_plan(request.file.job, request.cluster, trainer.trainer);
  for (const launch::Loss& loss : written.losses) {
    base::say("warning: {}: {}: {}\n", options.trainer, loss.field, loss.what);
  }
  if (!options.output.empty()) base::write_file_atomically(options.output, written.text);
  if (!options.json) {
    if (options.output.empty()) print(written.text);
    return;
  }
  nlohmann::json json{{"schema", "trivium.export/1"}, {"trainer", trainer.name},      {"software", trainer.software},
                      {"version", trainer.version},   {"version_date", trainer.date}, {"form", written.form},
                      {"text", written.text}};
  auto& losses = json["not_expressed"] = nlohmann::json::array();
  for (const launch::Loss& loss : written.losses) losses.push_back({{"field", loss.field}, {"what", loss.what}});
  print_json(json);
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write the file that launches a plan in another trainer");
  std::vector<std::string> names;
  for (const launch::TrainerVersion& trainer : launch::trainers()) names.emplace_back(trainer.name);
  command->add_option("--to", options->trainer, "The trainer")->required()->check(CLI::IsMember(names));
  add_job_options(*command, options->job);
  add_output(*command, "-o,--output", options->output, "Write it there instead of on stdout", OutputKind::kLaunch);
  command->add_flag("--json", options->json, "JSON on stdout: the text and what it cannot say");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
