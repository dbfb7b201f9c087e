// A launch file of another trainer as a command takes it, with what the file alone does not say.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "planner/launch/launch.h"

namespace trivium::cli {

struct LaunchOptions {
  std::string file, from, model, cluster;
  std::vector<std::string> environment;
  std::int64_t sequence = 0, global_batch = 0;  ///< 0: the file's
  int ranks = 0, devices_per_node = 0;          ///< 0: not given
};

/// Adds FILE, --from, --model, --cluster, --devices-per-node, --sequence, --global-batch, --ranks and --env. `options`
/// must outlive the parse.
void add_launch_options(CLI::App& command, LaunchOptions& options);

/// A launch file that was read.
struct LaunchFile {
  planner::launch::ImportRequest request;  ///< with which it can be read again
  planner::launch::Trainer trainer{};
  planner::launch::Imported imported;
  hardware::Cluster cluster;
  nlohmann::json stored_cluster;  ///< as plan files hold it
};

/// Errors: Failure(kUsage) without a cluster, Failure(kInput) for files and names.
LaunchFile read_launch(const LaunchOptions& options);

/// A warning for everything of the file that has no place in a plan or was assumed.
void say_losses(const std::vector<planner::launch::Loss>& losses);

}  // namespace trivium::cli
