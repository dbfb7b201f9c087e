// trivium explain: why a plan takes the time it takes, why another one is not the answer, or why a run took longer.
#include "planner/advice/explain.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"
#include "calibration/foreign/explanation.h"
#include "calibration/foreign/flight_recorder.h"
#include "calibration/foreign/foreign_files.h"
#include "calibration/foreign/memory_snapshot.h"
#include "calibration/measurements/gzip.h"
#include "cli/options/command.h"
#include "cli/options/options.h"
#include "cli/options/prepare.h"
#include "cli/render/figures.h"
#include "cli/render/render.h"
#include "cli/render/trace_explanation.h"
#include "planner/advice/measured.h"
#include "planner/advice/why_not.h"
#include "program/plan/job_json.h"
#include "simulator/memory/memory.h"
#include "simulator/predict/simulate.h"

namespace trivium::cli {
namespace {

constexpr const char* kAuto = "auto";

struct ExplainOptions {
  JobOptions job;
  std::string why_not;
  std::vector<std::string> traces;
  bool json = false;
};

std::string lines(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

void explain_other(const ExplainOptions& options, const JobRequest& request) {
  // The other plan is judged on this job: the same model, batch and cluster.
  program::Job favourite = request.file.job;
  favourite.plan = program::read_plan_file(options.why_not).job.plan;
  const planner::WhyNot why = planner::why_not(request.file.job, favourite, request.cluster);
  if (!options.json) return print(program::summary(favourite.plan) + "\n" + lines(why.sentences));
  nlohmann::json json{{"schema", "trivium.why-not/1"},
                      {"verdict", why.verdict},
                      {"rule", why.rule.empty() ? nlohmann::json() : nlohmann::json(why.rule)},
                      {"sentences", why.sentences},
                      {"plan", program::to_json(favourite.plan)},
                      {"iteration_s", why.iteration_s > 0 ? nlohmann::json(why.iteration_s) : nlohmann::json()},
                      {"bound_s", why.bound_s > 0 ? nlohmann::json(why.bound_s) : nlohmann::json()}};
  auto& differences = json["differences"] = nlohmann::json::array();
  for (const program::Difference& d : why.differences) {
    differences.push_back({{"field", d.field}, {"chosen", d.before}, {"other", d.after}});
  }
  print_json(json);
}

/// Who waits for whom needs no plan.
void explain_hang(const ExplainOptions& options, const std::vector<std::string>& contents) {
  std::vector<calibration::foreign::FlightDump> dumps;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    dumps.push_back(calibration::foreign::read_flight_dump(contents[i], base::one_line(options.traces[i])));
  }
  const std::vector<calibration::foreign::Stall> stalls = calibration::foreign::stalls_of(dumps);
  if (options.json) return print_json(calibration::foreign::to_json(dumps, stalls));
  print(calibration::foreign::to_text(dumps, stalls));
}

/// The plan's memory of the snapshot's rank; of its fullest stage where the file's name has no number.
simulator::StageMemory planned_memory(const JobRequest& request, const std::optional<int>& rank) {
  const auto lowered = program::lower(request.file.job);
  if (const auto* why = std::get_if<program::Infeasible>(&lowered)) {
    throw base::Failure(base::ErrorKind::kNoPlan, why->reason);
  }
  const auto& program = std::get<program::Program>(lowered);
  const std::vector<simulator::StageMemory> stages = simulator::memory_of(program, request.cluster);
  if (rank && *rank < program.mesh.size()) return stages.at(static_cast<std::size_t>(program.role_index(*rank)));
  return *std::ranges::max_element(stages, {}, &simulator::StageMemory::total);
}

void explain_memory(const ExplainOptions& options, const std::vector<std::string>& contents) {
  std::optional<JobRequest> request;
  if (options.job.plan_path != kAuto) request = resolve_plan(options.job);
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const auto snapshot = calibration::foreign::read_memory_snapshot(contents[i], base::one_line(options.traces[i]));
    std::optional<simulator::StageMemory> planned;
    if (request) planned = planned_memory(*request, snapshot.rank);
    all.push_back(calibration::foreign::to_json(snapshot, planned));
    text += (text.empty() ? "" : "\n") + calibration::foreign::to_text(snapshot, planned);
  }
  if (options.json) return print_json(all.size() == 1 ? all.front() : all);
  print(text);
}

/// Dumps of the Flight Recorder and snapshots of memory are told from traces by their content; false: none of them.
bool explain_dumps(const ExplainOptions& options) {
  std::vector<std::string> contents;
  std::size_t flights = 0, snapshots = 0;
  for (const std::string& file : options.traces) {
    std::string content = base::read_file(file);
    if (calibration::imports::is_gzip(content)) content = calibration::imports::unpacked(content, file);
    flights += calibration::foreign::is_flight_dump(content) ? 1 : 0;
    snapshots += calibration::foreign::is_memory_snapshot(content) ? 1 : 0;
    if (flights + snapshots > 0) contents.push_back(std::move(content));
  }
  if (flights + snapshots == 0) return false;
  if (flights == options.traces.size()) {
    explain_hang(options, contents);
  } else if (snapshots == options.traces.size()) {
    explain_memory(options, contents);
  } else {
    fail_usage(
        "--trace: dumps of the Flight Recorder, snapshots of memory and traces are explained apart; give one kind");
  }
  return true;
}

/// The plan "auto" is what the traces tell of the job.
void explain_traces(ExplainOptions options) {
  if (!options.why_not.empty()) fail_usage("--trace and --why-not answer different questions; give one of them");
  if (explain_dumps(options)) return;
  const calibration::foreign::ForeignRun run = calibration::foreign::read_foreign(options.traces);
  if (options.job.plan_path == kAuto) {
    options.job.plan_path.clear();
    options.job.told = calibration::foreign::told_fields(run);
  }
  const JobRequest request = resolve_plan(options.job);
  const auto explanation = calibration::foreign::explain_foreign(run, request.file.job, request.cluster);
  if (options.json) return print_json(calibration::foreign::to_json(explanation));
  print(trace_report(explanation, request.file.job));
}

void run(const ExplainOptions& options) {
  if (!options.traces.empty()) return explain_traces(options);
  const JobRequest request = resolve_plan(options.job);
  const simulator::Prepared prepared = prepare(request, false);
  if (!options.why_not.empty()) return explain_other(options, request);
  const simulator::Simulation simulation = predict(request, false).simulation;
  std::vector<std::string> sentences = planner::explain(prepared.program(), simulation, request.cluster);
  const auto promise =
      planner::plausibility_of(prepared.program().job, request.cluster, simulation, hardware::measured_mfu());
  if (promise) sentences.push_back(promise->words);
  std::string run =
      planner::same_model_text(prepared.program().job, request.cluster, simulation, hardware::measured_runs());
  if (!run.empty()) sentences.push_back(std::move(run));
  if (options.json) {
    nlohmann::json json = headline_json(simulation, request.file.job.plan);
    json["schema"] = "trivium.explanation/1";
    json["sentences"] = sentences;
    print_json(json);
    return;
  }
  print(lines(sentences));
}

}  // namespace

void add_explain(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("explain", "Say why a plan takes its time and what to change first, or why not another plan");
  add_job_options(*command, options->job);
  command->add_option("--why-not", options->why_not, "Plan file: what rules it out, or how much slower it is and where")
      ->type_name("PLAN");
  command
      ->add_option(
          "--trace", options->traces,
          "Traces of another trainer's run, a file for each rank (PyTorch's profiler, Nsight Systems SQLite), and "
          "its log: where it took longer than the plan. Or PyTorch's snapshots of memory, or dumps of its Flight "
          "Recorder: who waits for whom. PLAN may be `auto`: what the traces tell")
      ->type_name("FILE...");
  command->add_flag("--json", options->json, "JSON on stdout");
  command->callback([options, &exit_code] {
    run(*options);
    exit_code = 0;
  });
}

}  // namespace trivium::cli
