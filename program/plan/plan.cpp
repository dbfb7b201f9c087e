#include "program/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace trivium::program {

namespace {

// "8x3,4x1": eight three times, then four.
std::string run_lengths(const std::vector<int>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    text += fmt::format("{}{}x{}", text.empty() ? "" : ",", values[i], end - i);
    i = end;
  }
  return text;
}

// "selective:40,none:56": of the first 40 chunks, and of the others.
std::string run_lengths(const std::vector<Recompute>& values) {
  std::string text;
  for (auto begin = values.begin(); begin != values.end();) {
    const auto end = std::find_if(begin, values.end(), [&](Recompute value) { return value != *begin; });
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name_of(*begin), end - begin);
    begin = end;
  }
  return text;
}

std::string names_of(const std::vector<Module>& modules) {
  std::string names;
  for (const Module module : modules) names += fmt::format("{}{}", names.empty() ? "" : ",", name_of(module));
  return names;
}

/// What does not follow from the rest: collectives of gradients and parameters that run while nothing else does, and
/// those of tensor parts and experts that hide behind computation.
std::string overlap_words(const Plan& plan) {
  const bool reduces = plan.data * plan.context > 1, gathers = reduces && plan.zero_stage > 0;
  const bool reduces_apart = reduces && !plan.overlap.gradient_reduction;
  const bool gathers_apart = gathers && !plan.overlap.parameter_gather;
  std::string text;
  if (reduces_apart && (gathers_apart || !gathers)) {
    text += " no-overlap";
  } else if (reduces_apart || gathers_apart) {
    text += reduces_apart ? " no-overlap=reductions" : " no-overlap=gathers";
  }
  if (plan.pipeline > 1 && !plan.overlap.pipeline) text += " no-overlap=pipeline";
  if (plan.tensor > 1 && plan.overlap.tensor) text += " overlap=tensor";
  if (plan.expert > 1 && plan.overlap.expert) text += " overlap=experts";
  return text;
}

}  // namespace

std::string summary(const Plan& plan) {
  std::string text = fmt::format("TP{}", plan.tensor);
  if (plan.sequence_parallel) text += " SP";
  if (plan.context > 1)
    text += fmt::format(" CP{}{}", plan.context, plan.context_method == ContextMethod::kAllToAll ? "a2a" : "");
  if (plan.context > 1 && plan.context_heads > 1) text += fmt::format("h{}", plan.context_heads);
  text += fmt::format(" PP{}", plan.pipeline);
  if (plan.virtual_stages > 1) text += fmt::format("x{}", plan.virtual_stages);
  text += fmt::format(" DP{}", plan.data);
  if (plan.expert > 1) text += fmt::format(" EP{}", plan.expert);
  if (folds_experts(plan)) text += fmt::format(" ETP{}", plan.expert_tensor);
  if (plan.expert_dispatch != ExpertDispatch::kStack && plan.expert > 1) {
    text += fmt::format(" dispatch={}", name_of(plan.expert_dispatch));
  }
  if (plan.zero_stage > 0) text += fmt::format(" ZeRO-{}", plan.zero_stage);
  if (plan.shard_group > 0 && plan.shard_group < plan.data) text += fmt::format("/{}", plan.shard_group);
  text += " mb" +
          (plan.replica_micro_batch.empty() ? std::to_string(plan.micro_batch) : run_lengths(plan.replica_micro_batch));
  if (plan.pipeline > 1) text += fmt::format(" {}", name_of(plan.schedule));
  text += overlap_words(plan);
  if (plan.attention == Attention::kFlash) text += " flash";
  if (plan.fp8 != Fp8::kNone) text += fmt::format(" fp8={}", name_of(plan.fp8));
  if (plan.fp8_parameter_gather != Fp8Gather::kStack) {
    text += fmt::format(" fp8-parameters={}", name_of(plan.fp8_parameter_gather));
  }
  if (plan.moment_dtype != Moments::kFp32) text += fmt::format(" moments={}", name_of(plan.moment_dtype));
  text += " recompute=";
  text += plan.stage_recompute.empty() ? std::string(name_of(plan.recompute)) : run_lengths(plan.stage_recompute);
  if (plan.recompute_layers > 0) text += fmt::format("({} layers)", plan.recompute_layers);
  if (plan.recompute_group > 1) text += fmt::format("(groups of {})", plan.recompute_group);
  if (!plan.recompute_modules.empty()) text += fmt::format("({})", names_of(plan.recompute_modules));
  if (plan.scatter_gather != ScatterGather::kStack) {
    text += fmt::format(" scatter-gather={}", name_of(plan.scatter_gather));
  }
  if (plan.compression != Compression::kNone) text += fmt::format(" compression={}", name_of(plan.compression));
  if (plan.compression == Compression::kTopK) text += fmt::format(":{}", plan.top_k_share);
  const std::pair<const char*, Storage> kept[] = {{"optimizer", plan.offload.optimizer},
                                                  {"gradients", plan.offload.gradients},
                                                  {"parameters", plan.offload.parameters},
                                                  {"activations", plan.offload.activations}};
  for (const auto& [what, where] : kept) {
    if (where != Storage::kNone) text += fmt::format(" {}={}", what, name_of(where));
  }
  if (!plan.stage_layers.empty()) text += " layers=" + run_lengths(plan.stage_layers);
  if (!plan.stage_nodes.empty()) text += " nodes=" + run_lengths(plan.stage_nodes);
  if (plan.placement != Plan{}.placement) text += " placement=" + plan.placement;
  return text;
}

