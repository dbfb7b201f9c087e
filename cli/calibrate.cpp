// trivium calibrate: a hardware profile fitted to what real runs measured.
#include "calibration/calibrate.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/render.h"
#include "edge/error.h"
#include "edge/files.h"
#include "edge/json_reader.h"
#include "hardware_profiles/load.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> records;
  std::string base, output;
  bool json = false;
};

void check_output(const Options& options) {
  std::vector<std::string> inputs = options.records;
  if (!options.base.empty()) inputs.push_back(options.base);
  for (const std::string& input : inputs) {
    std::error_code missing;
    if (fs::equivalent(input, options.output, missing)) {
      throw edge::Failure(edge::ErrorKind::kUsage,
                          fmt::format("-o {} is one of the inputs; give another file", options.output));
    }
  }
}

/// The node the first run was made on, unless the user names another.
hardware::Node base_node(const Options& options, const program::RunRecord& first) {
  if (!options.base.empty()) return hardware::load_node(options.base);
  const hardware::Cluster cluster = cluster_at(first.cluster, options.records.front() + "#/plan/cluster");
  if (!cluster.homogeneous()) {
    throw edge::Failure(edge::ErrorKind::kUsage, "the run's cluster is mixed; say which node to fit with --base");
  }
  return cluster.groups.front().node;
}

void run(const Options& options) {
  check_output(options);
  std::vector<program::RunRecord> records;
  for (const std::string& path : options.records) {
    records.push_back(program::run_record_from_json(edge::read_json_file(path), path));
  }
  const hardware::Node base = base_node(options, records.front());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool on_cores = records[i].backend.starts_with("cpu");
    if (on_cores == (base.device.kind == hardware::DeviceKind::kCpu)) continue;
    throw edge::Failure(edge::ErrorKind::kInput,
                        fmt::format("{}#/backend: a {} run says nothing about {}; give --base a profile of its machine",
                                    options.records[i], records[i].backend, base.device.name));
  }
  const calibration::Fit fit = calibration::calibrate(base, records);
  edge::write_file_atomically(options.output, hardware::to_json(fit.node).dump(2) + "\n");
  if (options.json) {
    print_json({{"schema", "trivium.calibration/1"}, {"output", options.output}, {"report", fit.report}});
    return;
  }
  std::string text;
  for (const std::string& line : fit.report) text += line + "\n";
  print(text + fmt::format("wrote {}\n", options.output));
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("calibrate", "Fit a hardware profile to measured runs");
  command->add_option("RUN", options->records, "What `trivium run --record` wrote")->required()->type_name("FILE");
  command->add_option("--base", options->base, "Profile to start from; default: that of the first run");
  command->add_option("-o,--output", options->output, "Where the fitted profile goes")
      ->required()
      ->check(output_file());
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
