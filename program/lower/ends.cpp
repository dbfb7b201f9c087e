// The two ends of the model: embedding and head with its vocabulary-parallel loss (Shoeybi et al. 2019, §3).
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

void LayerWriter::look_up(int ids, int output, DropoutSite dropout) {
  const int looked_up =
      s_.sequence_parallel ? b_.temporary("looked-up tokens", s_.type, s_.tokens * s_.hidden) : output;
  Op& look = rows(b_.add(OpKind::kEmbedding, Pass::kForward, {ids, p_.value("wte.weight")}, {looked_up}), s_.tokens,
                  s_.hidden, -1);
  look.k = s_.vocab;
  if (s_.embedding_scale != 1) look.score_scale = s_.embedding_scale;
  look.dropout = dropout;
  if (s_.sequence_parallel) {
    Op& scatter = b_.add(OpKind::kReduceScatter, Pass::kForward, {looked_up}, {output});
    scatter.lane = s_.collective_lane;
    scatter.group = Group::kTensor;
    scatter.dtype = s_.type;
    scatter.elements = s_.tokens * s_.hidden;
  } else {
    all_reduce(output, Reduction::kSum, -1, Pass::kForward);
  }
}

void LayerWriter::look_up_backward(int ids, int d, int gradient, DropoutSite dropout) {
  const int whole = gather_tokens(d, "gradient of embedding", -1, Pass::kBackward);
  Op& look =
      rows(b_.add(OpKind::kEmbeddingBackward, Pass::kBackward, {ids, whole}, {gradient}), s_.tokens, s_.hidden, -1);
  look.k = s_.vocab;
  if (s_.embedding_scale != 1) look.score_scale = s_.embedding_scale;
  look.dropout = dropout;
}

void LayerWriter::keep_embedding() {
  if (!s_.embedding_norm) return;
  embedded_ = b_.place("looked-up tokens", Space::kFrame, s_.type, s_.own_tokens * s_.hidden);
  embedded_stats_ = b_.place("statistics of looked-up tokens", Space::kFrame, s_.wide, 2 * s_.own_tokens);
}

void LayerWriter::embedding_forward(int ids, int output) {
  embed(ids, s_.embedding_norm ? embedded_ : output);
  if (s_.embedding_norm) norm(embedded_, "ln_e", output, embedded_stats_, -1, Pass::kForward);
}

void LayerWriter::embed(int ids, int output) {
  const DropoutSite dropout = dropout_at(DropoutSite::kEmbedding);
  look_up(ids, output, s_.learned_positions ? DropoutSite::kNone : dropout);  // after adding positions
  if (!s_.learned_positions) return;
  Op& add = rows(b_.add(OpKind::kPosition, Pass::kForward, {output, p_.value("wpe.weight")}, {output}), s_.own_tokens,
                 s_.hidden, -1);
  add.k = s_.sequence;
  add.dropout = dropout;
}

void LayerWriter::embedding_backward(int ids, int d) {
  if (s_.embedding_norm) {
    const int d_embedded = b_.temporary("gradient of looked-up tokens", s_.type, s_.own_tokens * s_.hidden);
    norm_backward(embedded_, "ln_e", embedded_stats_, d, kNoBuffer, d_embedded, -1);
    d = d_embedded;
  }
  if (s_.learned_positions) {
    Op& position = rows(b_.add(OpKind::kPositionBackward, Pass::kBackward, {d}, {p_.gradient("wpe.weight")}),
                        s_.own_tokens, s_.hidden, -1);
    position.k = s_.sequence;
    position.dropout = dropout_at(DropoutSite::kEmbedding);
  }
  look_up_backward(ids, d, p_.gradient("wte.weight"), dropout_at(DropoutSite::kEmbedding));
}

int LayerWriter::head_weight() const {
  const int own = p_.value("lm_head.weight");
  return own != kNoBuffer ? own : p_.value("wte.weight");
}

// Uses of the embedding at the end of the model have a gradient of their own where both ends share a chunk.
int LayerWriter::end_embedding_gradient() const {
  const int apart = p_.gradient("wte.weight at the end");
  return apart != kNoBuffer ? apart : p_.gradient("wte.weight");
}

