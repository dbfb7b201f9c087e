#include "cli/options/launch_options.h"

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"
#include "base/say.h"
#include "cli/options/options.h"
#include "cli/options/values.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/surroundings.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

constexpr std::int64_t kMostSequence = std::int64_t{1} << 24;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 24;

/// Names and values of the file may be as long as they please.
std::string brief(const std::string& text) {
  constexpr std::size_t kLongest = 200;
  return text.size() > kLongest ? base::quote(text) : base::one_line(text);
}

}  // namespace

void add_launch_options(CLI::App& command, LaunchOptions& options) {
  command
      .add_option("FILE", options.file,
                  "Shell script, YAML, log with Megatron's arguments, DeepSpeed JSON, torchtitan's TOML, "
                  "Megatron-Bridge's Python")
      ->required()
      ->type_name("FILE");
  command.add_option("--from", options.from, "The trainer; default: recognised by its content")
      ->check(one_of({"megatron", "megatron-bridge", "deepspeed", "torchtitan", "fsdp2"}));
  command.add_option("--model", options.model, "The model, where the file does not say its shape");
  command.add_option("--cluster", options.cluster, "NAME:N, A:16+B:16, this-machine, or FILE.json");
  add_devices_per_node(command, options.devices_per_node);
  command.add_option("--sequence", options.sequence, "Tokens of a sample; default: the file's")
      ->transform(sequence_suffixes())
      ->check(CLI::Range(std::int64_t{1}, kMostSequence));
  command.add_option("--global-batch", options.global_batch, "Samples of a step; default: the file's")
      ->check(CLI::Range(std::int64_t{1}, kMostBatch));
  command.add_option("--ranks", options.ranks, "Processes; default: the file's, where it says none all devices")
      ->check(CLI::Range(1, kMostRanks));
  command.add_option("--env", options.environment, "NAME=VALUE of the environment that a script is started in")
      ->type_name("NAME=VALUE");
}

LaunchFile read_launch(const LaunchOptions& options) {
  if (options.cluster.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "no cluster; launch files do not say the hardware, give --cluster NAME:N");
  }
  LaunchFile read;
  read.cluster = hardware::load_cluster(options.cluster);
  read.stored_cluster = cluster_json(options.cluster, read.cluster);
  take_devices_per_node(options.devices_per_node, read.stored_cluster, read.cluster);
  launch::ImportRequest& request = read.request;
  request.text = base::read_file(options.file);
  request.where = options.file;
  if (!options.model.empty()) request.model = models::load_model(options.model);
  request.sequence = options.sequence;
  request.global_batch = options.global_batch;
  request.ranks = options.ranks > 0 ? options.ranks : read.cluster.devices();
  request.fixes_ranks = options.ranks > 0;
  request.devices_per_node = read.cluster.groups.front().node.devices_of_host();
  request.surroundings = launch::surroundings_of(options.file, options.environment);
  read.trainer = options.from.empty() ? launch::trainer_of(request) : launch::find_trainer(options.from)->trainer;
  read.imported = launch::import_plan(request, read.trainer);
  return read;
}

void say_losses(const std::vector<launch::Loss>& losses) {
  for (const launch::Loss& loss : losses) base::say("warning: {}: {}\n", brief(loss.field), brief(loss.what));
}

}  // namespace trivium::cli
