// What a layer keeps from its forward to its backward, and what of it recomputation drops in between.
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

std::vector<int*> buffers_of(LayerKept& kept) {
  LayerKept::Casts& casts = kept.casts;
  LayerKept::Adapted& adapted = kept.adapted;
  return {&kept.input,         &kept.norm1,         &kept.stats1,       &kept.projected,
          &kept.head_sigma,    &kept.latents,       &kept.query_latent, &kept.key_latent,
          &kept.qkv,           &kept.saved,         &kept.attended,     &kept.attended_whole,
          &kept.middle,        &kept.norm2,         &kept.stats2,       &kept.fc,
          &kept.act,           &kept.branch1,       &kept.branch2,      &kept.branch_stats1,
          &kept.branch_stats2, &casts.norm1,        &casts.attended,    &casts.norm2,
          &casts.act,          &casts.dispatched,   &adapted.qkv,       &adapted.projection,
          &adapted.fc1,        &adapted.fc2,        &adapted.queries,   &adapted.keys,
          &adapted.shared_fc1, &adapted.shared_fc2, &kept.router,       &kept.slots,
          &kept.dispatched,    &kept.returned,      &kept.loss,         &kept.spills,
          &kept.counts,        &kept.shared_fc,     &kept.shared_act,   &kept.scores_dropped,
          &kept.mask1,         &kept.mask2};
}
static_assert(sizeof(LayerKept) == 46 * sizeof(int), "buffers_of lists every member");

int LayerWriter::place_kept(int layer, const std::string& name, DType type, std::int64_t elements) {
  if (slots_ != nullptr && layer < s_.layers) return slots_->place(b_, layer, s_.layout(layer), name, type, elements);
  return b_.place(name, Space::kFrame, type, elements);
}

LayerKept LayerWriter::keep(int layer, int input, ModuleSet dropped) {
  return keep_as(layer, input, {.dropped = dropped, .casts = false});
}

LayerKept LayerWriter::keep_nothing(int layer, int input) { return keep_as(layer, input, {.in_frame = false}); }

LayerKept LayerWriter::keep_again(int layer, const LayerKept& kept, ModuleSet dropped, bool casts) {
  LayerKept again = keep_as(layer, kept.input, {.dropped = dropped, .placed = true, .casts = casts}), before = kept;
  const std::vector<int*> fresh = buffers_of(again), old = buffers_of(before);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (*fresh[i] == kNoBuffer) *fresh[i] = *old[i];
  }
  return again;
}

int LayerWriter::make_kept(const Kept& one, bool in_frame, bool placed) {
  if (in_frame && placed) return kNoBuffer;
  const std::string name = fmt::format("layer {} {}", one.layer, one.name);
  if (in_frame) return place_kept(one.layer, name, one.type, one.elements);
  return one.read_late ? hold(name, one.type, one.elements) : b_.temporary(name, one.type, one.elements);
}

// With fp8 gradients of matrices read what `keep_casts` keeps; what is gathered again, and a router's input, stay.
// Inputs of frozen matrices are read by adapters alone, a mixture's also by the gates of inputs. Norms and MLPs that
// are made again need what they are made of, or make what is then cast once more.
LayerKept LayerWriter::keep_as(int layer, int input, const Keeping& keeping) {
  const bool wide = s_.fp8 == Fp8::kNone, mixture = s_.kind(layer).mixture, adapts = s_.lora.used();
  const bool router = adapts ? mixture && s_.scales_input : reads_wide(layer);
  const bool shared = mixture && s_.shared_mlp.ffn > 0, adapts_mlp = s_.lora.fc1 && (!mixture || shared);
  const bool norms = keeping.keeps(Module::kLayerNorm);
  const auto keeps = [&](bool adapted) {
    return adapts ? adapted : wide || s_.sequence_parallel || (keeping.in_frame && !norms);
  };
  const bool one_norm = s_.parallel_block && s_.shared_norm;
  const bool keeps_all = keeps_mlp(layer, keeping) && (!shared || keeping.keeps(Module::kSharedExperts));
  const bool reads_again = keeping.in_frame && !keeps_all;  // the MLP, what its norm gave
  const bool heads_again = s_.query_rank == 0 && keeping.in_frame && !keeping.keeps(Module::kLatentUp);
  const bool latent = s_.latent() && (!adapts || s_.lora.qkv || heads_again);
  const bool keeps_norm1 =
      keeps(s_.lora.qkv || (one_norm && adapts_mlp)) || latent || ((router || reads_again) && one_norm);
  const bool keeps_norm2 = keeps(adapts_mlp) || router || reads_again;
  const std::int64_t own = s_.own_tokens * s_.hidden;
  const auto make = [&](const char* name, DType type, std::int64_t elements, bool frame, bool read_late = false) {
    return make_kept({layer, name, type, elements, read_late}, frame, keeping.placed);
  };
  LayerKept kept;
  kept.input = input;
  if (keeps_norm1) kept.norm1 = make("norm1", s_.type, own, norms, !s_.sequence_parallel || s_.latent());
  kept.stats1 = make("norm1 statistics", s_.wide, 2 * s_.own_tokens, keeping.in_frame);
  keep_attention(kept, layer, keeping);
  if (!s_.parallel_block) kept.middle = make("middle", s_.type, own, keeping.in_frame);
  if (!one_norm) {
    const bool routed = s_.routes_own && mixture;
    if (keeps_norm2) kept.norm2 = make("norm2", s_.type, own, norms, !s_.sequence_parallel || routed);
    kept.stats2 = make("norm2 statistics", s_.wide, 2 * s_.own_tokens, keeping.in_frame);
  }
  if (mixture) keep_mixture(kept, layer, keeping);
  if (s_.branch_norms) {
    kept.branch1 = make("attention branch", s_.type, own, keeping.in_frame);
    kept.branch2 = make("mlp branch", s_.type, own, keeping.in_frame);
    kept.branch_stats1 = make("attention branch statistics", s_.wide, 2 * s_.own_tokens, keeping.in_frame);
    kept.branch_stats2 = make("mlp branch statistics", s_.wide, 2 * s_.own_tokens, keeping.in_frame);
  }
  const auto [ffn, fc] = mixture ? s_.expert_mlp : s_.mlp;
  const std::int64_t mlp_rows = mixture ? s_.expert_rows : s_.tokens;
  const bool keeps_act = keeps_activation(layer, keeping), alone = keeps_mlp(layer, keeping) && !keeps_act;
  kept.fc = make("mlp inner", s_.type, mlp_rows * fc, keeps_mlp(layer, keeping));
  if (adapts ? s_.lora.fc2 : wide || alone) {
    kept.act = make("mlp activated", s_.type, mlp_rows * ffn, keeps_act, true);
  }
  if (!wide && !adapts) keep_casts(kept, layer, keeping);
  if (adapts) keep_adapted(kept, layer, keeping);
  if (s_.dropout) {
    kept.mask1 = make("attention residual dropout mask", DType::kUint8, own, keeping.in_frame);
    if (!s_.parallel_block) kept.mask2 = make("mlp residual dropout mask", DType::kUint8, own, keeping.in_frame);
  }
  return kept;
}

