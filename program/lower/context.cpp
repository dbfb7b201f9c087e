// Attention over a sequence that is split over the ranks of a context group.
#include "program/ir/context.h"

#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

std::int64_t context_position(ContextMethod method, std::int64_t local, std::int64_t sequence, int rank, int ranks) {
  if (method == ContextMethod::kAllToAll || ranks == 1) return rank * (sequence / ranks) + local;
  const std::int64_t chunk = sequence / (2 * ranks);
  return local < chunk ? rank * chunk + local : (2 * ranks - 1 - rank) * chunk + (local - chunk);
}

int ring_source(int rank, int step, int ranks) { return (rank - step % ranks + ranks) % ranks; }

Op& LayerWriter::context_op(Op& op, std::int64_t m, std::int64_t n, int layer) {
  rows(op, m, n, layer).token_sharded = false;
  op.heads = s_.heads, op.kv_heads = s_.kv_heads, op.head_dim = s_.head_dim;
  op.value_dim = s_.value_dim == s_.head_dim ? 0 : s_.value_dim;
  op.sequence = static_cast<std::int32_t>(s_.sequence);
  op.parts = s_.context;
  return op;
}

// Of all tokens of the ranks that exchange heads, which in a ring are one of its ranks: they lie in it as those of a
// rank do, in an early and a late chunk of every sample.
Op& LayerWriter::exchange_op(Op& op, std::int64_t m, std::int64_t n, int layer) {
  context_op(op, m, n, layer);
  op.sequence = static_cast<std::int32_t>(s_.sequence / s_.ring_ranks());
  op.parts = s_.head_ranks();
  return op;
}

Op& LayerWriter::ring_op(Op& op, std::int64_t n, int layer) {
  context_op(op, s_.all_tokens, n, layer);
  op.heads = s_.part_heads, op.kv_heads = s_.part_kv_heads;
  op.parts = s_.ring_ranks();
  op.part_of_heads = s_.exchanges();
  return op;
}

// Ring attention (Liu et al. 2023, arXiv 2310.01889): keys and values go round, every rank computes its queries against
// whatever has come by and merges the partial softmaxes by their log-sum-exp. The next block travels while this one is
// computed.
int LayerWriter::ring_shift(int from, const char* name, int step, int layer, Pass pass) {
  const int to = b_.temporary(fmt::format("{} {} shifted {}", name, layer, step), s_.type, b_.buffer(from).elements);
  Op& op = b_.add(OpKind::kRingShift, pass, {from}, {to});
  op.lane = Lane::kContext;
  op.group = context_group(Group::kContextRing);
  op.dtype = s_.type;
  op.elements = b_.buffer(from).elements;
  op.layer = static_cast<std::int16_t>(layer);
  return to;
}

int LayerWriter::split_kv(int qkv, int layer, Pass pass) {
  const std::int64_t width = s_.part_qkv - s_.part_heads * s_.head_dim;
  const int kv = b_.temporary(fmt::format("keys and values {}", layer), s_.type, s_.all_tokens * width);
  ring_op(b_.add(OpKind::kSplitKv, pass, {qkv}, {kv}), width, layer);
  return kv;
}

void LayerWriter::ring_attention(const LayerKept& kept, int layer, Pass pass) {
  int kv = split_kv(kept.qkv, layer, pass);
  for (int step = 0; step < s_.ring_ranks(); ++step) {
    const int next = step + 1 < s_.ring_ranks() ? ring_shift(kv, "keys and values", step + 1, layer, pass) : kNoBuffer;
    Op& block = ring_op(b_.add(OpKind::kAttentionBlock, pass, {kept.qkv, kv, p_.value("attn.sinks", layer)},
                               {s_.exchanges() ? kept.attended_whole : kept.attended, kept.saved}),
                        s_.part_attended, layer);
    block.flash = true;
    block.score_scale = s_.attention_scale;
    look_back(block, layer);
    block.soft_cap = s_.attention_soft_cap;
    block.dropout = dropout_at(DropoutSite::kAttention);
    block.k = step;
    kv = next;
  }
}