LayerWriter::HeadKept LayerWriter::keep_head(int input, int labels, int layer) {
  HeadKept kept;
  kept.input = input;
  kept.labels = labels;
  kept.layer = layer;
  const auto named = [&](const char* name) { return layer < 0 ? name : fmt::format("mtp {} {}", layer, name); };
  kept.norm = b_.place(named("final norm"), Space::kFrame, s_.type, s_.own_tokens * s_.hidden);
  kept.stats = b_.place(named("final norm statistics"), Space::kFrame, s_.wide, 2 * s_.own_tokens);
  kept.logits = b_.place(named("logits"), Space::kFrame, s_.wide, s_.tokens * s_.vocab);
  kept.max = b_.place(named("loss maximum"), Space::kFrame, s_.wide, s_.tokens);
  kept.sums = b_.place(named("loss sums"), Space::kFrame, s_.wide, 2 * s_.tokens);
  return kept;
}

void LayerWriter::of_logits(Op& op) {
  rows(op, s_.tokens, s_.vocab, -1).dtype = s_.wide;
  op.soft_cap = s_.logit_soft_cap;
  if (s_.logit_scale != 1) op.score_scale = s_.logit_scale;
}

// A module's head norms by weights of its own, and weighs its loss.
const char* LayerWriter::head_norm(const HeadKept& kept) { return kept.layer < 0 ? "ln_f" : "mtp.norm"; }

void LayerWriter::head_forward(const HeadKept& kept, int loss) {
  norm(kept.input, head_norm(kept), kept.norm, kept.stats, kept.layer, Pass::kForward);
  const int read = gather_tokens(kept.norm, "final norm", -1, Pass::kForward);
  Op& logits =
      rows(b_.add(OpKind::kMatmul, Pass::kForward, {read, head_weight()}, {kept.logits}), s_.tokens, s_.vocab, -1);
  logits.k = s_.hidden;
  logits.weight_transposed = true;
  of_logits(b_.add(OpKind::kLossMax, Pass::kForward, {kept.logits}, {kept.max}));
  all_reduce(kept.max, Reduction::kMax, -1, Pass::kForward);
  of_logits(b_.add(OpKind::kLossSums, Pass::kForward, {kept.logits, kept.max, kept.labels}, {kept.sums}));
  all_reduce(kept.sums, Reduction::kSum, -1, Pass::kForward);
  const int counted = kept.layer < 0 ? kNoBuffer : kept.labels;
  Op& sum = rows(b_.add(OpKind::kLoss, Pass::kForward, {kept.max, kept.sums, counted}, {loss}), s_.tokens, 1, -1);
  sum.dtype = s_.wide;
  if (kept.layer >= 0) sum.loss_share = s_.mtp_share;
}

void LayerWriter::head_backward(const HeadKept& kept, int d_input, int d_norm) {
  Op& loss =
      b_.add(OpKind::kLossBackward, Pass::kBackward, {kept.logits, kept.max, kept.sums, kept.labels}, {kept.logits});
  of_logits(loss);
  if (kept.layer >= 0) loss.loss_share = s_.mtp_share;
  const bool trained = !s_.lora.used();
  const int read = trained ? gather_tokens(kept.norm, "final norm again", -1, Pass::kBackward) : kNoBuffer;
  const int d_read = b_.temporary("gradient of final norm", s_.type, s_.tokens * s_.hidden);
  Op& dgrad = rows(b_.add(OpKind::kMatmulDgrad, Pass::kBackward, {kept.logits, head_weight()}, {d_read}), s_.tokens,
                   s_.vocab, -1);
  dgrad.k = s_.hidden;
  dgrad.weight_transposed = true;
  const int reduced = reduce_tokens(d_read, "gradient of final norm", -1, Pass::kBackward);
  if (d_norm != kNoBuffer) add(d_norm, reduced, kept.layer, Pass::kBackward);
  const int own = p_.gradient("lm_head.weight");
  const int dweight = own != kNoBuffer ? own : end_embedding_gradient();
  if (trained) {
    weight_gradient({read, kept.logits, dweight, kNoBuffer, s_.tokens, s_.vocab, s_.hidden, kept.layer, true});
  }
  norm_backward(kept.input, head_norm(kept), kept.stats, reduced, kNoBuffer, d_input, kept.layer);
}

}  // namespace trivium::program
