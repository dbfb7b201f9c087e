// trivium calibrate: a hardware profile fitted to what real runs measured.
#include "calibration/calibrate.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "calibration/micro_rows.h"
#include "calibration/profile_patch.h"
#include "calibration/published_fit.h"
#include "calibration/published_runs.h"
#include "cli/command.h"
#include "cli/interrupts.h"
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
  std::vector<std::string> records, runs, micro;
  std::string base, output;
  bool leave_one_out = true;
  bool json = false;
};

void check_output(const Options& options) {
  std::string output = options.output;
  if (const std::string wrong = output_file()(output); !wrong.empty()) {
    throw edge::Failure(edge::ErrorKind::kUsage, fmt::format("--output: {}", wrong));
  }
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

nlohmann::json to_json(const calibration::PublishedFit& fit, const std::vector<fs::path>& files) {
  nlohmann::json json{{"schema", "trivium.fit/1"}, {"runs", fit.rows}, {"effective_constants", fit.fit.freedom}};
  for (std::size_t i = 0; i < fit.constants.size(); ++i) {
    json["constants"].push_back({{"name", fit.constants[i].prior.name},
                                 {"prior", fit.constants[i].prior.prior},
                                 {"prior_sigma", fit.constants[i].prior.sigma},
                                 {"value", fit.fit.values[i]},
                                 {"sigma", fit.fit.sigma[i]}});
  }
  for (const calibration::SourceErrors& s : fit.sources) {
    json["sources"].push_back({{"name", s.fitted.name},
                               {"cases", s.fitted.cases},
                               {"mape", s.fitted.mape},
                               {"bias", s.fitted.bias},
                               {"left_out_mape", s.left_out.cases > 0 ? nlohmann::json(s.left_out.mape) : nullptr}});
  }
  for (const calibration::ValidationGroup& m : fit.micro) {
    json["micro"].push_back({{"name", m.name}, {"cases", m.cases}, {"mape", m.mape}, {"bias", m.bias}});
  }
  for (const calibration::Residual& r : fit.residuals) {
    json["residuals"].push_back({{"case", r.name}, {"source", r.source}, {"error", r.error}});
  }
  for (const fs::path& file : files) json["files"].push_back(file.string());
  json["unsupported"] = fit.unsupported;
  return json;
}

/// Returns the exit code: 130 where it was interrupted, with the best so far written.
int fit_to_published(const Options& options) {
  if (!options.records.empty() || !options.base.empty()) {
    throw edge::Failure(edge::ErrorKind::kUsage, "--runs fits shipped profiles to tables; leave out RUN and --base");
  }
  const Interrupts interrupts;
  std::vector<calibration::PublishedRun> runs;
  for (const std::string& table : options.runs) {
    for (calibration::PublishedRun& one : calibration::read_published_runs(table)) runs.push_back(std::move(one));
  }
  std::vector<calibration::MicroRow> micro;
  for (const std::string& path : options.micro) {
    for (calibration::MicroRow& one : calibration::read_micro_rows(path)) micro.push_back(std::move(one));
  }
  calibration::PublishedFitOptions how;
  how.leave_one_out = options.leave_one_out;
  how.stop = [&] { return interrupts.happened(); };
  how.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const calibration::PublishedFit fit = calibration::fit_published(runs, how, micro);
  const std::vector<fs::path> files = calibration::write_profiles(fit, options.output);
  if (options.json) {
    print_json(to_json(fit, files));
  } else {
    print(calibration::to_table(fit) + fmt::format("wrote {} files to {}\n", files.size(), options.output));
  }
  constexpr int kInterrupted = 130;
  return fit.interrupted ? kInterrupted : 0;
}

void run(const Options& options) {
  if (!options.micro.empty()) throw edge::Failure(edge::ErrorKind::kUsage, "--micro goes with --runs");
  if (options.records.empty()) {
    throw edge::Failure(edge::ErrorKind::kUsage, "give run records, or --runs with tables of published runs");
  }
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
  command->add_option("RUN", options->records, "What `trivium run --record` wrote")->type_name("FILE");
  command->add_option("--runs", options->runs, "Tables of published runs: fits the shipped profiles to them")
      ->type_name("FILE.csv");
  command
      ->add_option("--micro", options->micro,
                   "With --runs: tables of measured kernels and collectives, or folders of them")
      ->type_name("PATH");
  command->add_option("--base", options->base, "Profile to start from; default: that of the first run");
  command->add_option("-o,--output", options->output, "Where the fitted profile goes; with --runs a folder for several")
      ->required()
      ->type_name("PATH");
  command->add_flag("!--no-leave-one-out", options->leave_one_out, "With --runs: skip the errors of left-out sources");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    exit_code = 0;
    if (options->runs.empty()) {
      run(*options);
    } else {
      exit_code = fit_to_published(*options);
    }
  });
}

}  // namespace trivium::cli
