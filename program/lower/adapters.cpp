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
  const bool mixture = s_.kind(layer).mixture, mlp = keeps_mlp(layer, keeping);
  const auto keep = [&](bool has, const char* name, bool in_frame, std::int64_t rows) {
    if (!has || (in_frame && keeping.placed)) return kNoBuffer;
    const std::string full = fmt::format("layer {} adapter of {}", layer, name);
    const std::int64_t elements = rows * s_.lora.rank;
    return in_frame ? place_kept(layer, full, s_.type, elements) : hold(full, s_.type, elements);
  };
  LayerKept::Adapted& adapted = kept.adapted;
  const Lora& lora = s_.lora;
  adapted.qkv = keep(lora.qkv, "qkv", keeping.in_frame, s_.latent() ? s_.own_tokens : s_.tokens);
  if (s_.latent()) {
    const bool up = keeping.keeps(Module::kLatentUp);
    adapted.queries = keep(lora.qkv, "query heads", up, s_.tokens);
    adapted.keys = keep(lora.qkv, "key heads", up, s_.tokens);
  }
  adapted.projection = keep(lora.projection, "projection", keeping.in_frame, s_.tokens);
  const std::int64_t rows = mixture ? s_.expert_rows : s_.tokens;
  adapted.fc1 = keep(lora.fc1, "fc1", mlp, rows);
  adapted.fc2 = keep(lora.fc2, "fc2", mlp, rows);
  if (!mixture || s_.shared_mlp.ffn == 0) return;
  const bool shared = mlp && keeping.keeps(Module::kSharedExperts);
  adapted.shared_fc1 = keep(lora.fc1, "shared fc1", shared, s_.tokens);
  adapted.shared_fc2 = keep(lora.fc2, "shared fc2", shared, s_.tokens);
}

Op& LayerWriter::scaled(Op& op) const {
  if (s_.lora.scale() != 1) op.score_scale = s_.lora.scale();
  return op;
}

// One of an adapter's products, or of those of all experts: `out` and `in` are the columns and rows of the factor.
Op& LayerWriter::factor_product(const Product& product, OpKind kind, const FactorOperands& of, int layer, Pass pass) {
  if (!product.of_experts) {
    Op& op = rows(b_.add(kind, pass, {of.x, of.factor}, {of.y}), tokens_of(product), of.out, layer);
    op.k = of.in;
    return op;
  }
  const OpKind grouped = kind == OpKind::kMatmul        ? OpKind::kExpertMatmul
                         : kind == OpKind::kMatmulDgrad ? OpKind::kExpertMatmulDgrad
                                                        : OpKind::kExpertMatmulWgrad;
  return expert_op(b_.add(grouped, pass, {of.x, of.factor, product.counts}, {of.y}), of.out, of.in, layer);
}

void LayerWriter::adapt(int x, const Product& product, int y, int layer, Pass pass) {
  const std::int64_t rank = s_.lora.rank;
  const int a = p_.value(first(product.parameter), layer), b = p_.value(second(product.parameter), layer);
  const int added = b_.temporary(fmt::format("{} of the adapter {}", product.parameter, layer), s_.type,
                                 tokens_of(product) * product.out);
  scaled(factor_product(product, OpKind::kMatmul, {x, a, product.adapted, rank, product.in}, layer, pass));
  factor_product(product, OpKind::kMatmul, {product.adapted, b, added, product.out, rank}, layer, pass);
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
  scaled(factor_product(product, OpKind::kMatmulDgrad, {dy, b, d_adapted, product.out, rank}, layer, kPass));
  factor_product(product, OpKind::kMatmulDgrad, {d_adapted, a, added, rank, product.in}, layer, kPass);
  add(added, dx, layer, kPass);
  return d_adapted;
}

void LayerWriter::adapter_gradients(int x, const Product& product, int dy, int d_adapted, int layer) {
  const std::int64_t tokens = tokens_of(product), rank = s_.lora.rank;
  const int d_a = p_.gradient(first(product.parameter), layer), d_b = p_.gradient(second(product.parameter), layer);
  if (product.of_experts) {
    constexpr Pass kPass = Pass::kBackward;
    factor_product(product, OpKind::kMatmulWgrad, {product.adapted, dy, d_b, product.out, rank}, layer, kPass);
    factor_product(product, OpKind::kMatmulWgrad, {x, d_adapted, d_a, rank, product.in}, layer, kPass);
    return;
  }
  weight_gradient({product.adapted, dy, d_b, kNoBuffer, tokens, product.out, rank, layer, false});
  weight_gradient({x, d_adapted, d_a, kNoBuffer, tokens, rank, product.in, layer, false});
}

}  // namespace trivium::program
