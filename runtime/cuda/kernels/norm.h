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

/// dx, and what a block's rows add to the gradients of weight and bias, partial (blocks, 2, n): x, dy and dskip are
/// read once. A block takes every blocks-th row; a thread keeps the sums of its up to P packs of columns in registers,
/// and has the packs of its row there until their means are known.
template <class T, int W, int P>
struct NormGradients {
  NormBackward<T, W> of;
  float* partial;
  std::int64_t rows;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    float sums[2][P][W] = {}, weights[P][W] = {};
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) < of.n) load<W>(of.weight + column(t, p), weights[p]);
    }
    for (std::int64_t row = t.block(); row < rows; row += t.blocks()) take(t, row, weights, sums);
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) >= of.n) continue;
      for (int which = 0; which < 2; ++which)
        store<W>(partial + (2 * t.block() + which) * of.n + column(t, p), sums[which][p]);
    }
  }

 private:
  struct Pair {
    float g, gx;
    TRIVIUM_DEVICE Pair operator+(const Pair& other) const { return {g + other.g, gx + other.gx}; }
  };
  template <class Thread>
  static TRIVIUM_DEVICE std::int64_t column(const Thread& t, int p) {
    return (t.thread() + p * t.threads()) * W;
  }

  template <class Thread>
  TRIVIUM_DEVICE void take(Thread& t, std::int64_t row, const float (&weights)[P][W], float (&sums)[2][P][W]) const {
    auto* room = reinterpret_cast<Pair*>(t.shared());
    const std::int64_t at = row * of.n;
    const float mean = of.stats[2 * row], inverse = of.stats[2 * row + 1], count = static_cast<float>(of.n);
    float normed[P][W] = {}, d[P][W] = {}, skip[P][W] = {};
    Pair mine{0, 0};
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) >= of.n) continue;
      load<W>(of.x + at + column(t, p), normed[p]);
      load<W>(of.dy + at + column(t, p), d[p]);
      if (of.dskip != nullptr) load<W>(of.dskip + at + column(t, p), skip[p]);
    }
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) >= of.n) continue;
      for (int i = 0; i < W; ++i) {
        normed[p][i] = (normed[p][i] - mean) * inverse;
        sums[0][p][i] += d[p][i] * normed[p][i];
        sums[1][p][i] += d[p][i];
        d[p][i] *= weights[p][i];
        mine = mine + Pair{d[p][i], d[p][i] * normed[p][i]};
      }
    }
    mine = over_warps(t, Pair{over_warp(t, mine.g, Sum()), over_warp(t, mine.gx, Sum())}, room, Sum());
    const float mean_g = of.centred ? mine.g / count : 0.0F, mean_gx = mine.gx / count;
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) >= of.n) continue;
      for (int i = 0; i < W; ++i) skip[p][i] += (d[p][i] - mean_g - normed[p][i] * mean_gx) * inverse;
      store<W>(of.dx + at + column(t, p), skip[p]);
    }
  }
};

}  // namespace trivium::runtime::cuda
