// trivium import: another trainer's arguments or configuration as a plan file.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/options/command.h"
#include "cli/options/launch_options.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "planner/launch/launch.h"
#include "program/lower/lower.h"
#include "program/plan/plan_file.h"
#include "simulator/cost/supported.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

struct ImportOptions {
  LaunchOptions launch;
  std::string output;
  bool json = false;
};

/// What is written can be read: settings that a trainer takes, or only its file, may be no plan of ours.
void check_plan(const nlohmann::json& plan, const std::string& from) {
  try {
    program::plan_file_from_json(plan, "");
  } catch (const base::Failure& failure) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: what it says makes no plan: {}", base::one_line(from), failure.what()));
  }
}

/// One line of what was read.
void say_read(const program::Job& job) {
  const program::Training& t = job.training;
  base::say("read: {}, {} layers of {}; {}; batch {} x {} tokens, {}\n", base::one_line(job.model.name),
            job.model.layers, job.model.hidden, program::summary(job.plan), t.global_batch, t.sequence,
            program::name_of(job.plan.precision));
}

/// The file is read as it is; whether the cluster can run it is another question.
void warn_of_hardware(const program::Job& job, const hardware::Cluster& cluster) {
  if (program::check(job)) return;
  const auto no = simulator::unsupported_by(job, cluster);
  if (no) base::say("warning: {} cannot run it: {} ({})\n", base::one_line(cluster.name), no->reason, no->rule);
}

void run(const ImportOptions& options) {
  const LaunchFile read = read_launch(options.launch);
  if (!options.json) say_read(read.imported.job);
  say_losses(read.imported.losses);
  warn_of_hardware(read.imported.job, read.cluster);
  program::PlanFile file;
  file.job = read.imported.job;
  file.cluster = read.stored_cluster;
  const nlohmann::json plan = program::to_json(file);
  check_plan(plan, options.launch.file);
  if (!options.output.empty()) base::write_file_atomically(options.output, base::json_text(plan, 2) + "\n");
  if (!options.json) {
    if (options.output.empty()) print_json(plan);
    return;
  }
  nlohmann::json json{{"schema", "trivium.import/1"}, {"from", launch::version_of(read.trainer).name}, {"file", plan}};
  auto& losses = json["not_mapped"] = nlohmann::json::array();
  for (const launch::Loss& loss : read.imported.losses) losses.push_back({{"field", loss.field}, {"what", loss.what}});
  print_json(json);
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Read another trainer's arguments or configuration as a plan file");
  add_launch_options(*command, options->launch);
  add_output(*command, "-o,--output", options->output, "Write the plan file there instead of on stdout",
             OutputKind::kPlan);
  command->add_flag("--json", options->json, "JSON on stdout: the plan file and what could not be mapped");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
