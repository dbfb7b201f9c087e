// trivium validate: predicted against measured, for one run of ours or a table of published ones.
#include "calibration/validate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "calibration/measurements/published_runs.h"
#include "calibration/measurements/training_log.h"
#include "calibration/validate/history.h"
#include "calibration/validate/pairs.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"
#include "program/plan/job_json.h"
#include "report/validation_report.h"

namespace trivium::cli {
namespace {

constexpr const char* kNotJudged = "C";  // the tier of cases that count in no error

struct ValidateOptions {
  std::string plan, record, cluster, case_name, output, history, csv, html;
  std::vector<std::string> runs;    ///< tables
  std::optional<double> max_error;  ///< none: not judged
  bool json = false, verbose = false, pairs = false;
};

/// All rows of the tables, in their order.
std::vector<calibration::PublishedRun> runs_of(const std::vector<std::string>& tables) {
  std::vector<calibration::PublishedRun> runs;
  for (const std::string& table : tables) {
    for (calibration::PublishedRun& run : calibration::read_published_runs(table)) runs.push_back(std::move(run));
  }
  return runs;
}

/// A run says nothing about another plan.
void require_same_job(const program::PlanFile& plan, const program::RunRecord& record, const ValidateOptions& options) {
  const auto text = [](const program::Job& job) {
    return fmt::format("{} {}, batch {} x {}", job.model.name, program::summary(job.plan), job.training.global_batch,
                       job.training.sequence);
  };
  const bool same = program::to_json(plan.job.plan) == program::to_json(record.job.plan) &&
                    plan.job.training.global_batch == record.job.training.global_batch &&
                    plan.job.training.sequence == record.job.training.sequence && plan.job.model == record.job.model;
  if (same) return;
  throw base::Failure(base::ErrorKind::kInput, fmt::format("{}#/plan: the run is of {}; {} is of {}", options.record,
                                                           text(record.job), options.plan, text(plan.job)));
}

/// Whether the file is no JSON, and so may be the log of a trainer.
bool is_log(const std::string& path) {
  const std::string text = base::read_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] != '{';
}

calibration::Validation validate_one(const ValidateOptions& options) {
  const program::PlanFile plan = program::read_plan_file(options.plan);
  if (is_log(options.record)) {
    const auto log = calibration::imports::read_training_log(base::read_file(options.record), options.record);
    const hardware::Cluster cluster = options.cluster.empty()
                                          ? hardware::cluster_at(plan.cluster, options.plan + "#/cluster")
                                          : hardware::load_cluster(options.cluster);
    return naming(options.plan, [&] { return calibration::validate_log(plan, log, cluster); });
  }
  const program::RunRecord record = program::run_record_from_json(base::read_json_file(options.record), options.record);
  require_same_job(plan, record, options);
  const hardware::Cluster cluster = options.cluster.empty()
                                        ? hardware::cluster_at(plan.cluster, options.plan + "#/cluster")
                                        : hardware::load_cluster(options.cluster);
  return naming(options.record, [&] { return calibration::validate_run(plan, record, cluster); });
}

/// A run against the plan that its record says it had.
calibration::Validation validate_record(const ValidateOptions& options) {
  const nlohmann::json json = base::read_json_file(options.plan);
  if (json.is_object() && json.value("schema", nlohmann::json()) == "trivium.plan/1") {
    throw base::Failure(base::ErrorKind::kUsage, options.plan + ": is a plan; give its run record after it");
  }
  const program::RunRecord record = program::run_record_from_json(json, options.plan);
  const program::PlanFile plan{record.job, record.cluster};
  const hardware::Cluster cluster = options.cluster.empty()
                                        ? hardware::cluster_at(record.cluster, options.plan + "#/plan/cluster")
                                        : hardware::load_cluster(options.cluster);
  return naming(options.plan, [&] { return calibration::validate_run(plan, record, cluster); });
}

/// "K-22B-full: predicted 1.41 s, measured 1.42 s (-0.6 %), 90 % from 1.26 s to 1.59 s".
std::string case_line(const calibration::ValidationRow& row) {
  if (row.unsupported) return fmt::format("{}: cannot be predicted: {}\n", row.case_name, *row.unsupported);
  if (!row.ran) {
    return fmt::format("{}: did not run; predicted {}\n", row.case_name,
                       row.predicted_fits.value_or(false) ? "to fit" : "not to fit");
  }
  std::string line =
      fmt::format("{}: predicted {}, measured {} ({:+.1f} %)", row.case_name, seconds(row.predicted_iteration_s),
                  seconds(row.measured_iteration_s), 100 * row.error);
  if (row.interval_s) {
    line += fmt::format(", 90 % from {} to {}", seconds(row.interval_s->low), seconds(row.interval_s->high));
  }
  return line + "\n";
}

/// One row of a table, and its plan as a file, where one is requested.
calibration::Validation validate_case(const ValidateOptions& options) {
  const calibration::PublishedRun run = calibration::read_published_run(options.runs.front(), options.case_name);
  if (!options.output.empty()) {
    if (run.unsupported) {
      throw base::Failure(base::ErrorKind::kInput, fmt::format("{}: {} has no plan: {}", options.runs.front(),
                                                               options.case_name, *run.unsupported));
    }
    base::write_file_atomically(options.output,
                                base::json_text(program::to_json(calibration::plan_file_of(run)), 2) + "\n");
  }
  return calibration::validate_published(std::vector{run});
}

calibration::Validation validate(const ValidateOptions& options) {
  const bool is_record = !options.plan.empty() && options.record.empty() && options.runs.empty();
  if (is_record) return validate_record(options);
  const bool is_one = !options.plan.empty() && !options.record.empty() && options.runs.empty();
  const bool is_table = options.plan.empty() && options.cluster.empty() && !options.runs.empty();
  if (!is_one && !is_table) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "give a run record, a plan and its run record, or --runs FILE.csv... alone");
  }
  if (is_one) return validate_one(options);
  return options.case_name.empty() ? calibration::validate_published(runs_of(options.runs)) : validate_case(options);
}

