#include "gui/model/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/launch.h"
#include "planner/space/trainers.h"
#include "planner/space/usual_bounds.h"
#include "program/plan/job_json.h"
#include "simulator/placement/defaults.h"

namespace trivium::gui {
namespace {

/// As the command line's `--for` does: the stack decides what attention takes for granted.
void take_stack(std::string_view stack, const Scenario& scenario, program::Plan& plan) {
  if (!scenario.fixed.contains("stack")) plan.stack = stack;
  if (!scenario.fixed.contains("attention")) plan.attention = simulator::best_attention(plan, scenario.cluster);
}

planner::SearchRequest request_of(const Scenario& scenario) {
  planner::SearchRequest request;
  request.job = scenario.file.job;
  request.cluster = scenario.cluster;
  request.fixed = scenario.fixed;
  request.ranks = scenario.ranks;
  request.trainer = planner::find_trainer_space(scenario.trainer);
  if (request.trainer != nullptr) take_stack(request.trainer->stack, scenario, request.job.plan);
  request.constraints = planner::usual_bounds(scenario.cluster, request.job.plan.stack, {}, scenario.fixed);
  return request;
}

/// Errors: Failure(kUsage).
planner::SearchRequest settled_request(planner::SearchRequest request) {
  if (request.trainer != nullptr) request = planner::for_trainer(std::move(request), *request.trainer);
  return planner::with_fields_settled(std::move(request));
}

}  // namespace

Scenario example_scenario() {
  Scenario scenario;
  program::Job& job = scenario.file.job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = 1536;
  job.plan.tensor = 8;
  job.plan.pipeline = 16;
  job.plan.data = 8;
  job.plan.recompute = program::Recompute::kFull;
  return with_cluster(std::move(scenario), "dgx-a100-80gb:128");
}

Scenario mixed_example() {
  Scenario scenario;
  program::Job& job = scenario.file.job;
  job.model = models::load_model("gpt3-13b");
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = 512;
  job.plan.tensor = 8;
  job.plan.pipeline = 4;
  job.plan.data = 8;
  job.plan.recompute = program::Recompute::kFull;
  job.plan.precision = program::DType::kFp16;  // V100s have no bf16
  return with_cluster(std::move(scenario), "dgx-a100-80gb:16+dgx1-v100-32gb:16");
}

Scenario local_example() {
  Scenario scenario;
  program::Job& job = scenario.file.job;
  job.model = models::load_model("gpt-tiny");
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = 8;
  scenario = with_cluster(std::move(scenario), "this-machine");
  if (scenario.cluster.devices() >= 2) scenario.file.job.plan.data = 2;
  return scenario;
}

Scenario own_scenario(const std::string& model, const std::string& cluster, std::int64_t batch) {
  Scenario scenario;
  program::Job& job = scenario.file.job;
  job.model = models::load_model(model);
  job.training.sequence = job.model.max_sequence;
  job.training.global_batch = batch;
  scenario = with_cluster(std::move(scenario), cluster);
  int replicas = static_cast<int>(std::min<std::int64_t>(scenario.cluster.devices(), batch));
  while (batch % replicas != 0) --replicas;
  scenario.file.job.plan.data = replicas;
  scenario.file.job.plan.precision = simulator::best_precision(scenario.cluster);
  return scenario;
}

Scenario with_cluster(Scenario scenario, const std::string& text) {
  hardware::Cluster cluster = hardware::load_cluster(text);
  if (text.find(".json") != std::string::npos) return with_cluster(std::move(scenario), std::move(cluster));
  scenario.cluster = std::move(cluster);
  scenario.file.cluster = text;
  program::Plan& plan = scenario.file.job.plan;
  const auto groups = static_cast<int>(scenario.cluster.groups.size());
  if (std::any_of(plan.stage_nodes.begin(), plan.stage_nodes.end(), [&](int group) { return group >= groups; })) {
    plan.stage_nodes.clear();
  }
  if (simulator::peak_flops(plan, scenario.cluster) == 0) plan.precision = simulator::best_precision(scenario.cluster);
  return scenario;
}

Scenario with_cluster(Scenario scenario, hardware::Cluster cluster) {
  scenario.file.cluster = hardware::to_json(cluster);
  scenario.cluster = std::move(cluster);
  return scenario;
}

Scenario with_model(Scenario scenario, const std::string& name_or_path) {
  program::Job& job = scenario.file.job;
  const bool longest = job.training.sequence == job.model.max_sequence;
  job.model = models::load_model(name_or_path);
  if (longest) job.training.sequence = job.model.max_sequence;
  return scenario;
}

Scenario with_field(Scenario scenario, const std::string& field, const std::string& text) {
  program::set_field(scenario.file.job.plan, scenario.file.job.training, field, text);
  return scenario;
}

std::string job_words(const Scenario& scenario) {
  const program::Job& job = scenario.file.job;
  return fmt::format("{} on {}, {} samples of {} tokens", job.model.name, scenario.cluster.name,
                     base::integer(static_cast<double>(job.training.global_batch)),
                     base::integer(static_cast<double>(job.training.sequence)));
}

bool same_job(const Scenario& a, const Scenario& b) {
  return a.file.job.model == b.file.job.model &&
         program::to_json(a.file.job.training) == program::to_json(b.file.job.training) &&
         a.file.cluster == b.file.cluster;
}

Scenario with_trainer(Scenario scenario, const std::string& trainer) {
  scenario.trainer = trainer;
  const planner::TrainerSpace* space = planner::find_trainer_space(trainer);
  const std::string stack = space != nullptr ? std::string(space->stack) : program::Plan().stack;
  take_stack(stack, scenario, scenario.file.job.plan);
  if (const std::string why = why_no_search(scenario); !why.empty()) {
    throw base::Failure(base::ErrorKind::kUsage, why);
  }
  return scenario;
}

std::string trainer_words(const std::string& trainer) {
  const planner::launch::TrainerVersion* known = planner::launch::find_trainer(trainer);
  return known != nullptr ? std::string(known->software) : "Trivium";
}

std::string why_no_search(const Scenario& scenario) {
  try {
    settled_request(request_of(scenario));
    return "";
  } catch (const base::Failure& failure) {
    return failure.error().message;
  }
}

planner::SearchRequest search_request(const Scenario& scenario, int best) {
  planner::SearchRequest request = request_of(scenario);
  if (why_no_search(scenario).empty()) request = settled_request(std::move(request));
  request.best = 1;  // proved; the others are of other families
  request.gap = planner::kAnswerGap;
  request.others = best - 1;
  request.ignore_memory = scenario.ignore_memory;
  return planner::with_fit_probability(std::move(request), planner::kFitProbability);
}

}  // namespace trivium::gui
