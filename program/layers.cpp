#include "program/layers.h"

#include <fmt/format.h>

namespace trivium::program {

Op& LayerWriter::rows(Op& op, std::int64_t m, std::int64_t n, int layer) {
  op.dtype = s_.type;
  op.m = m;
  op.n = n;
  op.layer = static_cast<std::int16_t>(layer);
  op.token_sharded = s_.sequence_parallel && m == s_.own_tokens;
  return op;
}

void LayerWriter::all_reduce(int buffer, Reduction reduction, int layer, Pass pass) {
  if (s_.tensor == 1) return;
  Op& op = b_.add(OpKind::kAllReduce, pass, {buffer}, {buffer});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.reduction = reduction;
  op.dtype = b_.buffer(buffer).dtype;
  op.elements = b_.buffer(buffer).elements;
  op.layer = static_cast<std::int16_t>(layer);
}

// Partial sums over all tokens -> sums: all-reduce, or with sequence parallel reduce-scatter to this rank's tokens.
int LayerWriter::reduce_tokens(int partial, const char* name, int layer, Pass pass) {
  if (s_.tensor == 1) return partial;
  if (!s_.sequence_parallel) {
    all_reduce(partial, Reduction::kSum, layer, pass);
    return partial;
  }
  const int own = b_.temporary(fmt::format("{} {} own tokens", name, layer), s_.type, s_.own_tokens * s_.hidden);
  Op& op = b_.add(OpKind::kReduceScatter, pass, {partial}, {own});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.dtype = s_.type;
  op.elements = s_.tokens * s_.hidden;
  op.layer = static_cast<std::int16_t>(layer);
  return own;
}

// This rank's tokens -> all tokens: nothing without sequence parallel, else all-gather.
int LayerWriter::gather_tokens(int own, const char* name, int layer, Pass pass) {
  if (!s_.sequence_parallel) return own;
  const std::string whole_name = fmt::format("{} {} all tokens", name, layer);
  const bool read_late = pass == Pass::kBackward;
  const int whole = read_late ? hold(whole_name, s_.type, s_.tokens * s_.hidden)
                              : b_.temporary(whole_name, s_.type, s_.tokens * s_.hidden);
  Op& op = b_.add(OpKind::kAllGather, pass, {own}, {whole});
  op.lane = s_.collective_lane;
  op.group = Group::kTensor;
  op.dtype = s_.type;
  op.elements = s_.tokens * s_.hidden;
  op.layer = static_cast<std::int16_t>(layer);
  return whole;
}

void LayerWriter::matmul(int x, const char* parameter, int y, std::int64_t out, std::int64_t in, int layer, Pass pass,
                         bool biased) {
  const int weight = p_.value(std::string(parameter) + ".weight", layer);
  const int bias = biased ? p_.value(std::string(parameter) + ".bias", layer) : kNoBuffer;
  Op& op = rows(b_.add(OpKind::kMatmul, pass, {x, weight, bias}, {y}), s_.tokens, out, layer);
  op.k = in;
}

// Data gradient first, so that its collective can run beside the weight gradient where the plan overlaps them.
void LayerWriter::matmul_backward(int x, const char* parameter, int dy, int dx, std::int64_t out, std::int64_t in,
                                  int layer, bool biased, bool reduce, int* reduced) {
  const std::string name(parameter);
  Op& dgrad = rows(b_.add(OpKind::kMatmulDgrad, Pass::kBackward, {dy, p_.value(name + ".weight", layer)}, {dx}),
                   s_.tokens, out, layer);
  dgrad.k = in;
  if (reduce) *reduced = reduce_tokens(dx, parameter, layer, Pass::kBackward);
  const int dbias = biased ? p_.gradient(name + ".bias", layer) : kNoBuffer;
  weight_gradient({x, dy, p_.gradient(name + ".weight", layer), dbias, out, in, layer, false});
}

void LayerWriter::norm(int x, const char* parameter, int y, int stats, int layer, Pass pass) {
  const std::string name(parameter);
  rows(b_.add(OpKind::kNorm, pass, {x, p_.value(name + ".weight", layer), p_.value(name + ".bias", layer)}, {y, stats}),
       s_.own_tokens, s_.hidden, layer);
}

void LayerWriter::norm_backward(int x, const char* parameter, int stats, int dy, int dskip, int dx, int layer) {
  const std::string name(parameter);
  rows(b_.add(OpKind::kNormBackward, Pass::kBackward, {x, p_.value(name + ".weight", layer), stats, dy, dskip},
              {dx, p_.gradient(name + ".weight", layer), p_.gradient(name + ".bias", layer)}),
       s_.own_tokens, s_.hidden, layer);
}

LayerKept LayerWriter::keep(int layer, int input, bool in_frame, bool scores_in_frame) {
  const auto make = [&](const char* name, DType type, std::int64_t elements, bool frame) {
    const std::string full = fmt::format("layer {} {}", layer, name);
    return frame ? b_.place(full, Space::kFrame, type, elements) : b_.temporary(full, type, elements);
  };
  // Inputs of matrices, which their gradients read again.
  const auto input_of_matrix = [&](const char* name, std::int64_t elements, bool gathered) {
    const std::string full = fmt::format("layer {} {}", layer, name);
    if (in_frame) return b_.place(full, Space::kFrame, s_.type, elements);
    return gathered ? b_.temporary(full, s_.type, elements) : hold(full, s_.type, elements);
  };
  const std::int64_t own = s_.own_tokens * s_.hidden, scores = s_.tokens * s_.heads * s_.sequence;
  LayerKept kept;
  kept.input = input;
  kept.norm1 = input_of_matrix("norm1", own, s_.sequence_parallel);
  kept.stats1 = make("norm1 statistics", s_.wide, 2 * s_.own_tokens, in_frame);
  kept.qkv = make("qkv", s_.type, s_.tokens * s_.qkv, in_frame);
  kept.saved = s_.flash ? make("attention log-sum-exp", s_.wide, s_.tokens * s_.heads, scores_in_frame)
                        : make("attention probabilities", s_.type, scores, scores_in_frame);
  kept.attended = input_of_matrix("attention output", s_.tokens * s_.query, false);
  kept.middle = make("middle", s_.type, own, in_frame);
  kept.norm2 = input_of_matrix("norm2", own, s_.sequence_parallel);
  kept.stats2 = make("norm2 statistics", s_.wide, 2 * s_.own_tokens, in_frame);
  kept.fc = make("mlp inner", s_.type, s_.tokens * s_.fc, in_frame);
  kept.act = input_of_matrix("mlp activated", s_.tokens * s_.ffn, false);
  if (s_.dropout) {
    if (!s_.flash) {
      kept.scores_dropped = make("attention dropout", DType::kUint8, scores * (1 + size_of(s_.type)), scores_in_frame);
    }
    kept.mask1 = make("attention residual dropout mask", DType::kUint8, own, in_frame);
    kept.mask2 = make("mlp residual dropout mask", DType::kUint8, own, in_frame);
  }
  return kept;
}

void LayerWriter::attention(const LayerKept& kept, int layer, Pass pass) {
  Op& op = rows(b_.add(OpKind::kAttention, pass, {kept.qkv}, {kept.attended, kept.saved, kept.scores_dropped}),
                s_.tokens, s_.query, layer);
  op.flash = s_.flash;
  op.heads = s_.heads;
  op.kv_heads = s_.kv_heads;
  op.head_dim = s_.head_dim;
  op.sequence = static_cast<std::int32_t>(s_.sequence);
}

void LayerWriter::attention_again(int layer, const LayerKept& kept) { attention(kept, layer, Pass::kRecompute); }

void LayerWriter::layer_forward(int layer, const LayerKept& kept, int output, Pass pass) {
  norm(kept.input, "ln_1", kept.norm1, kept.stats1, layer, pass);
  const int read1 = gather_tokens(kept.norm1, "norm1", layer, pass);
  matmul(read1, "attn.c_attn", kept.qkv, s_.qkv, s_.hidden, layer, pass, true);
  if (s_.rotary) {
    Op& op = rows(b_.add(OpKind::kRotary, pass, {kept.qkv}, {kept.qkv}), s_.tokens, s_.qkv, layer);
    op.heads = s_.heads, op.kv_heads = s_.kv_heads, op.head_dim = s_.head_dim;
    op.sequence = static_cast<std::int32_t>(s_.sequence);
  }
  attention(kept, layer, pass);
  const int partial1 = b_.temporary(fmt::format("attention projection {}", layer), s_.type, s_.tokens * s_.hidden);
  matmul(kept.attended, "attn.c_proj", partial1, s_.hidden, s_.query, layer, pass, false);
  const int branch1 = reduce_tokens(partial1, "attention projection", layer, pass);
  rows(b_.add(OpKind::kBiasResidual, pass, {branch1, p_.value("attn.c_proj.bias", layer), kept.input},
              {kept.middle, kept.mask1}),
       s_.own_tokens, s_.hidden, layer);
  norm(kept.middle, "ln_2", kept.norm2, kept.stats2, layer, pass);
  const int read2 = gather_tokens(kept.norm2, "norm2", layer, pass);
  matmul(read2, "mlp.c_fc", kept.fc, s_.fc, s_.hidden, layer, pass, false);
  Op& act = rows(b_.add(OpKind::kActivation, pass, {kept.fc, p_.value("mlp.c_fc.bias", layer)}, {kept.act}), s_.tokens,
                 s_.ffn, layer);
  act.k = s_.activation;
  const int partial2 = b_.temporary(fmt::format("mlp projection {}", layer), s_.type, s_.tokens * s_.hidden);
  matmul(kept.act, "mlp.c_proj", partial2, s_.hidden, s_.ffn, layer, pass, false);
  const int branch2 = reduce_tokens(partial2, "mlp projection", layer, pass);
  rows(b_.add(OpKind::kBiasResidual, pass, {branch2, p_.value("mlp.c_proj.bias", layer), kept.middle},
              {output, kept.mask2}),
       s_.own_tokens, s_.hidden, layer);
}

void LayerWriter::layer_backward(int layer, const LayerKept& kept, int d, int d_input) {
  const auto scratch = [&](const char* name, std::int64_t elements) {
    return b_.temporary(fmt::format("gradient of {} {}", name, layer), s_.type, elements);
  };
  const auto read_by_weights = [&](const char* name, std::int64_t elements) {
    return hold(fmt::format("gradient of {} {}", name, layer), s_.type, elements);
  };
  const auto bias_backward = [&](const char* parameter, int mask) {
    const int dbias = p_.gradient(parameter, layer);
    if (dbias == kNoBuffer && mask == kNoBuffer) return;
    rows(b_.add(OpKind::kBiasResidualBackward, Pass::kBackward, {d, mask}, {dbias}), s_.own_tokens, s_.hidden, layer);
  };
  int reduced = kNoBuffer;
  // MLP
  bias_backward("mlp.c_proj.bias", kept.mask2);
  const int d_branch2 = gather_tokens(d, "gradient of mlp projection", layer, Pass::kBackward);
  const int d_act = scratch("mlp activated", s_.tokens * s_.ffn);
  matmul_backward(kept.act, "mlp.c_proj", d_branch2, d_act, s_.hidden, s_.ffn, layer, false, false, nullptr);
  const int d_fc = read_by_weights("mlp inner", s_.tokens * s_.fc);
  Op& act =
      rows(b_.add(OpKind::kActivationBackward, Pass::kBackward, {kept.fc, p_.value("mlp.c_fc.bias", layer), d_act},
                  {d_fc, p_.gradient("mlp.c_fc.bias", layer)}),
           s_.tokens, s_.ffn, layer);
  act.k = s_.activation;
  const int read2 = gather_tokens(kept.norm2, "norm2 again", layer, Pass::kBackward);
  const int d_norm2 = scratch("norm2", s_.tokens * s_.hidden);
  matmul_backward(read2, "mlp.c_fc", d_fc, d_norm2, s_.fc, s_.hidden, layer, false, true, &reduced);
  const int d_middle = keeps_gradients() ? read_by_weights("middle", s_.own_tokens * s_.hidden) : d;
  norm_backward(kept.middle, "ln_2", kept.stats2, reduced, d, d_middle, layer);
  d = d_middle;
  // Attention
  bias_backward("attn.c_proj.bias", kept.mask1);
  const int d_branch1 = gather_tokens(d, "gradient of attention projection", layer, Pass::kBackward);
  const int d_attended = scratch("attention output", s_.tokens * s_.query);
  matmul_backward(kept.attended, "attn.c_proj", d_branch1, d_attended, s_.hidden, s_.query, layer, false, false,
                  nullptr);
  const int d_qkv = read_by_weights("qkv", s_.tokens * s_.qkv);
  Op& attend = rows(b_.add(OpKind::kAttentionBackward, Pass::kBackward,
                           {kept.qkv, kept.attended, kept.saved, d_attended, kept.scores_dropped}, {d_qkv}),
                    s_.tokens, s_.query, layer);
  attend.flash = s_.flash;
  attend.heads = s_.heads, attend.kv_heads = s_.kv_heads, attend.head_dim = s_.head_dim;
  attend.sequence = static_cast<std::int32_t>(s_.sequence);
  if (s_.rotary) {
    Op& op = rows(b_.add(OpKind::kRotaryBackward, Pass::kBackward, {d_qkv}, {d_qkv}), s_.tokens, s_.qkv, layer);
    op.heads = s_.heads, op.kv_heads = s_.kv_heads, op.head_dim = s_.head_dim;
    op.sequence = static_cast<std::int32_t>(s_.sequence);
  }
  const int read1 = gather_tokens(kept.norm1, "norm1 again", layer, Pass::kBackward);
  const int d_norm1 = scratch("norm1", s_.tokens * s_.hidden);
  matmul_backward(read1, "attn.c_attn", d_qkv, d_norm1, s_.qkv, s_.hidden, layer, true, true, &reduced);
  norm_backward(kept.input, "ln_1", kept.stats1, reduced, d, d_input, layer);
}

}  // namespace trivium::program
