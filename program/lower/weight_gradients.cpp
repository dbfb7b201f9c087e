// Gradients of matrices: at once, or kept for the second half of a split backward.
#include "program/lower/layers.h"

namespace trivium::program {

/// A buffer that the gradient of a matrix reads: with a split backward it outlives the body.
int LayerWriter::hold(const std::string& name, DType type, std::int64_t elements) {
  return delaying_ ? b_.place(name, Space::kDeferred, type, elements) : b_.temporary(name, type, elements);
}

void LayerWriter::weight_gradient(const WeightGradient& gradient) {
  if (delaying_) {
    delayed_.push_back(gradient);
  } else {
    write(gradient);
  }
}

void LayerWriter::write(const WeightGradient& g) {
  Op& op = rows(b_.add(OpKind::kMatmulWgrad, Pass::kBackward, {g.x, g.dy}, {g.weight, g.bias}), g.m, g.n, g.layer);
  op.k = g.k;
  op.weight_transposed = g.transposed;
  op.fp8 = g.fp8;
}

void LayerWriter::write_weights(int layer) {
  for (const WeightGradient& gradient : delayed_) {
    if (gradient.layer == layer) write(gradient);
  }
}

}  // namespace trivium::program
