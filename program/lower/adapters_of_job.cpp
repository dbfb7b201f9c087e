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
  const std::string other = "; use lora_rank 0, or a model without them";
  if (!lora.qkv && !lora.projection && !lora.fc1 && !lora.fc2) return without("adapters of nothing; give lora_targets");
  if (job.model.experts) return without("adapters in a mixture of experts" + other);
  if (job.model.latent) return without("adapters of latent attention" + other);
  if (job.model.mtp) return without("modules of multi-token prediction stay as they are; use lora_rank 0, or mtp 0");
  if (job.model.attention_sinks) return without("attention sinks that stay as they are" + other);
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

}  // namespace

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
  const double hidden = static_cast<double>(model.hidden), ffn = static_cast<double>(model.dense_hidden());
  const double attended = static_cast<double>(model.heads * model.value_dim());
  const double qkv = static_cast<double>((model.heads + 2 * model.kv_heads) * model.head_dim);
  const double widths = (lora.qkv ? hidden + qkv : 0) + (lora.projection ? attended + hidden : 0) +
                        (lora.fc1 ? hidden + (model.gated() ? 2 : 1) * ffn : 0) + (lora.fc2 ? ffn + hidden : 0);
  const double adapters = 2 * static_cast<double>(lora.rank * model.layers) * widths;  // forward
  flops.model += 3 * adapters - frozen;
  flops.hardware_full += 4 * adapters - frozen;
  flops.hardware_selective += 3 * adapters - frozen;
  return flops;
}

}  // namespace trivium::program
