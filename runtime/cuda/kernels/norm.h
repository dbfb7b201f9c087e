// LayerNorm and RMSNorm (cpu/variants/norm.cpp has the formulas). A block a row.
#pragma once

#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

TRIVIUM_DEVICE float inverse_root(float x) {
#if defined(__CUDA_ARCH__)
  return 1.0F / sqrtf(x);
#else
  return 1.0F / __builtin_sqrtf(x);
#endif
}

template <class T, int W>
struct Norm {
  const T* x;
  const T* weight;
  const T* bias;  ///< null: RMSNorm
  T* y;
  float* stats;
  std::int64_t n;
  float epsilon;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const T* row = x + t.block() * n;
    const float count = static_cast<float>(n);
    float mean = 0;
    if (bias != nullptr) {
      float sum = 0;
      for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
        float value[W];
        load<W>(row + j, value);
        for (int i = 0; i < W; ++i) sum += value[i];
      }
      mean = over_block(t, sum, room, Sum()) / count;
    }
    float squares = 0;
    for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
      float value[W];
      load<W>(row + j, value);
      for (int i = 0; i < W; ++i) squares += (value[i] - mean) * (value[i] - mean);
    }
    const float inverse = inverse_root(over_block(t, squares, room, Sum()) / count + epsilon);
    for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
      float value[W], w[W], b[W] = {};
      load<W>(row + j, value);
      load<W>(weight + j, w);
      if (bias != nullptr) load<W>(bias + j, b);
      for (int i = 0; i < W; ++i) value[i] = (value[i] - mean) * inverse * w[i] + b[i];
      store<W>(y + t.block() * n + j, value);
    }
    if (t.thread() == 0) {
      stats[2 * t.block()] = mean;
      stats[2 * t.block() + 1] = inverse;
    }
  }
};

/// dx alone; the gradients of weight and bias are column sums. dx may be x, dy or dskip.
template <class T, int W>
struct NormBackward {
  const T* x;
  const T* weight;
  const float* stats;
  const T* dy;
  const T* dskip;
  T* dx;
  std::int64_t n;
  bool centred;  ///< LayerNorm
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const std::int64_t at = t.block() * n;
    const float mean = stats[2 * t.block()], inverse = stats[2 * t.block() + 1], count = static_cast<float>(n);
    float sum_g = 0, sum_gx = 0;
    for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
      float value[W], w[W], d[W];
      load<W>(x + at + j, value);
      load<W>(weight + j, w);
      load<W>(dy + at + j, d);
      for (int i = 0; i < W; ++i) {
        const float g = d[i] * w[i];
        sum_g += g;
        sum_gx += g * ((value[i] - mean) * inverse);
      }
    }
    const float mean_g = centred ? over_block(t, sum_g, room, Sum()) / count : 0.0F;
    const float mean_gx = over_block(t, sum_gx, room, Sum()) / count;
    for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
      float value[W], w[W], d[W], skip[W] = {};
      load<W>(x + at + j, value);
      load<W>(weight + j, w);
      load<W>(dy + at + j, d);
      if (dskip != nullptr) load<W>(dskip + at + j, skip);
      for (int i = 0; i < W; ++i) {
        const float xhat = (value[i] - mean) * inverse;
        value[i] = skip[i] + (d[i] * w[i] - mean_g - xhat * mean_gx) * inverse;
      }
      store<W>(dx + at + j, value);
    }
  }
};

}  // namespace trivium::runtime::cuda
