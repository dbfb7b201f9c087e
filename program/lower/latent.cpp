// Multi-head latent attention (DeepSeek-V2: arXiv 2405.04434, section 2.1 and appendix C). One product makes the
// latents of queries, of keys and values, and the part of the keys that turns and that all heads have in common; norms
// of the two latents; a product each that makes heads of them. From there on it is attention with a key head for every
// query head, whose values are of another width.
//
// Tensor ranks split heads; the latents are narrow, and every rank has them all (Megatron-LM,
// multi_latent_attention.py: down projections are replicated). With sequence parallelism a rank makes those of its own
// tokens, so that latents are gathered instead of what the norm gave. Every rank's heads add to the gradient of the
// latents, which is summed before the way back to the hidden state. The products around the latents are never in 8
// bits.
//
// Of a head the turning components come first: the scores are the same in any order that queries and keys share, and
// the turning ones are then where rotary positions expect them.
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {
namespace {

constexpr double kLatentEpsilon = 1e-6;  // that of the releases' code, whatever the layers' norms have

}  // namespace

LayerWriter::Product LayerWriter::latents_product(const LayerKept& kept) const {
  return {.parameter = "attn.latents",
          .out = s_.latents(),
          .in = s_.hidden,
          .wide = true,
          .own_tokens = true,
          .adapted = kept.adapted.qkv};
}

LayerWriter::Product LayerWriter::query_heads_product(const LayerKept& kept) const {
  const std::int64_t from = s_.query_rank > 0 ? s_.query_rank : s_.hidden;
  return {.parameter = "attn.query_heads", .out = s_.query, .in = from, .wide = true, .adapted = kept.adapted.queries};
}

LayerWriter::Product LayerWriter::key_heads_product(const LayerKept& kept) const {
  return {.parameter = "attn.key_heads", .out = s_.up, .in = s_.key_rank, .wide = true, .adapted = kept.adapted.keys};
}

Op& LayerWriter::latent_op(Op& op, std::int64_t n, int layer) {
  of_heads(op, n, layer).token_sharded = false;
  op.k = s_.shared_key;
  op.elements = s_.query_rank;
  op.epsilon = kLatentEpsilon;
  return op;
}

void LayerWriter::keep_latents(LayerKept& kept, int layer, const Keeping& keeping) {
  const auto keep = [&](const char* name, std::int64_t width, bool read_late) {
    const std::string full = fmt::format("layer {} {}", layer, name);
    const std::int64_t elements = s_.tokens * width;
    if (keeping.in_frame) return keeping.placed ? kNoBuffer : place_kept(layer, full, s_.type, elements);
    return read_late ? hold(full, s_.type, elements) : b_.temporary(full, s_.type, elements);
  };
  kept.latents = keep("latents", s_.latents(), false);
  if (s_.query_rank > 0) kept.query_latent = keep("latent of queries", s_.query_rank, true);
  kept.key_latent = keep("latent of keys and values", s_.key_rank, true);
}

Op& LayerWriter::token_collective(OpKind kind, int from, int to, std::int64_t width, int layer, Pass pass) {
  Op& op = b_.add(kind, pass, {from}, {to});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.dtype = s_.type;
  op.elements = s_.tokens * width;
  op.layer = static_cast<std::int16_t>(layer);
  return op;
}

int LayerWriter::latent_branch(int norm1, const LayerKept& kept, int layer, Pass pass) {
  const auto scratch = [&](const char* name, std::int64_t elements) {
    return b_.temporary(fmt::format("{} {}", name, layer), s_.type, elements);
  };
  const int own = s_.sequence_parallel ? scratch("latents of own tokens", s_.own_tokens * s_.latents()) : kept.latents;
  matmul(norm1, latents_product(kept), own, layer, pass);
  if (s_.sequence_parallel) token_collective(OpKind::kAllGather, own, kept.latents, s_.latents(), layer, pass);
  latent_op(b_.add(OpKind::kLatentNorm, pass,
                   {kept.latents, p_.value("attn.query_latent_norm.weight", layer),
                    p_.value("attn.key_latent_norm.weight", layer)},
                   {kept.query_latent, kept.key_latent}),
            s_.key_rank, layer);
  return attend(make_heads(norm1, kept, layer, pass), kept, layer, pass);
}

// Of this context rank's own tokens.
int LayerWriter::make_heads(int norm1, const LayerKept& kept, int layer, Pass pass) {
  const auto scratch = [&](const char* name, std::int64_t elements) {
    return b_.temporary(fmt::format("{} {}", name, layer), s_.type, elements);
  };
  const int read = s_.query_rank > 0 ? kept.query_latent : gather_tokens(norm1, "norm1", layer, pass);
  const int queries = scratch("query heads", s_.tokens * s_.query), keys = scratch("key heads", s_.tokens * s_.up);
  matmul(read, query_heads_product(kept), queries, layer, pass);
  matmul(kept.key_latent, key_heads_product(kept), keys, layer, pass);
  const int qkv = s_.exchanges() ? scratch("qkv of own tokens", s_.tokens * s_.qkv) : kept.qkv;
  latent_op(b_.add(OpKind::kLatentHeads, pass, {queries, keys, kept.latents}, {qkv}), s_.latents(), layer);
  return qkv;
}

int LayerWriter::latent_branch_backward(const LayerKept& kept, int d_branch, int layer) {
  constexpr Pass kPass = Pass::kBackward;
  const auto read_late = [&](const char* name, std::int64_t elements) {
    return hold(fmt::format("gradient of {} {}", name, layer), s_.type, elements);
  };
  const int d_qkv = gradient_of("qkv", s_.tokens * s_.qkv, layer);
  d_heads(kept, d_projection(kept, d_branch, layer), d_qkv, layer);
  const int d_queries = read_late("query heads", s_.tokens * s_.query);
  const int d_keys = read_late("key heads", s_.tokens * s_.up);
  const int d_all = s_.sequence_parallel ? gradient_of("latents of all tokens", s_.tokens * s_.latents(), layer)
                                         : read_late("latents", s_.tokens * s_.latents());
  latent_op(b_.add(OpKind::kLatentHeadsBackward, kPass, {d_qkv}, {d_queries, d_keys, d_all}), s_.latents(), layer);

  const bool narrow = s_.query_rank > 0;
  const bool reads = !s_.lora.used() || kept.adapted.queries != kNoBuffer;
  const int read = narrow  ? kept.query_latent
                   : reads ? gather_tokens(kept.norm1, "norm1 again", layer, kPass)
                           : kNoBuffer;
  const int d_read = gradient_of("what queries are made of", s_.tokens * (narrow ? s_.query_rank : s_.hidden), layer);
  matmul_backward(read, query_heads_product(kept), d_queries, d_read, layer, {});
  const int d_key_latent = gradient_of("latent of keys and values", s_.tokens * s_.key_rank, layer);
  matmul_backward(kept.key_latent, key_heads_product(kept), d_keys, d_key_latent, layer, {});
  latent_op(b_.add(OpKind::kLatentNormBackward, kPass,
                   {kept.latents, p_.value("attn.query_latent_norm.weight", layer),
                    p_.value("attn.key_latent_norm.weight", layer), narrow ? d_read : kNoBuffer, d_key_latent},
                   {d_all, p_.gradient("attn.query_latent_norm.weight", layer),
                    p_.gradient("attn.key_latent_norm.weight", layer)}),
            s_.key_rank, layer);
  int d_own = d_all;
  if (s_.sequence_parallel) {
    d_own = read_late("latents", s_.own_tokens * s_.latents());
    token_collective(OpKind::kReduceScatter, d_all, d_own, s_.latents(), layer, kPass);
  } else {
    all_reduce(d_all, Reduction::kSum, layer, kPass);
  }
  const int d_norm = gradient_of("norm1", s_.own_tokens * s_.hidden, layer);
  matmul_backward(kept.norm1, latents_product(kept), d_own, d_norm, layer, {});
  if (!narrow) add(reduce_tokens(d_read, "query heads", layer, kPass), d_norm, layer, kPass);
  return d_norm;
}

}  // namespace trivium::program
