// The two ends of the model: embedding and head with its vocabulary-parallel loss (Shoeybi et al. 2019, §3).
#include "program/lower/layers.h"

namespace trivium::program {

void LayerWriter::embedding_forward(int ids, int output) {
  const int looked_up =
      s_.sequence_parallel ? b_.temporary("looked-up tokens", s_.type, s_.tokens * s_.hidden) : output;
  Op& look = rows(b_.add(OpKind::kEmbedding, Pass::kForward, {ids, p_.value("wte.weight")}, {looked_up}), s_.tokens,
                  s_.hidden, -1);
  look.k = s_.vocab;
  if (s_.embedding_scale != 1) look.score_scale = s_.embedding_scale;
  if (!s_.learned_positions) look.dropout = dropout_at(DropoutSite::kEmbedding);  // else behind the positions
  if (s_.sequence_parallel) {
    Op& scatter = b_.add(OpKind::kReduceScatter, Pass::kForward, {looked_up}, {output});
    scatter.lane = s_.collective_lane;
    scatter.group = Group::kTensor;
    scatter.dtype = s_.type;
    scatter.elements = s_.tokens * s_.hidden;
  } else {
    all_reduce(output, Reduction::kSum, -1, Pass::kForward);
  }
  if (!s_.learned_positions) return;
  Op& add = rows(b_.add(OpKind::kPosition, Pass::kForward, {output, p_.value("wpe.weight")}, {output}), s_.own_tokens,
                 s_.hidden, -1);
  add.k = s_.sequence;
  add.dropout = dropout_at(DropoutSite::kEmbedding);
}

void LayerWriter::embedding_backward(int ids, int d) {
  if (s_.learned_positions) {
    Op& position = rows(b_.add(OpKind::kPositionBackward, Pass::kBackward, {d}, {p_.gradient("wpe.weight")}),
                        s_.own_tokens, s_.hidden, -1);
    position.k = s_.sequence;
    position.dropout = dropout_at(DropoutSite::kEmbedding);
  }
  const int whole = gather_tokens(d, "gradient of embedding", -1, Pass::kBackward);
  Op& look = rows(b_.add(OpKind::kEmbeddingBackward, Pass::kBackward, {ids, whole}, {p_.gradient("wte.weight")}),
                  s_.tokens, s_.hidden, -1);
  look.k = s_.vocab;
  if (s_.embedding_scale != 1) look.score_scale = s_.embedding_scale;
  look.dropout = dropout_at(DropoutSite::kEmbedding);
}

int LayerWriter::head_weight() const {
  const int own = p_.value("lm_head.weight");
  return own != kNoBuffer ? own : p_.value("wte.weight");
}

LayerWriter::HeadKept LayerWriter::keep_head(int input) {
  HeadKept kept;
  kept.input = input;
  kept.norm = b_.place("final norm", Space::kFrame, s_.type, s_.own_tokens * s_.hidden);
  kept.stats = b_.place("final norm statistics", Space::kFrame, s_.wide, 2 * s_.own_tokens);
  kept.logits = b_.place("logits", Space::kFrame, s_.wide, s_.tokens * s_.vocab);
  kept.max = b_.place("loss maximum", Space::kFrame, s_.wide, s_.tokens);
  kept.sums = b_.place("loss sums", Space::kFrame, s_.wide, 2 * s_.tokens);
  return kept;
}

void LayerWriter::of_logits(Op& op) {
  rows(op, s_.tokens, s_.vocab, -1).dtype = s_.wide;
  op.soft_cap = s_.logit_soft_cap;
  if (s_.logit_scale != 1) op.score_scale = s_.logit_scale;
}

void LayerWriter::head_forward(const HeadKept& kept, int labels, int loss) {
  norm(kept.input, "ln_f", kept.norm, kept.stats, -1, Pass::kForward);
  const int read = gather_tokens(kept.norm, "final norm", -1, Pass::kForward);
  Op& logits =
      rows(b_.add(OpKind::kMatmul, Pass::kForward, {read, head_weight()}, {kept.logits}), s_.tokens, s_.vocab, -1);
  logits.k = s_.hidden;
  logits.weight_transposed = true;
  of_logits(b_.add(OpKind::kLossMax, Pass::kForward, {kept.logits}, {kept.max}));
  all_reduce(kept.max, Reduction::kMax, -1, Pass::kForward);
  of_logits(b_.add(OpKind::kLossSums, Pass::kForward, {kept.logits, kept.max, labels}, {kept.sums}));
  all_reduce(kept.sums, Reduction::kSum, -1, Pass::kForward);
  rows(b_.add(OpKind::kLoss, Pass::kForward, {kept.max, kept.sums}, {loss}), s_.tokens, 1, -1).dtype = s_.wide;
}

void LayerWriter::head_backward(const HeadKept& kept, int labels, int d_input) {
  of_logits(b_.add(OpKind::kLossBackward, Pass::kBackward, {kept.logits, kept.max, kept.sums, labels}, {kept.logits}));
  const int read = gather_tokens(kept.norm, "final norm again", -1, Pass::kBackward);
  const int d_norm = b_.temporary("gradient of final norm", s_.type, s_.tokens * s_.hidden);
  Op& dgrad = rows(b_.add(OpKind::kMatmulDgrad, Pass::kBackward, {kept.logits, head_weight()}, {d_norm}), s_.tokens,
                   s_.vocab, -1);
  dgrad.k = s_.hidden;
  dgrad.weight_transposed = true;
  const int reduced = reduce_tokens(d_norm, "gradient of final norm", -1, Pass::kBackward);
  // A tied weight's use in the head has a gradient of its own where embedding and head share a chunk.
  int dweight = p_.gradient("lm_head.weight");
  if (dweight == kNoBuffer) dweight = p_.gradient("wte.weight as head");
  if (dweight == kNoBuffer) dweight = p_.gradient("wte.weight");
  weight_gradient({read, kept.logits, dweight, kNoBuffer, s_.tokens, s_.vocab, s_.hidden, -1, true});
  norm_backward(kept.input, "ln_f", kept.stats, reduced, kNoBuffer, d_input, -1);
}

}  // namespace trivium::program
