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
  constexpr float kScale = 1.5957691216057308F, kCubic = 0.044715F, kFlat = 80;  // 2 sqrt(2/pi)
  const bool silu = curve == Curve::kSwiglu;
  float g = silu ? u : kScale * (u + kCubic * u * u * u);
  g = g < -kFlat ? -kFlat : g > kFlat ? kFlat : g;
  const float s = inverse_of(1.0F + exp_of(-g));
  const float inner = silu ? 1.0F : kScale * (1.0F + 3.0F * kCubic * u * u);
  return {u * s, s + u * s * (1.0F - s) * inner};
}

/// The column of element i of rows of n.
TRIVIUM_DEVICE std::int64_t column_of(std::int64_t i, std::int64_t n) {
  constexpr std::int64_t kMost = 0xffffffff;  // 64 bits take twice as many instructions to divide
  return i <= kMost ? static_cast<std::uint32_t>(i) % static_cast<std::uint32_t>(n) : i % n;
}

template <class T, int W, Curve curve>
struct Activate {
  const T* x;
  const T* bias;
  T* y;
  std::int64_t m, n;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * n) return;
    const std::int64_t j = is_gated(curve) || bias != nullptr ? column_of(i, n) : 0;
    const T* const from = x + (is_gated(curve) ? 2 * i - j : i);
    float u[W], b[W];
    load<W>(from, u);
    if (bias != nullptr) {
      load<W>(bias + j, b);
      for (int k = 0; k < W; ++k) u[k] += b[k];
    }
    for (int k = 0; k < W; ++k) u[k] = curve_at<curve>(u[k]).value;
    if (is_gated(curve)) {
      float up[W];
      load<W>(from + n, up);
      if (bias != nullptr) load<W>(bias + n + j, b);
      for (int k = 0; k < W; ++k) u[k] *= up[k] + (bias != nullptr ? b[k] : 0.0F);
    }
    store<W>(y + i, u);
  }
};

/// Gradients of an input that is not gated, which they leave in `dx` on the way into sums of columns. dx may be x: a
/// thread reads what it overwrites, and no other does.
template <class T, Curve curve>
struct ActivationGradients {
  const T* x;
  const T* bias;
  const T* dy;
  T* dx;
  std::int64_t n;
  template <int W>
  TRIVIUM_DEVICE void load_at(std::int64_t r, std::int64_t c, float (&to)[W]) const {
    float u[W], b[W] = {};
    load<W>(x + r * n + c, u);
    load<W>(dy + r * n + c, to);
    if (bias != nullptr) load<W>(bias + c, b);
    for (int k = 0; k < W; ++k) to[k] *= curve_at<curve>(u[k] + b[k]).slope;
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
    const std::int64_t j = column_of(i, n);
    float d[W];
    gradients.template load_at<W>((i - j) / n, j, d);
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
