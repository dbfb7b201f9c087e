// Casts to 8 bits before the layers' products (Micikevicius et al. 2022, arXiv 2209.05433), as Transformer Engine has
// them: a product's input is cast once, along its rows for the product and along its columns for the weight's gradient,
// and the latter is what is kept; likewise the gradient of its output. Weights are cast both ways in a step's first
// forward and kept; parameters that are gathered for each pass (ZeRO 3) are cast where they are read.
#include <fmt/format.h>

#include "program/ir/fp8_layout.h"
#include "program/lower/layers.h"

namespace trivium::program {

void LayerWriter::cast(int x, const Product& product, const Rows& shape, const CastTo& to, int layer, Pass pass) {
  Op& op = rows(b_.add(OpKind::kQuantize, pass, {x}, {to.along_rows, to.along_columns, to.dbias}), shape.rows,
                shape.columns, layer);
  op.token_sharded = false;
  op.fp8 = s_.fp8;
  op.operand = shape.operand;
  op.parts = static_cast<std::int32_t>(shape.runs);
  if (s_.fp8 != Fp8::kDelayed) return;
  op.in[1] = p_.history(std::string(product.parameter) + ".weight", layer, shape.operand);
  op.k = b_.kind().sites;
}

int LayerWriter::cast_buffer(const std::string& name, const Rows& shape, bool along_rows, bool late, int layer) {
  const std::string full = fmt::format("{} in 8 bits{} {}", name, along_rows ? "" : " by columns", layer);
  const auto bytes = fp8_layout(s_.fp8, shape.operand, along_rows, shape.runs, shape.rows, shape.columns).bytes();
  return late ? hold(full, DType::kUint8, bytes) : b_.temporary(full, DType::kUint8, bytes);
}

int LayerWriter::cast_input(int x, const Product& product, const Rows& shape, int layer, Pass pass) {
  const int read = cast_buffer(fmt::format("input of {}", product.parameter), shape, true, false, layer);
  cast(x, product, shape, {read, product.cast}, layer, pass);
  return read;
}

LayerWriter::CastTo LayerWriter::cast_gradient(int dy, const Product& product, const Rows& shape, int dbias,
                                               int layer) {
  Rows gradient = shape;
  gradient.operand = Fp8Operand::kGradient;
  const std::string name = fmt::format("gradient of {}", product.parameter);
  const bool trained = !s_.lora.used();  // else no gradient of a weight reads it
  const CastTo to{cast_buffer(name, gradient, true, false, layer),
                  trained ? cast_buffer(name, gradient, false, true, layer) : kNoBuffer, dbias};
  cast(dy, product, gradient, to, layer, Pass::kBackward);
  return to;
}

int LayerWriter::cast_again(int x, const Product& product, const Rows& shape, int layer) {
  if (product.cast != kNoBuffer) return product.cast;
  const int again = cast_buffer(fmt::format("input of {} again", product.parameter), shape, false, true, layer);
  cast(x, product, shape, {kNoBuffer, again}, layer, Pass::kBackward);
  return again;
}

/// A weight (in, out), of experts one under the other: the product sums over its rows, the data gradient over columns.
int LayerWriter::cast_weight(const Product& product, std::int64_t experts, bool backward, int layer, Pass pass) {
  const std::int64_t runs = std::max<std::int64_t>(1, experts);
  const Rows shape{runs * product.in, product.out, runs, Fp8Operand::kWeight};
  const std::string name = std::string(product.parameter) + ".weight";
  const int value = p_.value(name, layer);
  if (s_.keeps_casts) {
    const ParameterBuffers::Cast kept = p_.cast(name, layer);
    if (casts_weights_) cast(value, product, shape, {kept.backward, kept.forward}, layer, pass);
    return backward ? kept.backward : kept.forward;
  }
  const int read = cast_buffer(name, shape, backward, false, layer);
  cast(value, product, shape, backward ? CastTo{read} : CastTo{kNoBuffer, read}, layer, pass);
  return read;
}

void LayerWriter::keep_casts(LayerKept& kept, int layer, const Keeping& keeping) {
  const auto keep = [&](bool in_frame, const char* name, std::int64_t rows, std::int64_t columns,
                        std::int64_t runs = 1) {
    if (in_frame ? keeping.placed : !keeping.casts) return kNoBuffer;
    const std::string full = fmt::format("layer {} {} in 8 bits", layer, name);
    const auto bytes = fp8_layout(s_.fp8, Fp8Operand::kInput, false, runs, rows, columns).bytes();
    return in_frame ? place_kept(layer, full, DType::kUint8, bytes) : hold(full, DType::kUint8, bytes);
  };
  const bool mixture = s_.kind(layer).mixture, norms = keeping.keeps(Module::kLayerNorm);
  const bool mlp = keeps_mlp(layer, keeping);
  // What is made again by itself is cast where it is read.
  if (!s_.sequence_parallel && !s_.latent() && (norms || !keeping.in_frame)) {
    kept.casts.norm1 = keep(norms, "norm1", s_.tokens, s_.hidden);
  }
  kept.casts.attended = keep(keeping.in_frame, "attention output", s_.tokens, s_.attended);
  const bool second = !s_.parallel_block || !s_.shared_norm;
  if (second && !s_.sequence_parallel && !mixture && (norms || !mlp)) {
    kept.casts.norm2 = keep(norms && mlp, "norm2", s_.tokens, s_.hidden);
  }
  if (mixture) kept.casts.dispatched = keep(mlp, "rows into experts", s_.expert_rows, s_.hidden, expert_runs());
  const bool act = keeps_activation(layer, keeping);
  if (act || !mlp) {
    kept.casts.act = keep(act, "mlp activated", mixture ? s_.expert_rows : s_.tokens,
                          mixture ? s_.expert_mlp.ffn : s_.mlp.ffn, mixture ? expert_runs() : 1);
  }
}

/// The MLP's input: in a parallel block with one norm attention keeps it.
int LayerWriter::mlp_cast(const LayerKept& kept) const {
  return s_.parallel_block && s_.shared_norm ? kept.casts.norm1 : kept.casts.norm2;
}

std::int64_t LayerWriter::expert_runs() const { return s_.local_experts * expert_parts(); }

int LayerWriter::kept_or_temporary(int kept, const char* name, std::int64_t elements, int layer) {
  return kept != kNoBuffer ? kept : b_.temporary(fmt::format("{} {}", name, layer), s_.type, elements);
}

// --- Experts: a batch of products, whose rows come in runs of one expert each ---

void LayerWriter::expert_matmul(int x, const Product& product, int y, int layer, Pass pass) {
  const bool low = in_8_bits(product);
  const Rows shape{s_.expert_rows, product.in, expert_runs()};
  const int read = low ? cast_input(x, product, shape, layer, pass) : x;
  const int weight = low ? cast_weight(product, s_.local_experts, false, layer, pass)
                         : p_.value(std::string(product.parameter) + ".weight", layer);
  Op& op = expert_op(b_.add(OpKind::kExpertMatmul, pass, {read, weight, product.counts}, {y}), product.out, product.in,
                     layer);
  if (low) op.fp8 = s_.fp8;
  if (product.adapted != kNoBuffer) adapt(x, product, y, layer, pass);
}

LayerWriter::GradientOperands LayerWriter::expert_dgrad(int x, const Product& product, int dy, int dx, int layer) {
  const bool low = in_8_bits(product);
  const int x_wide = x, dy_wide = dy;
  int read = dy, weight = kNoBuffer;
  if (low) {
    const CastTo to = cast_gradient(dy, product, {s_.expert_rows, product.out, expert_runs()}, kNoBuffer, layer);
    weight = cast_weight(product, s_.local_experts, true, layer, Pass::kBackward);
    read = to.along_rows, dy = to.along_columns;
    if (!s_.lora.used()) x = cast_again(x, product, {s_.expert_rows, product.in, expert_runs()}, layer);
  } else {
    weight = p_.value(std::string(product.parameter) + ".weight", layer);
  }
  Op& op = expert_op(b_.add(OpKind::kExpertMatmulDgrad, Pass::kBackward, {read, weight, product.counts}, {dx}),
                     product.out, product.in, layer);
  if (low) op.fp8 = s_.fp8;
  if (product.adapted == kNoBuffer) return {x, dy, kNoBuffer};
  return {x_wide, dy_wide, adapt_backward(product, dy_wide, dx, layer)};
}

void LayerWriter::expert_wgrad(const GradientOperands& operands, const Product& product, int layer) {
  if (product.adapted != kNoBuffer) {
    adapter_gradients(operands.x, product, operands.dy, operands.d_adapted, layer);
  }
  if (s_.lora.used()) return;
  const int gradient = p_.gradient(std::string(product.parameter) + ".weight", layer);
  Op& op = expert_op(
      b_.add(OpKind::kExpertMatmulWgrad, Pass::kBackward, {operands.x, operands.dy, product.counts}, {gradient}),
      product.out, product.in, layer);
  if (in_8_bits(product)) op.fp8 = s_.fp8;
}

}  // namespace trivium::program
