// The attention core of a layer: scores, softmax and weighted values of the heads on this rank.
#include <fmt/format.h>

#include "program/lower/documents.h"
#include "program/lower/layers.h"

namespace trivium::program {

void LayerWriter::look_back(Op& op, int layer) const {
  const std::int64_t window = s_.kind(layer).window;
  if (s_.documents->used()) op.document_keys = keys_seen(*s_.documents, s_.sequence, window);
  if (window == 0 || window >= s_.sequence) return;  // it sees all there is
  op.window = static_cast<std::int32_t>(window);
  op.chunked = s_.layers_of->window->chunked;
}

// Local counts; with all-to-all over heads all tokens and a part of the heads.
Op& LayerWriter::attention_op(Op& op, int layer) {
  rows(op, s_.all_tokens, s_.part_attended, layer);
  op.token_sharded = false;
  op.flash = s_.flash;
  op.part_of_heads = s_.exchanges();
  op.dropout = dropout_at(DropoutSite::kAttention);
  op.score_scale = s_.attention_scale;
  op.heads = s_.part_heads, op.kv_heads = s_.part_kv_heads, op.head_dim = s_.head_dim;
  op.value_dim = s_.value_dim == s_.head_dim ? 0 : s_.value_dim;
  op.sequence = static_cast<std::int32_t>(s_.sequence);
  look_back(op, layer);
  op.soft_cap = s_.attention_soft_cap;
  op.alibi_heads = s_.alibi_heads;
  return op;
}

void LayerWriter::attention_core(const LayerKept& kept, int layer, Pass pass) {
  const int y = s_.exchanges() ? kept.attended_whole : kept.attended;
  attention_op(
      b_.add(OpKind::kAttention, pass, {kept.qkv, p_.value("attn.sinks", layer)}, {y, kept.saved, kept.scores_dropped}),
      layer);
}

void LayerWriter::attention(int qkv, const LayerKept& kept, int layer, Pass pass) {
  if (s_.exchanges()) tokens_to_heads(qkv, kept.qkv, true, layer, pass);
  s_.ring() ? ring_attention(kept, layer, pass) : attention_core(kept, layer, pass);
  if (s_.exchanges()) heads_to_tokens(kept.attended_whole, kept.attended, false, layer, pass);
}

void LayerWriter::attention_backward(const LayerKept& kept, int d_attended, int d_qkv, int layer) {
  int y = kept.attended, dy = d_attended, dx = d_qkv;
  if (s_.exchanges()) {
    y = kept.attended_whole;
    dy = gradient_of("attention output of all tokens", s_.all_tokens * s_.part_attended, layer);
    dx = gradient_of("qkv of all tokens", s_.all_tokens * s_.part_qkv, layer);
    tokens_to_heads(d_attended, dy, false, layer, Pass::kBackward);
  }
  if (s_.ring()) {
    ring_attention_backward(kept, y, dy, dx, layer);
  } else {
    attention_op(b_.add(OpKind::kAttentionBackward, Pass::kBackward,
                        {kept.qkv, y, kept.saved, dy, kept.scores_dropped, p_.value("attn.sinks", layer)},
                        {dx, p_.gradient("attn.sinks", layer)}),
                 layer);
  }
  if (s_.exchanges()) heads_to_tokens(dx, d_qkv, true, layer, Pass::kBackward);
}

}  // namespace trivium::program