/// The judged case with the largest error; null where there is none.
const calibration::ValidationRow* worst(const calibration::Validation& validation) {
  const calibration::ValidationRow* found = nullptr;
  for (const calibration::ValidationRow& row : validation.rows) {
    if (row.unsupported || !row.ran || row.tier == kNotJudged) continue;
    if (found == nullptr || std::abs(row.error) > std::abs(found->error)) found = &row;
  }
  return found;
}

void judge(const calibration::Validation& validation, double max_error) {
  const calibration::ValidationRow* row = worst(validation);
  if (row == nullptr) throw base::Failure(base::ErrorKind::kRuntime, "--max-error: there is no case to judge");
  if (std::abs(row->error) <= max_error) return;
  throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: the error is {}, more than {}", row->case_name,
                                                             percent(row->error), percent(max_error)));
}

/// Run records among the JSON files of the folder.
std::vector<calibration::DatedRun> runs_in(const ValidateOptions& options) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(options.history, none)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  if (none) throw base::Failure(base::ErrorKind::kInput, options.history + ": " + none.message());
  std::sort(files.begin(), files.end());
  std::vector<calibration::DatedRun> runs;
  for (const std::filesystem::path& file : files) {
    const nlohmann::json json = base::read_json_file(file);
    if (!json.is_object() || json.value("schema", nlohmann::json()) != "trivium.run/1") continue;
    program::RunRecord record = program::run_record_from_json(json, file.string());
    hardware::Cluster cluster = options.cluster.empty()
                                    ? hardware::cluster_at(record.cluster, file.string() + "#/plan/cluster")
                                    : hardware::load_cluster(options.cluster);
    runs.push_back({file.filename().string(), std::move(record), std::move(cluster)});
  }
  if (runs.empty()) {
    throw base::Failure(base::ErrorKind::kInput,
                        options.history + ": holds no run record; keep some there with `trivium run --record`");
  }
  return runs;
}

void judge_last(const calibration::History& history, double max_error) {
  const calibration::HistoryEntry& last = history.entries.back();
  if (last.unsupported) throw base::Failure(base::ErrorKind::kRuntime, last.file + ": " + *last.unsupported);
  if (std::abs(last.error) <= max_error) return;
  throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: the error is {}, more than {}", last.file,
                                                             percent(last.error), percent(max_error)));
}