bool recomputes(const Plan& plan, Recompute how) {
  if (plan.stage_recompute.empty()) return plan.recompute == how;
  return std::ranges::find(plan.stage_recompute, how) != plan.stage_recompute.end();
}

ModuleSet modules_of(const Plan& plan) {
  ModuleSet modules;
  for (const Module module : plan.recompute_modules) modules.insert(module);
  return modules.empty() ? ModuleSet{Module::kCoreAttention} : modules;
}

void settle_recomputation(Plan& plan) {
  plan.recompute_modules.clear();
  settle_full_recomputation(plan);
}

void settle_full_recomputation(Plan& plan) {
  plan.recompute_layers = 0;
  plan.recompute_group = 1;
}

int Plan::stage_of(int position) const { return traits_of(schedule).stage_of(position, pipeline); }

int Plan::position_of(int stage, int chunk) const { return traits_of(schedule).position_of(stage, chunk, pipeline); }

bool Plan::stays(int position) const { return traits_of(schedule).stays(position, pipeline); }

int expert_tensor_ranks(const Plan& plan) { return plan.expert_tensor > 0 ? plan.expert_tensor : plan.tensor; }

bool folds_experts(const Plan& plan) { return expert_tensor_ranks(plan) < plan.tensor; }

int tensor_parts_of_experts(const Plan& plan) { return std::max(1, plan.tensor / expert_tensor_ranks(plan)); }

int expert_replicas(const Plan& plan) { return plan.expert / tensor_parts_of_experts(plan); }

StagePlace stage_place(const Plan& plan, int stage) {
  return {stage, plan.pipeline, plan.virtual_stages, plan.overlap.expert};
}

int micro_batch_of(const Plan& plan, int data) {
  return plan.replica_micro_batch.empty() ? plan.micro_batch : plan.replica_micro_batch[static_cast<std::size_t>(data)];
}

std::int64_t samples_of_pass(const Plan& plan) { return samples_before(plan, plan.data); }

std::int64_t samples_before(const Plan& plan, int data) {
  const std::vector<int>& sizes = plan.replica_micro_batch;
  if (sizes.empty()) return std::int64_t{data} * plan.micro_batch;
  return std::accumulate(sizes.begin(), sizes.begin() + data, std::int64_t{0});
}

std::vector<int> micro_batch_sizes(const Plan& plan) {
  if (plan.replica_micro_batch.empty()) return {plan.micro_batch};
  std::vector<int> sizes;
  for (const int size : plan.replica_micro_batch) {
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<int> replica_kinds(const Plan& plan) {
  const std::vector<int> sizes = micro_batch_sizes(plan);
  std::vector<int> kinds;
  for (const int size : plan.replica_micro_batch) {
    kinds.push_back(static_cast<int>(std::find(sizes.begin(), sizes.end(), size) - sizes.begin()));
  }
  return kinds;
}

std::int64_t micro_batches(const Plan& plan, std::int64_t global_batch) { return global_batch / samples_of_pass(plan); }

}  // namespace trivium::program