// A ring drops nothing of its core.
void LayerWriter::keep_attention(LayerKept& kept, int layer, const Keeping& keeping) {
  const auto make = [&](const char* name, DType type, std::int64_t elements, bool frame, bool read_late = false) {
    return make_kept({layer, name, type, elements, read_late}, frame, keeping.placed);
  };
  const bool core = keeping.keeps(Module::kCoreAttention) || (s_.ring() && keeping.in_frame);
  const std::int64_t scores = s_.all_tokens * s_.part_heads * s_.sequence;
  if (s_.norms_heads(layer)) {
    kept.projected = make("qkv before its norms", s_.type, s_.tokens * s_.qkv, keeping.in_frame);
    kept.head_sigma = make("head norm statistics", s_.wide, s_.tokens * (s_.heads + s_.kv_heads), keeping.in_frame);
  }
  if (s_.latent()) keep_latents(kept, layer, keeping);
  const bool heads = s_.latent() ? keeping.keeps(Module::kLatentUp) : keeping.in_frame;
  kept.qkv = make("qkv", s_.type, s_.all_tokens * s_.part_qkv, heads);
  kept.saved = s_.flash ? make("attention log-sum-exp", s_.wide, s_.all_tokens * s_.part_heads, core)
                        : make("attention probabilities", s_.type, scores, core);
  if (s_.exchanges()) {
    kept.attended_whole =
        make("attention output of all tokens", s_.type, s_.all_tokens * s_.part_attended, keeping.in_frame);
  }
  kept.attended = make("attention output", s_.type, s_.tokens * s_.attended, keeping.in_frame, s_.fp8 == Fp8::kNone);
  if (s_.dropout && !s_.flash) {
    kept.scores_dropped = make("attention dropout", DType::kUint8, scores * (1 + size_of(s_.type)), core);
  }
}

void LayerWriter::keep_mixture(LayerKept& kept, int layer, const Keeping& keeping) {
  const bool all = keeping.keeps(Module::kMixture), shared = all && keeping.keeps(Module::kSharedExperts);
  const auto make = [&](const char* name, DType type, std::int64_t elements, bool frame, bool read_late = false) {
    return make_kept({layer, name, type, elements, read_late}, frame, keeping.placed);
  };
  const std::int64_t listed = s_.tokens * s_.context;  // every context rank lists the choices of all tokens
  kept.router = make("router probabilities", s_.wide, listed * s_.experts, all);
  kept.slots = make("chosen experts and rows", DType::kInt32, 2 * listed * s_.top_k, all);
  if (s_.dropless) {
    kept.counts = make("rows of experts by rank", DType::kInt32, s_.experts * s_.expert_split, all);
  }
  if (s_.shared_mlp.ffn > 0) {
    kept.shared_fc = make("shared mlp inner", s_.type, s_.tokens * s_.shared_mlp.fc, shared);
    if (!s_.lora.used() || s_.lora.fc2) {
      kept.shared_act = make("shared mlp activated", s_.type, s_.tokens * s_.shared_mlp.ffn, shared, true);
    }
  }
  if (s_.context > 1 && !s_.dropless) {
    kept.spills = make("spilled rows by rank", DType::kInt32, 2 * s_.context + s_.most_received, all);
  }
  if (s_.lora.used() ? s_.lora.fc1 : s_.fp8 == Fp8::kNone) {
    kept.dispatched = make("rows into experts", s_.type, s_.expert_rows * s_.hidden, all);
  }
  kept.returned = make("rows out of experts", s_.type, s_.own_rows * s_.hidden, all);
}

bool LayerWriter::keeps_mlp(int layer, const Keeping& keeping) const {
  return keeping.keeps(s_.kind(layer).mixture ? Module::kMixture : Module::kMlp);
}

bool LayerWriter::keeps_activation(int layer, const Keeping& keeping) const {
  const bool dropped = s_.kind(layer).mixture && keeping.dropped.has(Module::kMixtureActivation);
  return keeps_mlp(layer, keeping) && !dropped;
}

}  // namespace trivium::program
