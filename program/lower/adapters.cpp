// LoRA (Hu et al. 2021, arXiv 2106.09685): of a product y = x W with frozen W, y += s (x A) B. With t = s x A and
// dt = s dy B^T:  dB += t^T dy,  dA += x^T dt,  dx += dt A^T. In a tensor group one factor is cut as W is: where W's
// columns are, B, and dt is partial; where its rows are, A, and t is partial. All that is made of them is linear, so it
// goes into the partial sums of W's own product, which the layer reduces; gradients of the whole factor are reduced
// with those of other replicated parameters (OptimizerBodies). Adapters are never in 8 bits, as in NeMo and
// Megatron-Bridge.
#include <fmt/format.h>

#include "program/lower/layers.h"

namespace trivium::program {

namespace {

std::string first(const char* product) { return std::string(product) + ".lora_a"; }
std::string second(const char* product) { return std::string(product) + ".lora_b"; }

}  // namespace

void LayerWriter::keep_adapted(LayerKept& kept, int layer, const Keeping& keeping) {
  const bool keeps_mlp = keeping.keeps(Module::kMlp);
  const auto keep = [&](bool has, const char* name, bool in_frame) {
    if (!has || (in_frame && keeping.placed)) return kNoBuffer;
    const std::string full = fmt::format("layer {} adapter of {}", layer, name);
    const std::int64_t elements = s_.tokens * s_.lora.rank;
    return in_frame ? place_kept(layer, full, s_.type, elements) : hold(full, s_.type, elements);
  };
  kept.adapted = {keep(s_.lora.qkv, "qkv", keeping.in_frame), keep(s_.lora.projection, "projection", keeping.in_frame),
                  keep(s_.lora.fc1, "fc1", keeps_mlp), keep(s_.lora.fc2, "fc2", keeps_mlp)};
}

Op& LayerWriter::scaled(Op& op) const {
  if (s_.lora.scale() != 1) op.score_scale = s_.lora.scale();
  return op;
}

void LayerWriter::adapt(int x, const Product& product, int y, int layer, Pass pass) {
  const std::int64_t tokens = tokens_of(product), rank = s_.lora.rank;
  const int a = p_.value(first(product.parameter), layer), b = p_.value(second(product.parameter), layer);
  const int added =
      b_.temporary(fmt::format("{} of the adapter {}", product.parameter, layer), s_.type, tokens * product.out);
  scaled(rows(b_.add(OpKind::kMatmul, pass, {x, a}, {product.adapted}), tokens, rank, layer)).k = product.in;
  rows(b_.add(OpKind::kMatmul, pass, {product.adapted, b}, {added}), tokens, product.out, layer).k = rank;
  add(added, y, layer, pass);
}

// Adds to dx; returns dt.
int LayerWriter::adapt_backward(const Product& product, int dy, int dx, int layer) {
  constexpr Pass kPass = Pass::kBackward;
  const std::int64_t tokens = tokens_of(product), rank = s_.lora.rank;
  const int a = p_.value(first(product.parameter), layer), b = p_.value(second(product.parameter), layer);
  const int d_adapted =
      hold(fmt::format("gradient of the adapter of {} {}", product.parameter, layer), s_.type, tokens * rank);
  const int added =
      gradient_of(fmt::format("{} by the adapter", product.parameter).c_str(), tokens * product.in, layer);
  scaled(rows(b_.add(OpKind::kMatmulDgrad, kPass, {dy, b}, {d_adapted}), tokens, product.out, layer)).k = rank;
  rows(b_.add(OpKind::kMatmulDgrad, kPass, {d_adapted, a}, {added}), tokens, rank, layer).k = product.in;
  add(added, dx, layer, kPass);
  return d_adapted;
}

void LayerWriter::adapter_gradients(int x, const Product& product, int dy, int d_adapted, int layer) {
  const std::int64_t tokens = tokens_of(product), rank = s_.lora.rank;
  const int d_a = p_.gradient(first(product.parameter), layer), d_b = p_.gradient(second(product.parameter), layer);
  weight_gradient({product.adapted, dy, d_b, kNoBuffer, tokens, product.out, rank, layer, false});
  weight_gradient({x, d_adapted, d_a, kNoBuffer, tokens, rank, product.in, layer, false});
}

}  // namespace trivium::program
