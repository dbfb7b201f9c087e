// What selective recomputation makes again in a layer's backward, module by module (Korthikanti et al. 2022, arXiv
// 2205.05198, section 5: the attention core; Megatron-Core: the others). Modules run whole, sums over the tensor group
// and exchanges with the experts included, as their checkpoints do.
#include "program/lower/recompute.h"

#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

std::optional<Infeasible> check_recomputation(const Job& job) {
  const Plan& plan = job.plan;
  if (plan.recompute_layers > 0 && !recomputes(plan, Recompute::kFull)) {
    return Infeasible{"recompute-layers-need-full",
                      "recompute_layers without full recomputation; use recompute full, or leave them out"};
  }
  if (plan.recompute_group > 1 && !recomputes(plan, Recompute::kFull)) {
    return Infeasible{"recompute-group-needs-full",
                      "recompute_group without full recomputation; use recompute full, or 1"};
  }
  if (plan.recompute_group > 1 && plan.recompute_layers > 0) {
    return Infeasible{"recompute-group-or-layers",
                      "recompute_group and recompute_layers: all layers are made again, in groups, or the first ones, "
                      "each by itself; leave one of them out"};
  }
  if (plan.recompute_modules.empty()) return std::nullopt;
  if (!recomputes(plan, Recompute::kSelective)) {
    return Infeasible{"recompute-modules-need-selective",
                      "recompute_modules without selective recomputation; use recompute selective, or leave them out"};
  }
  const ModuleSet modules = modules_of(plan);
  const auto lacks = [&](Module module, bool has, const char* what) -> std::optional<Infeasible> {
    if (has || !modules.has(module)) return std::nullopt;
    return Infeasible{"recompute-modules-of-the-model",
                      fmt::format("recompute_modules {}: the model has no {}; leave it out", name_of(module), what)};
  };
  const auto& experts = job.model.experts;
  if (auto no = lacks(Module::kMixture, experts.has_value(), "mixture layers")) return no;
  if (auto no = lacks(Module::kMixtureActivation, experts.has_value(), "mixture layers")) return no;
  if (auto no = lacks(Module::kSharedExperts, experts && experts->shared_hidden > 0, "shared experts")) return no;
  if (auto no = lacks(Module::kLatentUp, job.model.latent.has_value(), "latent attention")) return no;
  const bool dense = !experts || experts->every > 1 || experts->dense_layers > 0 || !experts->mixture_layers.empty();
  if (auto no = lacks(Module::kMlp, dense, "dense MLP; that of mixture layers is moe")) return no;
  if (modules.has(Module::kMixture) && plan.overlap.expert) {
    return Infeasible{"overlap.expert-supported",
                      "overlap.expert is not implemented: recomputed mixtures (moe) exchange rows once more; use other "
                      "recompute_modules"};
  }
  return std::nullopt;
}

void LayerWriter::modules_again(int layer, const LayerKept& kept, ModuleSet dropped) {
  constexpr Pass kPass = Pass::kRecompute;
  const bool mixture = s_.kind(layer).mixture;
  const auto norm_again = [&](int x, const char* parameter, int y) {
    if (y == kNoBuffer || !dropped.has(Module::kLayerNorm)) return;
    const int statistics =
        b_.temporary(fmt::format("{} statistics again {}", parameter, layer), s_.wide, 2 * s_.own_tokens);
    norm(x, parameter, y, statistics, layer, kPass);
  };
  norm_again(kept.input, "ln_1", kept.norm1);
  if (s_.latent() && dropped.has(Module::kLatentUp)) {
    const int qkv = make_heads(kept.norm1, kept, layer, kPass);
    place_heads(OpKind::kRotary, qkv, layer, kPass);
    if (s_.exchanges()) tokens_to_heads(qkv, kept.qkv, true, layer, kPass);
  }
  if (dropped.has(Module::kCoreAttention) && !s_.ring()) attention_core(kept, layer, kPass);
  norm_again(s_.parallel_block ? kept.input : kept.middle, "ln_2", kept.norm2);
  if (dropped.has(mixture ? Module::kMixture : Module::kMlp)) return mlp_again(layer, kept);
  if (!mixture) return;
  if (dropped.has(Module::kMixtureActivation) && kept.act != kNoBuffer) {
    activate_experts(kept.fc, kept.act, layer, kPass);
  }
  if (dropped.has(Module::kSharedExperts) && s_.shared_mlp.ffn > 0) {
    plain_mlp(shared_mlp(kept), gather_tokens(norm_of_mlp(kept), "norm2", layer, kPass), layer, kPass);
  }
}

// The MLP of a parallel block may read the norm that attention reads.
int LayerWriter::norm_of_mlp(const LayerKept& kept) const {
  return s_.parallel_block && s_.shared_norm ? kept.norm1 : kept.norm2;
}

// What the layer has of it stays: a norm of its sums reads these, and attention's products the cast of their norm.
void LayerWriter::mlp_again(int layer, LayerKept kept) {
  constexpr Pass kPass = Pass::kRecompute;
  kept.branch2 = kept.casts.norm1 = kNoBuffer;
  if (!s_.parallel_block) {
    mlp_sums(kept.norm2, kept, layer, kPass);
    return;
  }
  mlp_branch(gather_tokens(norm_of_mlp(kept), "norm2", layer, kPass), kept, layer, kPass);
}

}  // namespace trivium::program
