// trivium calibrate: a hardware profile fitted to what real runs measured.
#include "calibration/fit/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"
#include "calibration/measurements/collect.h"
#include "calibration/measurements/importer.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/published/micro_rows.h"
#include "calibration/published/profile_patch.h"
#include "calibration/published/published_fit.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/process/interrupts.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"

namespace trivium::cli {
namespace {

namespace fs = std::filesystem;

struct CalibrateOptions {
  std::vector<std::string> files, runs, micro;
  std::string base, output;
  bool leave_one_out = true;
  bool json = false, verbose = false;
};

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return fs::equivalent(a, b, missing);
}

/// Without --runs a file is written.
void check_output(const CalibrateOptions& options) {
  if (const std::string wrong = objection_to_output(options.output); !wrong.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--output: {}", wrong));
  }
}

/// Profiles that are named rather than given as files must not be written over either.
void check_profile(const CalibrateOptions& options, const hardware::Node& base) {
  const fs::path shipped = base::shipped_data("hardware_profiles") / (base.name + ".json");
  for (const fs::path& profile : {fs::path(hardware::this_machine_path()), shipped}) {
    if (!is_same_file(profile, options.output)) continue;
    if (hardware::to_json(hardware::load_node(profile.string())) != hardware::to_json(base)) continue;
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("-o {} is the profile that is fitted; give another file", options.output));
  }
}

/// The user's, else a profile among the files, else that of the first run or plan.
hardware::Node base_node(const CalibrateOptions& options, const calibration::Collected& given) {
  if (!options.base.empty()) return hardware::load_node(options.base);
  if (given.profile) return *given.profile;
  if (!given.cluster)
    throw base::Failure(base::ErrorKind::kUsage, "which machine was measured? say so with --base PROFILE");
  if (!given.cluster->homogeneous()) {
    throw base::Failure(base::ErrorKind::kUsage, "the run's cluster is mixed; say which node to fit with --base");
  }
  return given.cluster->groups.front().node;
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

/// Errors: also Failure(kInterrupted), with the best so far written where there is one.
void fit_to_published(const CalibrateOptions& options) {
  if (!options.files.empty() || !options.base.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, "--runs fits shipped profiles to tables; leave out FILE and --base");
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
  how.progress = [](const std::string& line) { base::say("{}\n", line); };
  const calibration::PublishedFit fit = calibration::fit_published(runs, how, micro);
  const std::vector<fs::path> files = calibration::write_profiles(fit, options.output);
  if (options.json) {
    print_json(to_json(fit, files));
  } else {
    print(calibration::to_table(fit) + fmt::format("wrote {} files to {}\n", files.size(), options.output));
  }
  if (fit.interrupted) {
    throw base::Failure(base::ErrorKind::kInterrupted,
                        fmt::format("interrupted after {} steps of the fit; {} holds the best so far", fit.fit.steps,
                                    base::one_line(options.output)));
  }
}

nlohmann::json to_json(const calibration::Fit& fit, const std::string& output, const std::vector<std::string>& beyond) {
  nlohmann::json numbers = nlohmann::json::array();
  for (const calibration::FittedNumber& number : fit.numbers) {
    numbers.push_back({{"pointer", number.pointer},
                       {"before", number.before},
                       {"after", number.after},
                       {"spread", std::isfinite(number.spread) ? nlohmann::json(number.spread) : nlohmann::json()},
                       {"samples", number.samples},
                       {"determined", number.determined},
                       {"from", number.from}});
  }
  return {{"schema", "trivium.calibration/1"},
          {"output", output},
          {"report", fit.report},
          {"numbers", std::move(numbers)},
          {"extrapolated", beyond}};
}

std::vector<std::string> beyond_measured(const calibration::Fit& fit, const calibration::Collected& given) {
  std::vector<std::string> all;
  for (const program::PlanFile& plan : given.plans) {
    for (const std::string& sentence : calibration::extrapolations(fit, plan.job)) {
      all.push_back(program::summary(plan.job.plan) + ": " + sentence);
    }
  }
  return all;
}

std::string undetermined(const calibration::Fit& fit) {
  std::string text;
  for (const calibration::FittedNumber& number : fit.numbers) {
    if (!number.determined) text += (text.empty() ? "" : ", ") + number.pointer;
  }
  return text;
}

/// What was learned, a line each; with `verbose` also what was not.
std::string report_text(const calibration::Fit& fit, bool verbose) {
  constexpr std::string_view kInNoRun = ": in no run, kept from the base";
  std::string text;
  std::size_t in_no_run = 0;
  for (const std::string& line : fit.report) {
    const bool learned = !line.ends_with(kInNoRun);
    in_no_run += learned ? 0 : 1;
    if (verbose || learned) text += (verbose ? line : line.substr(0, line.find("; undetermined: "))) + "\n";
  }
  const std::string open = undetermined(fit);
  if (verbose) return open.empty() ? text : text + "undetermined: " + open + "\n";
  const auto untold = std::ranges::count_if(fit.numbers, [](const auto& number) { return !number.determined; });
  if (in_no_run > 0) text += fmt::format("{} kinds of ops are in no run and stay as they were\n", in_no_run);
  if (untold > 0) {
    text += fmt::format("of {} numbers {} are not told apart by what was measured\n", fit.numbers.size(), untold);
  }
  return in_no_run > 0 || untold > 0 ? text + "(--verbose names them)\n" : text;
}

/// What is written can be read: measurements that contradict each other wildly may fit no machine at all.
void write_profile(const hardware::Node& node, const CalibrateOptions& options) {
  const std::string& output = options.output;
  const std::string text = base::json_text(hardware::to_json(node), 2) + "\n";
  try {
    hardware::node_from_json(base::parse_json(text, output), output);
  } catch (const base::Failure& failure) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}{}: what was measured fits no machine, and nothing was written: {}",
                                    base::one_line(options.files.front()),
                                    options.files.size() > 1 ? " and others" : "", failure.what()));
  }
  base::write_file_atomically(output, text);
}