// The gradient of a block of keys travels with it and gathers what every rank adds; the last shift brings it home.
void LayerWriter::ring_attention_backward(const LayerKept& kept, int attended, int d_attended, int d_qkv, int layer) {
  constexpr Pass kPass = Pass::kBackward;
  int kv = split_kv(kept.qkv, layer, kPass), d_kv = kNoBuffer;
  for (int step = 0; step < s_.ring_ranks(); ++step) {
    const int next = step + 1 < s_.ring_ranks() ? ring_shift(kv, "keys and values", step + 1, layer, kPass) : kNoBuffer;
    const int mine = b_.temporary(fmt::format("gradient of keys and values {} of step {}", layer, step), s_.type,
                                  b_.buffer(kv).elements);
    Op& block = ring_op(b_.add(OpKind::kAttentionBlockBackward, kPass,
                               {kept.qkv, attended, kept.saved, d_attended, kv, p_.value("attn.sinks", layer)},
                               {d_qkv, mine, p_.gradient("attn.sinks", layer)}),
                        s_.part_attended, layer);
    block.flash = true;
    block.score_scale = s_.attention_scale;
    look_back(block, layer);
    block.soft_cap = s_.attention_soft_cap;
    block.dropout = dropout_at(DropoutSite::kAttention);
    block.k = step;
    if (d_kv == kNoBuffer) {
      d_kv = mine;
    } else {
      add(mine, d_kv, layer, kPass);
    }
    d_kv = ring_shift(d_kv, "gradient of keys and values", step + 1, layer, kPass);
    kv = next;
  }
  ring_op(b_.add(OpKind::kJoinKv, kPass, {d_kv}, {d_qkv}), s_.part_qkv - s_.part_heads * s_.head_dim, layer);
}

// All-to-all over heads (Jacobs et al. 2023, DeepSpeed Ulysses, arXiv 2309.14509): a part of the heads for all tokens
// instead of all heads for a part of the tokens. Where there are fewer key heads than ranks, ranks share them.
int LayerWriter::context_all_to_all(int packed, int layer, Pass pass) {
  const int arrived = b_.temporary(b_.buffer(packed).name + " of the others", s_.type, b_.buffer(packed).elements);
  Op& op = b_.add(OpKind::kAllToAll, pass, {packed}, {arrived});
  op.group = context_group(Group::kContextHeads);
  op.dtype = s_.type;
  op.elements = b_.buffer(packed).elements;
  op.layer = static_cast<std::int16_t>(layer);
  return arrived;
}

// Of what attention gives: every query head is as wide as a value.
void LayerWriter::of_values(Op& op) const { op.kv_heads = 0, op.head_dim = s_.value_dim, op.value_dim = 0; }

void LayerWriter::tokens_to_heads(int local, int whole, bool with_keys, int layer, Pass pass) {
  const std::int64_t width = with_keys ? s_.part_qkv : s_.part_attended;
  const std::string name = fmt::format("{} {} by heads", with_keys ? "qkv" : "attention output", layer);
  const int packed = b_.temporary(name, s_.type, s_.all_tokens * width);
  Op& pack =
      exchange_op(b_.add(OpKind::kPackHeads, pass, {local}, {packed}), s_.tokens, s_.head_ranks() * width, layer);
  if (!with_keys) of_values(pack);
  const int arrived = context_all_to_all(packed, layer, pass);
  exchange_op(b_.add(OpKind::kUnpackTokens, pass, {arrived}, {whole}), s_.all_tokens, width, layer);
}

void LayerWriter::heads_to_tokens(int whole, int local, bool with_keys, int layer, Pass pass) {
  const std::int64_t width = with_keys ? s_.part_qkv : s_.part_attended;
  const std::string name = fmt::format("{} {} by tokens", with_keys ? "qkv" : "attention output", layer);
  const int packed = b_.temporary(name, s_.type, s_.all_tokens * width);
  exchange_op(b_.add(OpKind::kPackTokens, pass, {whole}, {packed}), s_.all_tokens, width, layer);
  const int arrived = context_all_to_all(packed, layer, pass);
  Op& unpack =
      exchange_op(b_.add(OpKind::kUnpackHeads, pass, {arrived}, {local}), s_.tokens, s_.head_ranks() * width, layer);
  if (!with_keys) of_values(unpack);
}

}  // namespace trivium::program
