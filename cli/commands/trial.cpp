// trivium trial: plans run as short jobs by the user's launcher, until it is known which is the fastest.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "base/say.h"
#include "calibration/fit/calibrate.h"
#include "calibration/measurements/training_log.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/options/values.h"
#include "cli/process/interrupts.h"
#include "cli/process/shell_command.h"
#include "cli/render/figures.h"
#include "cli/render/output.h"
#include "cli/render/render.h"
#include "hardware_profiles/load.h"
#include "planner/advice/trial_belief.h"
#include "planner/launch/launch.h"
#include "program/plan/job_json.h"
#include "program/record/run_record.h"
#include "simulator/certainty/probability_text.h"
#include "simulator/predict/simulate.h"

namespace trivium::cli {
namespace {

namespace launch = planner::launch;

constexpr double kReach = 1.645;       // deviations from the middle of a 90 % interval to its end
constexpr double kLeastNoise = 0.005;  // of a mean over the steps of a short job
constexpr double kLeastOwn = 0.01;     // what two plans do not share, at least
constexpr int kMostMinutes = 7 * 24 * 60;

struct TrialsOptions {
  std::vector<std::string> plans;
  std::string command, trainer = "megatron", folder = "trials", output, profile;
  double probability = 0.95;
  int minutes = 30;
  bool go = false, json = false;
};

/// A plan and what became of it.
struct MeasuredPlan {
  std::string plan, command, log, record, script;
  JobRequest request;
  simulator::Certainty certainty;
  double predicted_s = 0;            ///< before anything was measured
  std::optional<double> refitted_s;  ///< by the profile as fitted to the trials
  std::string why_not;               ///< no time came of it
};

/// The trials as they stand, and what they say of the machine.
struct Trials {
  std::vector<MeasuredPlan> plans;
  std::vector<planner::TrialTime> times;  ///< of each plan, as predicted now
  planner::TrialErrors errors;
  hardware::Node base;  ///< the machine's profile before the trials
  calibration::Measurements measurements;
  std::optional<calibration::Fit> fit;
};

std::string replaced(std::string text, const std::string& name, const std::string& by) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size())) {
    text.replace(at, name.size(), by);
  }
  return text;
}

/// The command with what it asks for of this plan.
std::string command_of(const TrialsOptions& options, const MeasuredPlan& trial) {
  const int ranks = trial.request.file.job.plan.ranks();
  const int devices = std::min(ranks, trial.request.cluster.groups.front().node.devices);
  const std::vector<std::pair<std::string, std::string>> values{
      {"{plan}", trial.plan},
      {"{script}", trial.script},
      {"{record}", trial.record},
      {"{log}", trial.log},
      {"{ranks}", std::to_string(ranks)},
      {"{nodes}", std::to_string((ranks + devices - 1) / devices)}};
  std::string command = options.command;
  for (const auto& [name, value] : values) command = replaced(std::move(command), name, value);
  return command;
}

MeasuredPlan trial_of(const TrialsOptions& options, const std::string& plan, std::size_t number) {
  JobOptions job;
  job.plan_path = plan;
  MeasuredPlan trial;
  trial.plan = plan;
  trial.request = resolve_plan(job);
  const std::string stem = (std::filesystem::path(options.folder) / fmt::format("trial-{}", number + 1)).string();
  trial.log = stem + ".log", trial.record = stem + "-run.json", trial.script = stem + ".launch";
  const simulator::Simulation simulation = predict(trial.request, /*ignore_memory=*/true).simulation;
  trial.predicted_s = simulation.iteration_s;
  trial.certainty = simulation.certainty;
  trial.command = command_of(options, trial);
  return trial;
}

/// Of what a prediction may be off by, what is not the plan's own is shared by the plans of a job.
planner::TrialErrors errors_of(const simulator::Certainty& certainty) {
  planner::TrialErrors errors;
  errors.own = std::max(certainty.between_plans / std::sqrt(2.0), kLeastOwn);
  const double all = std::log(certainty.iteration_s.high / certainty.iteration_s.low) / (2 * kReach);
  errors.shared = std::sqrt(std::max(0.0, all * all - errors.own * errors.own));
  errors.noise = kLeastNoise;
  return errors;
}

void write_script(const TrialsOptions& options, const MeasuredPlan& trial) {
  if (options.command.find("{script}") == std::string::npos) return;
  const launch::Trainer to = launch::find_trainer(options.trainer)->trainer;
  base::write_file_atomically(
      trial.script, launch::export_plan(trial.request.file.job, trial.request.cluster, to, trial.request.chosen).text);
}

