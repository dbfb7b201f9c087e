#include "planner/space/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "planner/space/levels.h"
#include "program/plan/job_json.h"
#include "simulator/certainty/certainty.h"

namespace trivium::planner {

using program::Plan;

SearchRequest for_trainer(SearchRequest request, const TrainerSpace& trainer) {
  const Plan& plan = request.job.plan;
  const program::Training& training = request.job.training;
  const auto refuse = [&](const std::string& what) {
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--for {}: {}", trainer.trainer, what));
  };
  if (training.lora.used() && !trainer.writes_adapters) refuse("lora_rank: its files are not written with adapters");
  if (training.optimizer.kind == program::Update::kMuon) {
    if (!trainer.writes_muon) refuse("optimizer muon: its files are not written with it");
    if (request.fixed.contains("zero_stage") && plan.zero_stage > 1) {
      refuse(fmt::format("zero_stage {}: Megatron-FSDP has no Muon", plan.zero_stage));
    }
    request.constraints.push_back({Constraint::Kind::kMax, "zero_stage", "1"});
  }
  const models::Model& model = request.job.model;
  if (trainer.whole_key_heads && !model.latent) {
    if (request.fixed.contains("tensor") && model.kv_heads % plan.tensor != 0) {
      refuse(fmt::format("tensor {}: {} heads of keys are not a multiple of it", plan.tensor, model.kv_heads));
    }
    request.constraints.push_back({Constraint::Kind::kMax, "tensor", std::to_string(model.kv_heads)});
    for (int tensor = 2; tensor < model.kv_heads; ++tensor) {
      if (model.kv_heads % tensor == 0) continue;
      request.constraints.push_back({Constraint::Kind::kForbid, "tensor", std::to_string(tensor)});
    }
  }
  if (trainer.ties_within_a_stage && model.tied_embeddings) {
    if (request.fixed.contains("pipeline") && plan.pipeline > 1) {
      refuse(fmt::format("pipeline {}: tied embeddings need one stage", plan.pipeline));
    }
    request.constraints.push_back({Constraint::Kind::kMax, "pipeline", "1"});
  }
  for (const TrainerRule& rule : trainer.rules) {
    const bool settled = request.fixed.contains(rule.field) || searched(rule.field).never != nullptr;
    if (!rule.alone || !settled || rule.holds(plan, request.job)) continue;
    throw base::Failure(base::ErrorKind::kUsage, fmt::format("--for {}: {} {}: {}", trainer.trainer, rule.field,
                                                             program::text_of(plan, rule.field), rule.says));
  }
  request.fixed.insert("replica_micro_batch");  // as it is: no trainer has different sizes
  request.trainer = &trainer;
  return request;
}

std::string_view held_by_training(const program::Training& training, std::string_view field) {
  if (training.optimizer.kind != program::Update::kMuon) return "";
  constexpr std::array<std::string_view, 4> kHeld{"offload.optimizer", "offload.gradients", "offload.parameters",
                                                  "compression"};
  return std::ranges::find(kHeld, field) == kHeld.end() ? "" : "Muon steps matrices where their momentum is";
}

bool is_open(const SearchRequest& request, const std::string& field) {
  return !request.fixed.contains(field) && held_by_training(request.job.training, field).empty();
}

SearchRequest with_fields_settled(SearchRequest request) {
  constexpr const char* kList = "replica_micro_batch";
  Plan& given = request.job.plan;
  for (const std::string& field : program::plan_fields()) {
    if (request.fixed.contains(field) || is_open(request, field)) continue;
    program::set_field(given, request.job.training, field, text_of(Plan{}, field));
  }
  const auto open = [&](const char* list) { return !request.fixed.contains(list); };
  if (open("stage_layers")) given.stage_layers.clear();
  if (open("stage_nodes")) given.stage_nodes.clear();
  // Not searched there, and a plan that was found with replicas by kind has one that leaves no stage its nodes.
  if (!request.cluster.homogeneous() && open("placement")) given.placement = Plan{}.placement;
  if (open("stage_recompute")) given.stage_recompute.clear();
  const bool full = given.recompute == program::Recompute::kFull && !open("recompute");
  for (const char* of_full : {"recompute_layers", "recompute_group"}) {
    if (open(of_full) || full || text_of(given, of_full) == text_of(Plan{}, of_full)) continue;
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("{} is of full recomputation; fix recompute full, too, or leave it out", of_full));
  }
  if (!full) settle_full_recomputation(given);
  if (open("recompute_modules") && open("recompute")) given.recompute_modules.clear();
  if (open(kList)) given.replica_micro_batch.clear();
  Plan& plan = request.job.plan;
  const std::vector<int>& sizes = plan.replica_micro_batch;
  if (!request.fixed.contains(kList) || sizes.empty()) return request;
  const auto refuse = [&](const std::string& why) { throw base::Failure(base::ErrorKind::kUsage, kList + why); };
  if (request.fixed.contains("data") && static_cast<std::size_t>(plan.data) != sizes.size()) {
    refuse(fmt::format(" has {} entries; data is {}", sizes.size(), plan.data));
  }
  const bool alike = std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
  if (!alike && (request.cluster.homogeneous() || request.ranks > 0)) {
    refuse(
        ": different sizes are searched for on clusters of heterogeneous nodes, all of them used; trivium simulate "
        "takes "
        "them anywhere");
  }
  plan.data = static_cast<int>(sizes.size());
  plan.micro_batch = sizes.front();
  request.fixed.insert("data");
  request.fixed.erase("micro_batch");
  if (alike) {
    plan.replica_micro_batch.clear();
    request.fixed.erase(kList);
    request.fixed.insert("micro_batch");
  }
  return request;
}

SearchRequest with_fit_probability(SearchRequest request, double probability) {
  const double usable =
      probability > 0 ? simulator::usable_memory(request.job, request.cluster, probability) : double{1};
  for (hardware::NodeGroup& group : request.cluster.groups) group.node.device.usable = usable;
  return request;
}

}  // namespace trivium::planner
