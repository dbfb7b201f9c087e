#include "tests/bench/cuda_cases.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <set>

namespace trivium::bench {
namespace {

using program::DType;
using program::Op;
using program::OpKind;
using program::Space;

constexpr std::int64_t kPadded = 50304;  // columns of logits
constexpr int kHalfBuffer = 0, kWideBuffer = 1;

/// Rows of a model as one GPU has them: tokens of a micro-batch.
struct Rows {
  const char* model;
  std::int64_t tokens, hidden;
};
constexpr std::array<Rows, 2> kModels{Rows{"GPT-2 124M", 32768, 768}, Rows{"GPT-2 1.5B", 8192, 1600}};

Operand half(std::int64_t elements) { return {elements * 2, Fill::kHalf}; }
Operand wide(std::int64_t elements) { return {elements * 4, Fill::kWide}; }

CudaCase make(const char* name, OpKind kind, std::int64_t m, std::int64_t n, std::int64_t k = 0) {
  CudaCase c;
  c.name = name;
  c.op.kind = kind, c.op.m = m, c.op.n = n, c.op.k = k, c.op.dtype = DType::kBf16;
  c.shape = k > 0 ? fmt::format("{} x {} x {}", m, n, k) : fmt::format("{} x {}", m, n);
  c.kind.parameters.emplace_back().value = kHalfBuffer;  // the backend reads the precision off it
  c.kind.buffers = {{"half", Space::kParameter, DType::kBf16, 1, 0}, {"wide", Space::kWorkspace, DType::kFp32, 1, 0}};
  return c;
}

/// Every operand once.
CudaCase& count_bytes(CudaCase& c) {
  for (const Operand& each : c.in) c.bytes += static_cast<double>(each.bytes);
  for (const Operand& each : c.out) c.bytes += static_cast<double>(each.bytes);
  return c;
}

void add_norms(std::vector<CudaCase>& cases, const Rows& rows) {
  const std::int64_t m = rows.tokens, n = rows.hidden;
  CudaCase forward = make("norm", OpKind::kNorm, m, n);
  forward.in = {half(m * n), half(n), half(n)};
  forward.out = {half(m * n), wide(2 * m)};
  cases.push_back(count_bytes(forward));
  CudaCase backward = make("norm_backward", OpKind::kNormBackward, m, n);
  backward.in = {half(m * n), half(n), wide(2 * m), half(m * n), half(m * n)};
  backward.out = {half(m * n), wide(n), wide(n)};
  cases.push_back(count_bytes(backward));
}

void add_activations(std::vector<CudaCase>& cases, const Rows& rows) {
  const std::int64_t m = rows.tokens, n = 4 * rows.hidden;
  CudaCase forward = make("activation", OpKind::kActivation, m, n);
  forward.in = {half(m * n), half(n)};
  forward.out = {half(m * n)};
  cases.push_back(count_bytes(forward));
  CudaCase backward = make("activation_backward", OpKind::kActivationBackward, m, n);
  backward.in = {half(m * n), half(n), half(m * n)};
  backward.out = {half(m * n), wide(n)};
  cases.push_back(count_bytes(backward));
}

void add_residuals(std::vector<CudaCase>& cases, const Rows& rows) {
  const std::int64_t m = rows.tokens, n = rows.hidden;
  CudaCase forward = make("bias_residual", OpKind::kBiasResidual, m, n);
  forward.in = {half(m * n), half(n), half(m * n)};
  forward.out = {half(m * n)};
  cases.push_back(count_bytes(forward));
  CudaCase backward = make("bias_residual_backward", OpKind::kBiasResidualBackward, m, n);
  backward.in = {half(m * n)};
  backward.out = {wide(n)};
  cases.push_back(count_bytes(backward));
}

void add_embedding(std::vector<CudaCase>& cases, const Rows& rows) {
  const std::int64_t m = rows.tokens, n = rows.hidden;
  const std::vector<std::int32_t> ids = made_ids(m);
  const auto touched = static_cast<double>(std::set<std::int32_t>(ids.begin(), ids.end()).size());
  CudaCase c = make("embedding_backward", OpKind::kEmbeddingBackward, m, n, kPadded);
  c.in = {Operand{m * 4, Fill::kIds}, half(m * n)};
  c.out = {wide(kPadded * n)};
  c.bytes = static_cast<double>(c.in[0].bytes + c.in[1].bytes) + touched * static_cast<double>(n) * 8;
  cases.push_back(c);
}

void add_loss(std::vector<CudaCase>& cases, const Rows& rows) {
  const std::int64_t m = rows.tokens, n = kPadded;
  CudaCase sums = make("loss_sums", OpKind::kLossSums, m, n);
  sums.in = {wide(m * n), wide(m), Operand{m * 4, Fill::kIds}};
  sums.out = {wide(2 * m)};
  cases.push_back(count_bytes(sums));
  CudaCase backward = make("loss_backward", OpKind::kLossBackward, m, n);
  backward.in = {wide(m * n), wide(m), Operand{m * 8, Fill::kPositive}, Operand{m * 4, Fill::kIds}};
  backward.in_place = true;
  count_bytes(backward).bytes += static_cast<double>(m * n * 2);
  cases.push_back(backward);
}

/// A bucket of parameters of these shapes, one after the other.
CudaCase of_bucket(const char* name, OpKind kind, const std::string& what, const std::vector<std::int64_t>& shapes) {
  CudaCase c = make(name, kind, 0, 0);
  c.kind.parameters.clear();
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < shapes.size(); i += 2) {
    program::Parameter p;
    p.local_rows = shapes[i], p.local_columns = shapes[i + 1], p.offset = elements;
    p.decayed = shapes[i] > 1, p.value = kHalfBuffer;
    c.kind.parameters.push_back(p);
    elements += p.local_rows * p.local_columns;
  }
  c.kind.buckets.push_back({.begin = 0, .elements = elements, .shard = elements});
  c.op.bucket = 0, c.op.elements = elements;
  c.shape = fmt::format("{}, {:.1f} M", what, static_cast<double>(elements) * 1e-6);
  c.spaces[static_cast<std::size_t>(Space::kGradient)] = wide(elements);
  return c;
}

void add_optimizer(std::vector<CudaCase>& cases, const std::string& what, const std::vector<std::int64_t>& shapes) {
  constexpr std::int64_t kPairBytes = 16, kStepBytes = 28;  // of two doubles; g, m, v, p read, m, v, p, T written
  CudaCase norm = of_bucket("gradient_norm", OpKind::kGradientNorm, what, shapes);
  norm.out[0] = {kPairBytes, Fill::kZero};
  const std::int64_t elements = norm.op.elements;
  norm.bytes = static_cast<double>(elements) * 4;
  cases.push_back(norm);
  CudaCase step = of_bucket("adamw", OpKind::kAdamW, what, shapes);
  step.in[0] = {kPairBytes, Fill::kZero};
  step.spaces[static_cast<std::size_t>(Space::kParameter)] = half(elements);
  step.spaces[static_cast<std::size_t>(Space::kOptimizer)] = {elements * 12, Fill::kPositive};
  step.bytes = static_cast<double>(elements * (kStepBytes + 2));
  cases.push_back(step);
  CudaCase zero = of_bucket("zero_gradients", OpKind::kZeroGradients, what, shapes);
  zero.bytes = static_cast<double>(elements) * 4;
  cases.push_back(zero);
}

/// Causal: half of the products count. The backward's are five for the forward's two.
void add_attention(std::vector<CudaCase>& cases, std::int64_t samples, int sequence, int heads, int kv_heads, int dim) {
  const std::int64_t m = samples * sequence, n = std::int64_t{heads} * dim, width = n + 2LL * kv_heads * dim;
  const auto ready = [&](const char* name, OpKind kind) {
    CudaCase c = make(name, kind, m, n);
    c.shape = fmt::format("B{} S{} H{}/{} D{}", samples, sequence, heads, kv_heads, dim);
    c.op.heads = heads, c.op.kv_heads = kv_heads, c.op.head_dim = dim, c.op.sequence = sequence, c.op.flash = true;
    return c;
  };
  const double product = static_cast<double>(m) * sequence * static_cast<double>(n);
  CudaCase forward = ready("attention", OpKind::kAttention);
  forward.in = {half(m * width)};
  forward.out = {half(m * n), wide(m * heads)};
  forward.flops = 2 * product;
  cases.push_back(count_bytes(forward));
  CudaCase backward = ready("attention_backward", OpKind::kAttentionBackward);
  backward.in = {half(m * width), half(m * n), wide(m * heads), half(m * n)};
  backward.out = {half(m * width)};
  backward.after_forward = true;
  backward.flops = 5 * product;
  cases.push_back(count_bytes(backward));
}

/// The three products of a linear layer with a bias, or of the head, whose logits are fp32 and whose weight is the
/// table of the embedding. Bytes are not counted: products are bound by arithmetic.
void add_products(std::vector<CudaCase>& cases, std::int64_t m, std::int64_t n, std::int64_t k, bool head) {
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const Operand x = half(m * k), w = half(n * k), y = head ? wide(m * n) : half(m * n);
  const Operand dy{y.bytes, Fill::kHalf};  // of the head 16 bits at the start of rows of fp32
  const Operand bias = head ? Operand{} : half(n), dbias = head ? Operand{} : wide(n);
  const int result = head ? kWideBuffer : kHalfBuffer;
  const auto ready = [&](const char* name, OpKind kind) {
    CudaCase c = make(name, kind, m, n, k);
    c.op.weight_transposed = head;
    c.flops = flops;
    return c;
  };
  CudaCase forward = ready("matmul", OpKind::kMatmul);
  forward.in = {x, w, bias};
  forward.out = {y};
  forward.op.out[0] = result;
  cases.push_back(forward);
  CudaCase dgrad = ready("matmul_dgrad", OpKind::kMatmulDgrad);
  dgrad.in = {dy, w};
  dgrad.out = {x};
  dgrad.op.in[0] = result;
  cases.push_back(dgrad);
  CudaCase wgrad = ready("matmul_wgrad", OpKind::kMatmulWgrad);
  wgrad.in = {x, dy};
  wgrad.out = {wide(n * k), dbias};
  wgrad.op.in[1] = result;
  cases.push_back(wgrad);
}

}  // namespace

