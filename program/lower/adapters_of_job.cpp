#include <fmt/format.h>

#include "program/lower/adapters.h"
#include "program/lower/documents.h"
#include "program/lower/layout.h"
#include "program/schedules/schedule.h"

namespace trivium::program {

std::optional<Infeasible> check_adapters(const Job& job) {
  const Lora& lora = job.training.lora;
  const Plan& plan = job.plan;
  if (!lora.used()) {
    if (lora == Lora{}) return std::nullopt;
    return Infeasible{"lora-needs-rank",
                      "lora_alpha and lora_targets without adapters; give lora_rank, or leave them out"};
  }
  const auto without = [](const std::string& what) {
    return Infeasible{"lora-supported", "lora_rank is not implemented: " + what};
  };
  if (!lora.qkv && !lora.projection && !lora.fc1 && !lora.fc2) return without("adapters of nothing; give lora_targets");
  if (job.model.mtp) return without("modules of multi-token prediction stay as they are; use lora_rank 0, or mtp 0");
  if (traits_of(plan.schedule).splits_backward) {
    return without(fmt::format("{} puts off gradients of matrices, which frozen ones do not have; use schedule {}",
                               name_of(plan.schedule), name_of(usual_schedule(1))));
  }
  const Offload& away = plan.offload;
  if (away.optimizer != Storage::kNone || away.gradients != Storage::kNone || away.parameters != Storage::kNone) {
    return without("offloaded state beside frozen parameters; of offload use activations alone");
  }
  if (plan.compression != Compression::kNone) return without("compressed gradients of adapters; use compression none");
  const std::vector<int> layers = chunk_layers(job);
  if (layers.front() == 0 || layers.back() == 0) {
    return without(fmt::format("the {} chunk has no layer, so nothing to train; give it a layer (stage_layers)",
                               layers.back() == 0 ? "last" : "first"));
  }
  return std::nullopt;
}

namespace {

/// Keys that a query of packed documents sees, against those of whole samples, over all layers.
double share_of_keys(const Job& job) {
  const Documents& documents = job.training.documents;
  if (!documents.used()) return 1;
  const std::int64_t sequence = job.training.sequence;
  const bool chunked = job.model.window && job.model.window->chunked;
  double packed = 0, whole = 0;
  for (const models::LayersOfKind& alike : models::layer_kinds(job.model)) {
    const auto layers = static_cast<double>(alike.count);
    packed += layers * keys_seen(documents, sequence, alike.kind.window);
    whole += layers * models::keys_seen(sequence, alike.kind.window, chunked);
  }
  return packed / whole;
}

/// Columns and rows of all factors that a token meets in a layer of the kind: each takes 2 rank FLOPs per token
/// forward.
double adapted_widths(const models::Model& model, const Lora& lora, bool mixture) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto attended = static_cast<double>(model.heads * model.value_dim());
  const auto query = static_cast<double>(model.heads * model.head_dim);
  double before_core = hidden + query + 2 * static_cast<double>(model.kv_heads * model.head_dim);
  if (model.latent) {
    const models::Latent& latent = *model.latent;
    const auto key_rank = static_cast<double>(latent.key_rank), query_rank = static_cast<double>(latent.query_rank);
    const double latents = query_rank + key_rank + static_cast<double>(latent.rotary_dim);
    const double keys = static_cast<double>(model.heads * (latent.plain_dim + latent.value_dim));
    before_core = hidden + latents + (query_rank > 0 ? query_rank : hidden) + query + key_rank + keys;
  }
  const auto of_mlp = [&](std::int64_t ffn) {
    if (ffn == 0) return 0.0;
    const auto inner = static_cast<double>(ffn);
    return (lora.fc1 ? hidden + (model.gated() ? 2 : 1) * inner : 0) + (lora.fc2 ? inner + hidden : 0);
  };
  const double mlp = mixture ? static_cast<double>(model.experts->top_k) * of_mlp(model.ffn_hidden) +
                                   of_mlp(model.experts->shared_hidden)
                             : of_mlp(model.dense_hidden());
  return (lora.qkv ? before_core : 0) + (lora.projection ? attended + hidden : 0) + mlp;
}

}  // namespace

std::int64_t count_adapters(const Job& job) {
  std::int64_t count = 0;
  const auto add = [&](const std::vector<Parameter>& list, std::int64_t layers) {
    for (const Parameter& p : list) count += layers * p.rows * p.columns;
  };
  for (const models::LayersOfKind& alike : models::layer_kinds(job.model)) {
    add(adapter_parameters(job, 0, alike.kind.mixture), alike.count);
    if (alike.kind.mixture) add(expert_adapter_parameters(job, 0), alike.count);
  }
  return count;
}

models::FlopsPerToken flops_per_token(const Job& job) {
  const models::Model& model = job.model;
  models::FlopsPerToken flops = models::flops_per_token(model, job.training.sequence);
  double core = (flops.hardware_selective - flops.model) / 3;  // forward
  const double less = core * (1 - share_of_keys(job));
  core -= less;
  flops.model -= 3 * less;
  flops.hardware_full -= 4 * less;
  flops.hardware_selective -= 6 * less;
  const Lora& lora = job.training.lora;
  if (!lora.used()) return flops;
  const double frozen = flops.model / 3 - core;
  double widths = 0;
  for (const models::LayersOfKind& alike : models::layer_kinds(model)) {
    widths += static_cast<double>(alike.count) * adapted_widths(model, lora, alike.kind.mixture);
  }
  const double adapters = 2 * static_cast<double>(lora.rank) * widths;  // forward
  flops.model += 3 * adapters - frozen;
  flops.hardware_full += 4 * adapters - frozen;
  flops.hardware_selective += 3 * adapters - frozen;
  return flops;
}

}  // namespace trivium::program