/// Seconds of an iteration: the median after the warm-up, of the run record where there is one, else of the log; and to
/// `measurements` what the machine's profile can be fitted to.
double measured(const MeasuredPlan& trial, calibration::Measurements& measurements) {
  std::error_code none;
  if (std::filesystem::exists(trial.record, none)) {
    program::RunRecord record =
        program::run_record_from_json(base::parse_json(base::read_file(trial.record), trial.record), trial.record);
    calibration::imports::TrainingLog log;
    for (const program::StepRecord& step : record.steps) log.iteration_s.push_back(step.seconds);
    if (!log.iteration_s.empty()) {
      measurements.records.push_back(std::move(record));
      return log.typical_iteration_s();
    }
  }
  const double time =
      calibration::imports::read_training_log(base::read_file(trial.log), trial.log).typical_iteration_s();
  measurements.jobs.push_back({trial.request.file.job, time, {}, trial.log});
  return time;
}

/// Fits the machine's profile to what was measured so far, and predicts every plan anew. Mixed clusters are left as
/// they are: a measurement does not say which of the nodes it is of.
void refit(Trials& trials) {
  const hardware::Cluster& cluster = trials.plans.front().request.cluster;
  if (trials.measurements.empty() || !cluster.homogeneous()) return;
  try {
    // Always of the profile as it was: measurements that are fitted twice would count twice.
    trials.fit = calibration::calibrate(trials.base, trials.measurements);
  } catch (const base::Failure& failure) {
    base::say("the profile is not fitted: {}\n", failure.error().message);
    return;
  }
  for (std::size_t i = 0; i < trials.plans.size(); ++i) {
    MeasuredPlan& trial = trials.plans[i];
    for (hardware::NodeGroup& group : trial.request.cluster.groups) group.node = trials.fit->node;
    trial.refitted_s = predict(trial.request, /*ignore_memory=*/true).simulation.iteration_s;
    trials.times[i].predicted_s = *trial.refitted_s;
  }
}

/// Runs one trial and keeps its time, or why there is none.
void run_trial(const TrialsOptions& options, Trials& trials, std::size_t number, const std::stop_token& stop) {
  MeasuredPlan& trial = trials.plans[number];
  planner::TrialTime& time = trials.times[number];
  std::error_code none;
  std::filesystem::remove(trial.record, none);
  write_script(options, trial);
  base::say("{}: {}\n", trial.plan, trial.command);
  const CommandEnd end = run_shell_command(trial.command, trial.log, std::chrono::minutes(options.minutes), stop);
  if (end.stopped) throw base::Failure(base::ErrorKind::kInterrupted, "interrupted; what was measured is kept");
  try {
    if (end.timed_out) trial.why_not = fmt::format("ended after {} minutes", options.minutes);
    if (trial.why_not.empty() && end.status != 0) trial.why_not = fmt::format("exit status {}", end.status);
    if (trial.why_not.empty()) time.measured_s = measured(trial, trials.measurements);
  } catch (const base::Failure& failure) {
    trial.why_not = failure.error().message;
  }
  time.failed = !time.measured_s;
  const std::string what = time.failed ? trial.why_not + ", see " + trial.log : seconds(*time.measured_s);
  base::say("{}: predicted {}, measured {}\n", trial.plan, seconds(time.predicted_s), what);
  if (!time.failed) refit(trials);
}

/// Until one is the fastest with the probability asked for. Whether it was interrupted.
bool run_all(const TrialsOptions& options, Trials& trials) {
  std::error_code why;
  std::filesystem::create_directories(options.folder, why);
  if (why) fail_usage(fmt::format("--folder {}: cannot be made: {}", base::quote(options.folder), why.message()));
  const Interrupts interrupts;
  while (const auto next = planner::next_trial(trials.times, trials.errors, options.probability)) {
    try {
      run_trial(options, trials, *next, interrupts.token());
    } catch (const base::Failure& failure) {
      if (failure.error().kind == base::ErrorKind::kInterrupted) return true;
      throw;
    }
  }
  return false;
}

nlohmann::json json_of(const TrialsOptions& options, const Trials& trials) {
  const planner::TrialBelief belief = planner::belief_of(trials.times, trials.errors);
  const auto best = planner::best_trial(trials.times, trials.errors);
  nlohmann::json json{{"schema", "trivium.trial/1"},
                      {"dry_run", !options.go},
                      {"decided", best && belief.fastest[*best] >= options.probability},
                      {"best", best ? nlohmann::json(trials.plans[*best].plan) : nlohmann::json()}};
  auto& all = json["trials"] = nlohmann::json::array();
  for (std::size_t i = 0; i < trials.plans.size(); ++i) {
    const MeasuredPlan& trial = trials.plans[i];
    const double expected = belief.expected_s[i];
    // The interval has the shape of the prediction's, narrower by what was measured.
    const simulator::Certainty& sure = trial.certainty;
    const double left = belief.deviation[i] / std::hypot(trials.errors.shared, trials.errors.own);
    const auto end = [&](double of) { return expected * std::pow(of / sure.expected_s, left); };
    const auto& time = trials.times[i].measured_s;
    all.push_back({{"file", trial.plan},
                   {"plan", program::to_json(trial.request.file.job.plan)},
                   {"command", trial.command},
                   {"log", trial.log},
                   {"predicted_s", trial.predicted_s},
                   {"refitted_s", trial.refitted_s ? nlohmann::json(*trial.refitted_s) : nlohmann::json()},
                   {"measured_s", time ? nlohmann::json(*time) : nlohmann::json()},
                   {"why_not", trial.why_not.empty() ? nlohmann::json() : nlohmann::json(trial.why_not)},
                   {"expected_s", expected},
                   {"expected_interval_90_s", {end(sure.iteration_s.low), end(sure.iteration_s.high)}},
                   {"fastest_probability", belief.fastest[i]}});
  }
  return json;
}

