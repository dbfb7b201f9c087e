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
#include "cli/options/options.h"
#include "cli/options/values.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/launch.h"
#include "planner/launch/surroundings.h"
#include "program/lower/lower.h"
#include "program/plan/plan_file.h"
#include "simulator/cost/supported.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

constexpr std::int64_t kMostSequence = std::int64_t{1} << 24;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 24;

struct ImportOptions {
  std::string file, from, model, cluster, output;
  std::vector<std::string> environment;
  std::int64_t sequence = 0, global_batch = 0;
  int ranks = 0, devices_per_node = 0;
  bool json = false;
};

/// Names and values of the file may be as long as they please.
std::string brief(const std::string& text) {
  constexpr std::size_t kLongest = 200;
  return text.size() > kLongest ? base::quote(text) : base::one_line(text);
}

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
  if (options.cluster.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "no cluster; launch files do not say the hardware, give --cluster NAME:N");
  }
  hardware::Cluster cluster = hardware::load_cluster(options.cluster);
  nlohmann::json stored = cluster_json(options.cluster, cluster);
  take_devices_per_node(options.devices_per_node, stored, cluster);
  launch::ImportRequest request;
  request.text = base::read_file(options.file);
  request.where = options.file;
  if (!options.model.empty()) request.model = models::load_model(options.model);
  request.sequence = options.sequence;
  request.global_batch = options.global_batch;
  request.ranks = options.ranks > 0 ? options.ranks : cluster.devices();
  request.fixes_ranks = options.ranks > 0;
  request.devices_per_node = cluster.groups.front().node.devices_of_host();
  request.surroundings = launch::surroundings_of(options.file, options.environment);
  const launch::Trainer from =
      options.from.empty() ? launch::trainer_of(request) : launch::find_trainer(options.from)->trainer;
  const launch::Imported imported = launch::import_plan(request, from);
  if (!options.json) say_read(imported.job);
  for (const launch::Loss& loss : imported.losses) base::say("warning: {}: {}\n", brief(loss.field), brief(loss.what));
  warn_of_hardware(imported.job, cluster);
  program::PlanFile file;
  file.job = imported.job;
  file.cluster = std::move(stored);
  const nlohmann::json plan = program::to_json(file);
  check_plan(plan, options.file);
  if (!options.output.empty()) base::write_file_atomically(options.output, base::json_text(plan, 2) + "\n");
  if (!options.json) {
    if (options.output.empty()) print_json(plan);
    return;
  }
  nlohmann::json json{{"schema", "trivium.import/1"}, {"from", launch::version_of(from).name}, {"file", plan}};
  auto& losses = json["not_mapped"] = nlohmann::json::array();
  for (const launch::Loss& loss : imported.losses) losses.push_back({{"field", loss.field}, {"what", loss.what}});
  print_json(json);
}

}  // namespace

void add_import(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Read another trainer's arguments or configuration as a plan file");
  command
      ->add_option(
          "FILE", options->file,
          "Shell script, YAML, log with Megatron's arguments, DeepSpeed JSON, torchtitan's TOML, Megatron-Bridge's Python")
      ->required()
      ->type_name("FILE");
  command->add_option("--from", options->from, "The trainer; default: recognised by its content")
      ->check(one_of({"megatron", "megatron-bridge", "deepspeed", "torchtitan", "fsdp2"}));
  command->add_option("--model", options->model, "The model, where the file does not say its shape");
  command->add_option("--cluster", options->cluster, "NAME:N, A:16+B:16, this-machine, or FILE.json");
  add_devices_per_node(*command, options->devices_per_node);
  command->add_option("--sequence", options->sequence, "Tokens of a sample; default: the file's")
      ->transform(sequence_suffixes())
      ->check(CLI::Range(std::int64_t{1}, kMostSequence));
  command->add_option("--global-batch", options->global_batch, "Samples of a step; default: the file's")
      ->check(CLI::Range(std::int64_t{1}, kMostBatch));
  command->add_option("--ranks", options->ranks, "Processes; default: the file's, where it says none all devices")
      ->check(CLI::Range(1, kMostRanks));
  command->add_option("--env", options->environment, "NAME=VALUE of the environment that a script is started in")
      ->type_name("NAME=VALUE");
  add_output(*command, "-o,--output", options->output, "Write the plan file there instead of on stdout",
             OutputKind::kPlan);
  command->add_flag("--json", options->json, "JSON on stdout: the plan file and what could not be mapped");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
