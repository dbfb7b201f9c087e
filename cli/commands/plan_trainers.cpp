#include "cli/commands/plan_trainers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/render/plan_report.h"
#include "cli/render/render.h"
#include "planner/advice/trainer_plans.h"
#include "program/plan/stack.h"
#include "simulator/placement/defaults.h"

namespace trivium::cli {
namespace {

constexpr double kLeastBudget_s = 30;  // of all trainers together

/// Why a trainer has no plan; empty where it has one.
std::string why_none(const planner::TrainerPlan& plan) {
  if (!plan.refused.empty()) return plan.refused;
  if (!plan.result.best.empty()) return "";
  return plan.result.proved ? nothing_fits(plan.request, plan.result, {}) : "stopped before any plan was simulated";
}

/// What is not proved of a plan: the search was stopped.
std::string unproved(const planner::SearchResult& result) {
  if (result.proved || result.bound_s <= 0) return "";
  return fmt::format(" (stopped early: at most {} slower than the fastest)",
                     percent(result.best_s / result.bound_s - 1));
}

}  // namespace

bool compares_trainers(const SpaceOptions& options, const JobRequest& request) {
  const program::Plan& plan = request.file.job.plan;
  const bool given = request.fixed.contains("stack") ||
                     std::ranges::any_of(options.fix, [](const std::string& fix) { return fix.starts_with("stack="); });
  const int devices = request.ranks > 0 ? request.ranks : request.cluster.devices();
  return options.trainer.empty() && !given && plan.stack == program::Plan{}.stack && devices > 1 &&
         !simulator::all_devices_are_cores(request.cluster);
}

std::vector<TrainerAnswer> trainer_answers(const SpaceOptions& options, const JobRequest& request,
                                           const planner::SearchRequest& wanted, const planner::SearchResult& result,
                                           const planner::Effort& effort, nlohmann::json& json) {
  const auto request_for = [&](const planner::TrainerSpace& trainer) {
    SpaceOptions space = options;
    space.trainer = trainer.trainer;
    JobRequest job = request;
    planner::SearchRequest search = search_request(space, job);
    search.best = 1;
    search.gap = wanted.gap;
    search.ignore_memory = wanted.ignore_memory;
    return search;
  };
  const std::chrono::duration<double> budget(std::max(kLeastBudget_s, result.seconds));
  std::vector<TrainerAnswer> answers;
  auto& listed = json["trainers"] = nlohmann::json::array();
  for (const planner::TrainerPlan& plan : planner::plan_for_all_trainers(request_for, budget, effort)) {
    TrainerAnswer answer{std::string(plan.trainer->trainer), {}, why_none(plan), unproved(plan.result)};
    nlohmann::json one{{"trainer", plan.trainer->trainer}, {"stack", plan.trainer->stack}, {"best", nullptr}};
    if (answer.why_not.empty()) {
      answer.best = plan.result.best.front();
      one["best"] = candidate_json(*answer.best);
      one["best"]["proved"] = plan.result.proved;
    }
    one["why_not"] = answer.why_not.empty() ? nlohmann::json() : nlohmann::json(answer.why_not);
    listed.push_back(std::move(one));
    answers.push_back(std::move(answer));
  }
  json["never_run_on_several_gpus"] = true;
  return answers;
}

}  // namespace trivium::cli