std::string text_of(const nlohmann::json& json) {
  Table table({"<plan", "predicted", "measured", "expected", "90 % from", "to", "fastest with probability"});
  const auto time = [](const nlohmann::json& value) { return seconds(value.get<double>()); };
  const auto beside = [](const nlohmann::json& value, const nlohmann::json& middle) {
    return seconds_beside(value.get<double>(), middle.get<double>());
  };
  for (const auto& one : json["trials"]) {
    const auto& interval = one["expected_interval_90_s"];
    const std::string none = one["why_not"].is_null() ? "-" : "does not run";
    table.add({one["file"].get<std::string>(), time(one["predicted_s"]),
               one["measured_s"].is_null() ? none : time(one["measured_s"]), time(one["expected_s"]),
               beside(interval[0], one["expected_s"]), beside(interval[1], one["expected_s"]),
               simulator::probability_text(one["fastest_probability"].get<double>())});
  }
  std::string text = table.text();
  if (json["dry_run"].get<bool>()) {
    for (const auto& one : json["trials"]) text += one["command"].get<std::string>() + "\n";
    return text + "nothing was run: --go runs them, the likeliest to be the fastest first, until that is known\n";
  }
  if (json["best"].is_null()) return text + "no plan was measured\n";
  return text + fmt::format("{} is the fastest{}\n", json["best"].get<std::string>(),
                            json["decided"].get<bool>() ? "" : " of those that were measured");
}

void write_results(const TrialsOptions& options, const Trials& trials, const nlohmann::json& json) {
  if (!options.profile.empty() && trials.fit) {
    base::write_file_atomically(options.profile, base::json_text(hardware::to_json(trials.fit->node), 2) + "\n");
  }
  if (options.output.empty() || json["best"].is_null()) return;
  for (const MeasuredPlan& trial : trials.plans) {
    if (trial.plan != json["best"].get<std::string>()) continue;
    base::write_file_atomically(options.output, base::json_text(program::to_json(trial.request.file), 2) + "\n");
  }
}

int run(const TrialsOptions& options) {
  if (options.command.find("{plan}") == std::string::npos && options.command.find("{script}") == std::string::npos) {
    fail_usage("--launch names neither {plan} nor {script}, so every trial would be the same");
  }
  Trials trials;
  for (const std::string& plan : options.plans) {
    trials.plans.push_back(trial_of(options, plan, trials.plans.size()));
    trials.times.push_back({trials.plans.back().certainty.expected_s, {}, false});
  }
  trials.errors = errors_of(trials.plans.front().certainty);
  trials.base = trials.plans.front().request.cluster.groups.front().node;
  const bool stopped = options.go && run_all(options, trials);
  const nlohmann::json json = json_of(options, trials);
  write_results(options, trials, json);
  options.json ? print_json(json) : print(text_of(json));
  if (stopped) throw base::Failure(base::ErrorKind::kInterrupted, "interrupted; what was measured is kept");
  return 0;
}

}  // namespace

void add_trial(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TrialsOptions>();
  CLI::App* command = app.add_subcommand("trial", "Run plans as short jobs until it is known which is the fastest");
  command->add_option("PLAN", options->plans, "Plan files of one job, as `plan --trials` writes them")
      ->required()
      ->expected(2, -1)
      ->type_name("PLAN...");
  command
      ->add_option("--launch", options->command,
                   "Shell command that runs one: {plan} {script} {record} {log} {ranks} {nodes} stand for its own")
      ->required()
      ->type_name("COMMAND");
  std::vector<std::string> trainers;
  for (const launch::TrainerVersion& trainer : launch::trainers()) trainers.emplace_back(trainer.name);
  command->add_option("--to", options->trainer, "Whose file {script} is, as `export --to` writes it")
      ->check(one_of(trainers))
      ->capture_default_str();
  command->add_flag("--go", options->go, "Run them; without it only print what would be run");
  command->add_option("--folder", options->folder, "Where scripts, logs and records go")->capture_default_str();
  command->add_option("--probability", options->probability, "Probability with which the answer must be the fastest")
      ->check(CLI::Range(0.5, 0.999))
      ->capture_default_str();
  command->add_option("--minutes", options->minutes, "End a trial after N minutes")
      ->check(CLI::Range(1, kMostMinutes))
      ->capture_default_str();
  add_output(*command, "-o,--output", options->output, "Write the fastest plan's file", OutputKind::kPlan);
  add_output(*command, "--profile", options->profile, "Write the machine's profile as fitted to the trials",
             OutputKind::kProfile);
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace trivium::cli