void run_history(const ValidateOptions& options) {
  if (!options.plan.empty() || !options.runs.empty() || !options.csv.empty() || !options.html.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "--history takes every record of a folder; leave out PLAN, RUN, --runs, --csv and --html");
  }
  const calibration::History history = calibration::history_of(runs_in(options));
  if (options.json) {
    print_json(calibration::to_json(history));
  } else {
    print(calibration::to_table(history));
  }
  if (options.max_error) judge_last(history, *options.max_error);
}

/// Pairs of rows of all tables that differ in one setting.
void run_pairs(const ValidateOptions& options) {
  if (options.runs.empty() || !options.case_name.empty() || !options.csv.empty() || !options.html.empty() ||
      options.max_error) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "--pairs compares rows of tables; give --runs FILE.csv..., without --case, --csv, --html and "
                        "--max-error");
  }
  const std::vector<calibration::PublishedRun> runs = runs_of(options.runs);
  const calibration::Validation validation = calibration::validate_published(runs);
  const std::vector<calibration::PairOfRuns> pairs = calibration::find_pairs(runs, validation.rows);
  if (!options.json) return print(calibration::to_table(pairs));
  nlohmann::json json = calibration::to_json(validation);
  calibration::add_pairs(json, pairs);
  print_json(json);
}

void run(const ValidateOptions& options) {
  if (options.max_error && !(*options.max_error >= 0)) {
    throw base::Failure(base::ErrorKind::kUsage, "--max-error: must be a share, 0 or more; 0.1 is 10 %");
  }
  if (!options.case_name.empty() && options.runs.size() != 1) {
    throw base::Failure(base::ErrorKind::kUsage, "--case names a row of a table; give --runs FILE.csv too");
  }
  if (!options.output.empty() && options.case_name.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, "-o writes the plan of one row; give --runs FILE.csv --case NAME too");
  }
  if (!options.history.empty()) return run_history(options);
  if (options.pairs) return run_pairs(options);
  const calibration::Validation validation = validate(options);
  if (!options.csv.empty()) base::write_file_atomically(options.csv, calibration::to_csv(validation));
  if (!options.html.empty()) {
    const std::string title = options.runs.empty() ? options.plan + " and " + options.record
                                                   : fmt::format("{}", fmt::join(options.runs, ", "));
    base::write_file_atomically(options.html, report::validation_page(validation, "trivium validate: " + title));
  }
  if (options.json) {
    print_json(calibration::to_json(validation));
  } else if (!options.case_name.empty()) {
    print(case_line(validation.rows.front()));
  } else {
    print(calibration::to_table(validation, options.verbose ? calibration::Detail::kAll : calibration::Detail::kMain));
  }
  if (options.max_error) judge(validation, *options.max_error);
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand("validate", "Compare a plan with its run, or replay published runs");
  command->add_option("PLAN", options->plan, "Plan file, or the run record alone")->type_name("FILE");
  command
      ->add_option(
          "RUN", options->record,
          "Where a plan is given: what `trivium run --record` wrote, or a log of Megatron-LM, DeepSpeed or torchtitan")
      ->type_name("FILE");
  command->add_option("--cluster", options->cluster, "Override the plan's cluster");
  command->add_option("--runs", options->runs, "Tables of published runs")->type_name("FILE.csv");
  command->add_option("--case", options->case_name, "Only this row of --runs")->type_name("NAME");
  add_output(*command, "-o,--output", options->output, "Write the plan of --case as a file for `trivium simulate`",
             OutputKind::kPlan);
  command->add_flag("--pairs", options->pairs,
                    "Of --runs: the effect of one setting, between rows that differ in no other");
  command->add_option("--max-error", options->max_error, "Fail (exit 1) when a case is off by more, as a share: 0.1");
  add_output(*command, "--csv", options->csv, "Also write rows and groups as a table", OutputKind::kTable);
  add_output(*command, "--html", options->html, "Also write one page with pictures", OutputKind::kPage);
  command->add_option("--history", options->history, "All run records of a folder: how the error developed")
      ->type_name("FOLDER");
  command->add_flag("--verbose", options->verbose, "Of one run: every step, kind of op, lane and rank");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
