#include "models/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace trivium::models {
namespace {

// Counts stay exact in 64 bits below this, sixteen bytes of optimizer state for each parameter included.
constexpr double kMostParameters = 1e17;

/// An upper bound of the parameter count in floating point: nothing overflows while asking whether it would.
double roughly(const Model& m) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double experts = m.experts ? real(m.experts->count) : 1;
  const double narrow = m.latent ? real(m.latent->query_rank + m.latent->key_rank + m.latent->rotary_dim) : 0;
  const double wide = real(m.heads) * (real(m.head_dim) + real(m.value_dim()));
  const double attention = 4 * real(m.hidden) * real(m.heads) * real(m.head_dim) + narrow * (real(m.hidden) + wide);
  const double inner =
      experts * real(m.ffn_hidden) + (m.experts ? real(m.experts->shared_hidden) : 0) + real(m.dense_hidden());
  const double mlp = 3 * real(m.hidden) * inner + experts * real(m.hidden);
  const double modules = real(m.mtp_depth());
  double extras = 0;
  for (const Extra& extra : m.extras) extras += real(extra.parameters);
  return (real(m.layers) + modules) * (attention + mlp + extras) + extras +
         2 * modules * real(m.hidden) * real(m.hidden) + real(m.hidden) * (2 * real(m.vocab) + real(m.max_sequence));
}

// The ends of the ramp may be the same: YaRN's is one pair wide at least (Kimi K2), Llama 3's is then none (Llama 4).
void validate(const Rotary& rotary, const base::JsonReader& reader) {
  const bool ramps = rotary.scaling == RotaryScaling::kLlama3 || rotary.scaling == RotaryScaling::kYarn;
  if (ramps && (rotary.original_sequence == 0 || rotary.fast_turns < rotary.slow_turns)) {
    reader.fail("rotary scaling by frequency needs original_sequence, and fast_turns not below slow_turns");
  }
}

void check_experts(const Model& model, const base::JsonReader& reader) {
  const Experts& e = *model.experts;
  if (e.top_k > e.count) {
    reader.fail(fmt::format("top_k ({}) is more than the number of experts ({})", e.top_k, e.count));
  }
  if (e.every > model.layers) {
    reader.fail(fmt::format("every ({}) is more than layers ({}): no layer would be a mixture", e.every, model.layers));
  }
  if (e.dense_layers > 0 && (e.every > 1 || e.dense_layers >= model.layers)) {
    reader.fail(fmt::format("dense_layers ({}) is below layers ({}), and stands where every is 1", e.dense_layers,
                            model.layers));
  }
  if (!e.mixture_layers.empty() && (e.every > 1 || e.dense_layers > 0 || e.mixture_layers.back() >= model.layers)) {
    reader.fail("mixture_layers are layers of the model, and stand without every and dense_layers");
  }
  if (e.count % e.groups != 0 || e.top_groups > e.groups || e.group_best > e.count / e.groups ||
      e.top_k > e.count / e.groups * e.top_groups) {
    reader.fail(fmt::format("{} experts cannot be chosen, {} of them, from the {} best of {} groups by their {} best",
                            e.count, e.top_k, e.top_groups, e.groups, e.group_best));
  }
}

void check_plain_layers(const Model& model, const base::JsonReader& reader) {
  const bool plain = model.window && model.window->plain_full;
  if (plain &&
      (model.positions != Positions::kRotary ||
       (model.window->full_every == 0 && model.window->first_layer == 0 && model.window->full_layers.empty()))) {
    reader.fail("plain_full stands where positions are rotary and some layers see all keys");
  }
  if (model.temperature && !plain)
    reader.fail("temperature stands where heads of full layers do not turn (plain_full)");
  if (model.plain_head_norms && (model.head_norms || model.latent || model.positions != Positions::kRotary)) {
    reader.fail("plain_head_norms stands with rotary positions, without head_norms and latent attention");
  }
}

void complete_latent(Model& model, const base::JsonReader& reader) {
  const Latent& latent = *model.latent;
  model.head_dim = latent.plain_dim + latent.rotary_dim;
  model.kv_heads = model.heads;
  if (latent.rotary_dim % 2 != 0) {
    reader.fail(fmt::format("rotary_dim ({}) is odd; rotary positions turn pairs of numbers", latent.rotary_dim));
  }
  if (model.positions != Positions::kRotary || model.rotary.share != 1 || model.head_norms || model.parallel_block ||
      model.qkv_bias) {
    reader.fail(
        "latent attention stands with rotary positions (share 1), without qkv_bias, head_norms and "
        "parallel_block");
  }
}

}  // namespace

void complete_and_validate(Model& model, const base::JsonReader& reader) {
  if (model.latent) complete_latent(model, reader);
  if (model.kv_heads == 0) model.kv_heads = model.heads;
  if (model.ffn_hidden == 0) model.ffn_hidden = 4 * model.hidden;
  if (model.head_dim == 0) {
    if (model.hidden % model.heads != 0) {
      reader.fail(fmt::format("hidden ({}) is not a multiple of heads ({}); give head_dim or change one", model.hidden,
                              model.heads));
    }
    model.head_dim = model.hidden / model.heads;
  }
  if (model.kv_heads > model.heads || model.heads % model.kv_heads != 0) {
    reader.fail(fmt::format("heads ({}) is not a multiple of kv_heads ({}); every key head serves as many query heads",
                            model.heads, model.kv_heads));
  }
  if (model.positions == Positions::kRotary && !model.latent && model.rotary.share == 1 && model.head_dim % 2 != 0) {
    reader.fail(fmt::format("head_dim ({}) is odd; rotary positions turn pairs of numbers", model.head_dim));
  }
  validate(model.rotary, reader);
  if (model.window && model.window->rotary) {
    validate(*model.window->rotary, reader);
    if (model.window->rotary->share != model.rotary.share) {
      reader.fail("the window's rotary has another share than the model's, which is not supported");
    }
  }
  if (model.window && model.window->first_layer >= model.layers) {
    reader.fail(fmt::format("the window's first_layer ({}) is not below layers ({}): no layer would have it",
                            model.window->first_layer, model.layers));
  }
  if (model.branch_norms && (model.parallel_block || model.linear_bias)) {
    reader.fail("branch_norms with parallel_block or linear_bias is not supported");
  }
  if (model.window && !model.window->full_layers.empty() &&
      (model.window->full_every > 0 || model.window->first_layer > 0)) {
    reader.fail("the window's full_layers stand without full_every and first_layer");
  }
  if (model.window && model.window->full_every == 1) {
    reader.fail("the window's full_every is 1: no layer would have it");
  }
  check_plain_layers(model, reader);
  if (model.mtp && model.positions == Positions::kLearned) {
    reader.fail("mtp with learned positions is not supported: the end of the model would need their table, too");
  }
  if (model.experts) check_experts(model, reader);
  if (const double parameters = roughly(model); parameters > kMostParameters) {
    reader.fail(
        fmt::format("about {:.1e} parameters; the most that is supported is {:.0e}", parameters, kMostParameters));
  }
}

}  // namespace trivium::models
