#include "cli/commands/plan_trials.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "base/quote.h"
#include "cli/render/plan_report.h"
#include "cli/render/render.h"
#include "planner/advice/trials.h"
#include "simulator/certainty/probability_text.h"

namespace trivium::cli {
namespace {

constexpr int kMostTrials = 100;

}  // namespace

void add_trial_options(CLI::App& command, TrialOptions& options) {
  const char* group = "Studies";
  command
      .add_option("--trials", options.count,
                  "Write N plans to measure: those likeliest to be the fastest, by how far predictions are off")
      ->check(CLI::Range(1, kMostTrials))
      ->group(group);
  command.add_option("--trials-folder", options.folder, "Folder for them: empty, or to be made")
      ->type_name("FOLDER")
      ->capture_default_str()
      ->group(group);
}

void check_trial_options(const TrialOptions& options) {
  if (options.count == 0) return;
  namespace fs = std::filesystem;
  const std::string named = "--trials-folder " + base::quote(options.folder);
  std::error_code why;
  const bool there = fs::exists(options.folder, why);
  if (there && !(fs::is_directory(options.folder, why) && fs::is_empty(options.folder, why))) {
    fail_usage(named + ": is there and not an empty folder; name another");
  }
  fs::create_directories(options.folder, why);
  if (why) fail_usage(fmt::format("{}: cannot be made: {}", named, why.message()));
}

std::string write_trials(const TrialOptions& options, const JobRequest& request, const planner::SearchResult& result,
                         nlohmann::json& json) {
  if (options.count == 0 || result.best.empty()) return "";
  Table table({"<to measure", "<plan", "iteration", "fastest with probability"});
  json["trials"] = nlohmann::json::array();
  int number = 0;
  for (const planner::Trial& trial : planner::trials(result, options.count)) {
    const std::string file = (std::filesystem::path(options.folder) / fmt::format("trial-{}.json", ++number)).string();
    program::PlanFile plan = request.file;
    plan.job.plan = trial.candidate.plan;
    base::write_file_atomically(file, base::json_text(program::to_json(plan), 2) + "\n");
    table.add({file, program::summary(trial.candidate.plan), seconds(trial.candidate.simulation.iteration_s),
               simulator::probability_text(trial.fastest_probability)});
    nlohmann::json one = candidate_json(trial.candidate);
    one["file"] = file;
    one["fastest_probability"] = trial.fastest_probability;
    json["trials"].push_back(std::move(one));
  }
  return "\n" + table.text() + "twenty steps of each decide between them (trivium export, trivium run)\n";
}

}  // namespace trivium::cli
