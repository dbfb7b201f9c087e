// Activations with the bias of the layer before (cpu/variants/activation.cpp has the formulas and the kinds).
#pragma once

#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// As models::Activation.
enum class Curve : int { kGelu, kRelu, kSwiglu, kGeglu, kGeluErf, kSquaredRelu };

TRIVIUM_DEVICE bool is_gated(Curve curve) { return curve == Curve::kSwiglu || curve == Curve::kGeglu; }

struct CurvePoint {
  float value, slope;
};

TRIVIUM_DEVICE CurvePoint curve_at(Curve curve, float u) {
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
  const float s = 1.0F / (1.0F + exp_of(-g));
  const float inner = silu ? 1.0F : kScale * (1.0F + 3.0F * kCubic * u * u);
  return {u * s, s + u * s * (1.0F - s) * inner};
}

template <class T, int W>
struct Activate {
  const T* x;
  const T* bias;
  T* y;
  std::int64_t m, n;
  Curve curve;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * n) return;
    const std::int64_t r = i / n, j = i % n, width = is_gated(curve) ? 2 * n : n;
    float u[W], b[W];
    load<W>(x + r * width + j, u);
    if (bias != nullptr) {
      load<W>(bias + j, b);
      for (int k = 0; k < W; ++k) u[k] += b[k];
    }
    for (int k = 0; k < W; ++k) u[k] = curve_at(curve, u[k]).value;
    if (is_gated(curve)) {
      float up[W];
      load<W>(x + r * width + n + j, up);
      if (bias != nullptr) load<W>(bias + n + j, b);
      for (int k = 0; k < W; ++k) u[k] *= up[k] + (bias != nullptr ? b[k] : 0.0F);
    }
    store<W>(y + i, u);
  }
};

/// dx may be x: a thread reads what it overwrites, and no other does.
template <class T, int W>
struct ActivateBackward {
  const T* x;
  const T* bias;
  const T* dy;
  T* dx;
  std::int64_t m, n;
  Curve curve;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * n) return;
    const std::int64_t r = i / n, j = i % n, width = is_gated(curve) ? 2 * n : n;
    float u[W], b[W], d[W], up[W];
    load<W>(x + r * width + j, u);
    load<W>(dy + i, d);
    if (bias != nullptr) {
      load<W>(bias + j, b);
      for (int k = 0; k < W; ++k) u[k] += b[k];
    }
    if (!is_gated(curve)) {
      for (int k = 0; k < W; ++k) u[k] = d[k] * curve_at(curve, u[k]).slope;
      return store<W>(dx + i, u);
    }
    load<W>(x + r * width + n + j, up);
    if (bias != nullptr) {
      load<W>(bias + n + j, b);
      for (int k = 0; k < W; ++k) up[k] += b[k];
    }
    for (int k = 0; k < W; ++k) {
      const CurvePoint point = curve_at(curve, u[k]);
      u[k] = d[k] * point.slope * up[k];
      up[k] = d[k] * point.value;
    }
    store<W>(dx + r * width + j, u);
    store<W>(dx + r * width + n + j, up);
  }
};

}  // namespace trivium::runtime::cuda