void run(const CalibrateOptions& options) {
  if (!options.micro.empty()) throw base::Failure(base::ErrorKind::kUsage, "--micro goes with --runs");
  if (options.files.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "give run records or other measurements, or --runs with tables of "
                        "published runs");
  }
  check_output(options);
  const calibration::Collected given = calibration::collect_measurements(options.files);
  const hardware::Node base = base_node(options, given);
  check_profile(options, base);
  for (std::size_t i = 0; i < given.measurements.records.size(); ++i) {
    const std::string& backend = given.measurements.records[i].backend;
    const bool on_cores = backend.starts_with("cpu");
    if (on_cores == (base.device.kind == hardware::DeviceKind::kCpu)) continue;
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: a {} run says nothing about {}; give --base a profile of its machine",
                                    base::one_line(given.record_files.at(i)), base::quote(backend), base.device.name));
  }
  const calibration::Fit fit = naming(base::one_line(fmt::format("{}", fmt::join(given.record_files, ", "))),
                                      [&] { return calibration::calibrate(base, given.measurements); });
  write_profile(fit.node, options);
  const std::vector<std::string> beyond = beyond_measured(fit, given);
  if (options.json) return print_json(to_json(fit, options.output, beyond));
  std::string text = report_text(fit, options.verbose);
  for (const std::string& line : beyond) text += "note: " + line + "\n";
  print(text + fmt::format("wrote {}\n", options.output));
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand("calibrate", "Fit a hardware profile to measurements of any kind");
  command->add_option("FILE", options->files, calibration::importers_help())->type_name("FILE");
  command->add_option("--runs", options->runs, "Tables of published runs: fits the shipped profiles to them")
      ->type_name("FILE.csv");
  command
      ->add_option("--micro", options->micro,
                   "With --runs: tables of measured kernels and collectives, or folders of them")
      ->type_name("PATH");
  command->add_option("--base", options->base, "Profile to start from; default: that of the first run or plan");
  CLI::Option* output = command
                            ->add_option("-o,--output", options->output,
                                         "Where the fitted profile goes; with --runs a folder for several")
                            ->required()
                            ->type_name("PATH");
  mark_output(*command, output, OutputKind::kProfile);
  command->add_flag("!--no-leave-one-out", options->leave_one_out, "With --runs: skip the errors of left-out sources");
  command->add_flag("--verbose", options->verbose, "Also list what the measurements did not determine");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    exit_code = 0;
    options->runs.empty() ? run(*options) : fit_to_published(*options);
  });
}

}  // namespace trivium::cli
