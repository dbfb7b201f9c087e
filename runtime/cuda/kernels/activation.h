// Activations with the bias of the layer before (cpu/variants/activation.cpp has the formulas and the kinds).
#pragma once

#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// As models::Activation.
enum class Curve : int { kGelu, kRelu, kSwiglu, kGeglu, kGeluErf, kSquaredRelu };

constexpr bool is_gated(Curve curve) { return curve == Curve::kSwiglu || curve == Curve::kGeglu; }

struct CurvePoint {
  float value, slope;
};

template <Curve curve>
TRIVIUM_DEVICE CurvePoint curve_at(float u) {
  if (curve == Curve::kRelu) return {u > 0 ? u : 0.0F, u > 0 ? 1.0F : 0.0F};
  if (curve == Curve::kSquaredRelu) return {u > 0 ? u * u : 0.0F, u > 0 ? 2 * u : 0.0F};
  if (curve == Curve::kGeluErf) {
    constexpr float kRootOfHalf = 0.70710678F, kPeak = 0.39894228F;  // sqrt(1/2), 1 / sqrt(2 pi)
    const float below = 0.5F * (1.0F + erf_of(u * kRootOfHalf));
    return {u * below, below + u * kPeak * exp_of(-0.5F * u * u)};
  }
  // u s and its slope, s = 1 / (1 + e^-g). Where the exponential overflows s is 0, as it is to all digits long before.
  constexpr float kLog2OfE = 1.4426950408889634F, kScale = 1.5957691216057308F, kCubic = 0.044715F;  // 2 sqrt(2/pi)
  constexpr float kFirst = -kLog2OfE * kScale, kThird = kFirst * kCubic;
  const bool silu = curve == Curve::kSwiglu;
  const float s = inverse_of(1.0F + exp2_of(u * (silu ? -kLog2OfE : kFirst + kThird * (u * u))));
  const float inner = silu ? 1.0F : kScale + 3.0F * kCubic * kScale * (u * u);
  return {u * s, s + u * (s - s * s) * inner};
}

/// A block is 32 packs of columns and 32 rows, four of each thread, which has them under way together.
template <class T, int W, Curve curve>
struct Activate {
  static constexpr int kWarps = 8, kThreads = kWarp * kWarps, kEach = 4, kRows = kWarps * kEach;
  static constexpr int kBlocksAtOnce = 4;
  const T* x;
  const T* bias;
  T* y;
  std::int64_t m, n;
  std::int64_t across() const { return (n + kWarp * W - 1) / (kWarp * W); }
  std::int64_t blocks() const { return across() * ((m + kRows - 1) / kRows); }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const auto wide = static_cast<std::uint32_t>((n + kWarp * W - 1) / (kWarp * W));
    const auto block = static_cast<std::uint32_t>(t.block());
    const std::int64_t first = static_cast<std::int64_t>(block / wide) * kRows + t.thread() / kWarp;
    const std::int64_t c = static_cast<std::int64_t>(block % wide * kWarp + t.thread() % kWarp) * W;
    if (c >= n) return;
    constexpr int kHalves = is_gated(curve) ? 2 : 1;
    Raw<T, W> held[kHalves][kEach];
    TRIVIUM_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t r = first + k * kWarps;
      if (r >= m) break;
      for (int half = 0; half < kHalves; ++half) held[half][k] = hold<W>(x + (r * kHalves + half) * n + c);
    }
    float biases[kHalves][W] = {};
    for (int half = 0; half < kHalves && bias != nullptr; ++half) load<W>(bias + half * n + c, biases[half]);
    TRIVIUM_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const std::int64_t r = first + k * kWarps;
      if (r >= m) break;
      float value[W];
      held[0][k].widen_to(value);
      for (int i = 0; i < W; ++i) value[i] = curve_at<curve>(value[i] + biases[0][i]).value;
      if constexpr (is_gated(curve)) {
        float up[W];
        held[1][k].widen_to(up);
        for (int i = 0; i < W; ++i) value[i] *= up[i] + biases[1][i];
      }
      store<W>(y + r * n + c, value);
    }
  }
};

/// Gradients of an input that is not gated, which they leave in `dx` on the way into sums of columns. dx may be x: a
/// thread reads what it overwrites, and no other does.
template <class T, Curve curve>
struct ActivationGradients {
  static constexpr int kAhead = 2, kBlocks = 3;
  const T* x;
  const T* bias;
  const T* dy;
  T* dx;
  std::int64_t n;
  template <int W>
  struct Pair {
    Raw<T, W> x, dy;
  };
  template <int W>
  TRIVIUM_DEVICE Fetched<W> common(std::int64_t c) const {
    Fetched<W> biases = {};
    if (bias != nullptr) load<W>(bias + c, biases.values);
    return biases;
  }
  template <int W>
  TRIVIUM_DEVICE Pair<W> fetch(std::int64_t r, std::int64_t c) const {
    return {hold<W>(x + r * n + c), hold<W>(dy + r * n + c)};
  }
  template <int W>
  TRIVIUM_DEVICE void finish(const Pair<W>& held, const Fetched<W>& biases, std::int64_t r, std::int64_t c,
                             float (&to)[W]) const {
    float u[W];
    held.x.widen_to(u);
    held.dy.widen_to(to);
    for (int k = 0; k < W; ++k) to[k] *= curve_at<curve>(u[k] + biases.values[k]).slope;
    store<W>(dx + r * n + c, to);
  }
};

/// All of them without sums.
template <class T, int W, Curve curve>
struct ActivateBackward {
  ActivationGradients<T, curve> gradients;
  std::int64_t m;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W, n = gradients.n;
    if (i >= m * n) return;
    const std::int64_t j = column_of(i, n), r = (i - j) / n;
    float d[W];
    gradients.template finish<W>(gradients.template fetch<W>(r, j), gradients.template common<W>(j), r, j, d);
  }
};

/// dx may be x, as above.
template <class T, int W, Curve curve>
struct ActivateGatedBackward {
  const T* x;
  const T* bias;
  const T* dy;
  T* dx;
  std::int64_t m, n;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * n) return;
    const std::int64_t j = column_of(i, n), at = 2 * i - j;
    float u[W], b[W], d[W], up[W];
    load<W>(x + at, u);
    load<W>(x + at + n, up);
    load<W>(dy + i, d);
    if (bias != nullptr) {
      load<W>(bias + j, b);
      for (int k = 0; k < W; ++k) u[k] += b[k];
      load<W>(bias + n + j, b);
      for (int k = 0; k < W; ++k) up[k] += b[k];
    }
    for (int k = 0; k < W; ++k) {
      const CurvePoint point = curve_at<curve>(u[k]);
      u[k] = d[k] * point.slope * up[k];
      up[k] = d[k] * point.value;
    }
    store<W>(dx + at, u);
    store<W>(dx + at + n, up);
  }
};

}  // namespace trivium::runtime::cuda