std::int64_t CudaCase::footprint() const {
  std::int64_t total = 0;
  for (const Operand& each : in) total += each.bytes;
  for (const Operand& each : out) total += each.bytes;
  for (const Operand& each : spaces) total += each.bytes;
  return total;
}

/// Evenly spread logarithms: about as in texts, where the k-th word comes 1 / k times as often as the first.
std::vector<std::int32_t> made_ids(std::int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(0, std::log(static_cast<double>(kVocabulary)));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(std::exp(exponent(random))) - 1;
  return ids;
}

std::vector<CudaCase> cuda_cases() {
  std::vector<CudaCase> cases;
  for (const Rows& rows : kModels) {
    const std::size_t first = cases.size();
    add_norms(cases, rows);
    add_activations(cases, rows);
    add_residuals(cases, rows);
    add_embedding(cases, rows);
    for (std::size_t i = first; i < cases.size(); ++i) cases[i].shape += fmt::format(" ({})", rows.model);
  }
  add_loss(cases, kModels.front());
  const std::int64_t h = kModels.back().hidden, small = kModels.front().hidden;
  add_optimizer(cases, "layer of 1.5B",
                {1, h, 1, h, h, 3 * h, 1, 3 * h, h, h, 1, h, 1, h, 1, h, h, 4 * h, 1, 4 * h, 4 * h, h, 1, h});
  add_optimizer(cases, "tables of 124M", {kPadded, small, 1024, small});
  add_attention(cases, 32, 1024, 12, 12, 64);
  add_attention(cases, 8, 1024, 25, 25, 64);
  add_attention(cases, 2, 4096, 32, 8, 128);
  add_attention(cases, 8, 2048, 16, 16, 128);
  for (const Rows& rows : kModels) {
    const std::int64_t m = rows.tokens, k = rows.hidden;
    add_products(cases, m, 3 * k, k, false);
    add_products(cases, m, k, k, false);
    add_products(cases, m, 4 * k, k, false);
    add_products(cases, m, k, 4 * k, false);
  }
  add_products(cases, kModels.front().tokens, kPadded, kModels.front().hidden, true);
  return cases;
}

}  // namespace trivium::bench
