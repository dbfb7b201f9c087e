// LayerNorm and RMSNorm (cpu/variants/norm.cpp has the formulas).
#pragma once

#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

TRIVIUM_DEVICE float inverse_root(float x) {
#if defined(__CUDA_ARCH__)
  return rsqrtf(x);
#else
  return 1.0F / __builtin_sqrtf(x);
#endif
}

/// A block a row, which it reads three times: for rows of any length.
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

/// Rows in registers, up to P packs a thread, read once: a warp a row, without barriers, or with `kShared` a block.
template <class T, int W, int P, bool kShared>
struct NormRows {
  static constexpr bool kShares = kShared;
  static constexpr int kWarps = 4;  ///< of a block whose warps have a row each
  static constexpr int kThreads = kShared ? static_cast<int>(kMostRowThreads) : kWarps * kWarp;
  static constexpr int kBlocksAtOnce = kShared ? 4 : P <= 4 ? 12 : 8;
  Norm<T, W> of;
  std::int64_t rows;
  float share;  ///< 1 / columns
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const int width = kShared ? t.threads() : kWarp, place = kShared ? t.thread() : t.thread() % kWarp;
    const std::int64_t row = kShared ? t.block() : t.block() * kWarps + t.thread() / kWarp;
    if (!kShared && row >= rows) return;
    const int n = static_cast<int>(of.n);
    const T* from = of.x + row * of.n;
    Raw<T, W> held[P] = {};
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (const int j = (place + p * width) * W; j < n) held[p] = hold<W>(from + j);
    }
    const float mean = of.bias != nullptr ? joined(t, sum_of(held)) * share : 0.0F;
    float squares = 0;
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if ((place + p * width) * W >= n) continue;
      float value[W];
      held[p].widen_to(value);
      for (int i = 0; i < W; ++i) squares += (value[i] - mean) * (value[i] - mean);
    }
    const float inverse = inverse_root(joined(t, squares) * share + of.epsilon);
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      const int j = (place + p * width) * W;
      if (j >= n) continue;
      float value[W], w[W], b[W] = {};
      held[p].widen_to(value);
      hold<W>(of.weight + j).widen_to(w);
      if (of.bias != nullptr) hold<W>(of.bias + j).widen_to(b);
      for (int i = 0; i < W; ++i) value[i] = (value[i] - mean) * inverse * w[i] + b[i];
      store<W>(of.y + row * of.n + j, value);
    }
    if (place == 0) {
      of.stats[2 * row] = mean;
      of.stats[2 * row + 1] = inverse;
    }
  }

 private:
  static TRIVIUM_DEVICE float sum_of(const Raw<T, W> (&held)[P]) {
    float sum = 0;
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      float value[W];
      held[p].widen_to(value);
      for (int i = 0; i < W; ++i) sum += value[i];
    }
    return sum;
  }
  /// Of the threads that have the row.
  template <class Thread>
  static TRIVIUM_DEVICE float joined(Thread& t, float mine) {
    if constexpr (kShared) return over_block(t, mine, reinterpret_cast<float*>(t.shared()), Sum());
    return over_warp(t, mine, Sum());
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
/// read once. A block takes kRows rows at once and then every blocks-th such group; a thread has the up to P packs of
/// its columns of all of them under way together, and keeps the sums of those columns in registers.
template <class T, int W, int P>
struct NormGradients {
  static constexpr int kRows = P == 1 ? 4 : P == 2 && W < 8 ? 2 : 1, kBlocksAtOnce = P * W <= 16 ? 2 : 1;
  static constexpr int kMostWarps = static_cast<int>(kMostRowThreads) / kWarp;
  NormBackward<T, W> of;
  float* partial;
  std::int64_t rows;
  float share;  ///< 1 / columns
  static constexpr int shared_bytes() { return 2 * kMostWarps * kRows * static_cast<int>(sizeof(Pair)); }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    float sums[2][P][W] = {};
    Raw<T, W> weights[P] = {};
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) < of.n) weights[p] = hold<W>(of.weight + column(t, p));
    }
    // Two rooms in turn: who writes one again has passed a barrier that everybody reached after reading it.
    auto* const rooms = reinterpret_cast<Pair*>(t.shared());
    int turn = 0;
    for (std::int64_t row = t.block() * kRows; row < rows; row += t.blocks() * kRows, turn ^= 1)
      take(t, row, rooms + turn * kMostWarps * kRows, weights, sums);
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      if (column(t, p) >= of.n) continue;
      for (int which = 0; which < 2; ++which)
        store<W>(partial + (2 * t.block() + which) * of.n + column(t, p), sums[which][p]);
    }
  }

 private:
  struct alignas(8) Pair {
    float g, gx;
    TRIVIUM_DEVICE Pair operator+(const Pair& other) const { return {g + other.g, gx + other.gx}; }
  };
  /// Where there is no such row or column, zeros, which add nothing.
  struct Row {
    Raw<T, W> x[P], d[P], skip[P];
    float mean, inverse;
  };
  template <class Thread>
  static TRIVIUM_DEVICE int column(const Thread& t, int p) {
    return (t.thread() + p * t.threads()) * W;
  }

  template <class Thread>
  TRIVIUM_DEVICE void fetch(const Thread& t, std::int64_t row, Row& to) const {
    to = Row{};
    if (row >= rows) return;
    TRIVIUM_UNROLL
    for (int p = 0; p < P; ++p) {
      const std::int64_t at = row * of.n + column(t, p);
      if (column(t, p) >= of.n) continue;
      to.x[p] = hold<W>(of.x + at);
      to.d[p] = hold<W>(of.dy + at);
      if (of.dskip != nullptr) to.skip[p] = hold<W>(of.dskip + at);
    }
  }

  /// A thread reads those of one row: what all threads read alike a compiler waits for at once, before it goes on to
  /// other loads, to have it in a register of the warp.
  template <class Thread>
  TRIVIUM_DEVICE void fetch_statistics(Thread& t, std::int64_t first, Row (&to)[kRows]) const {
    const int own = t.thread() % kRows;
    const std::int64_t row = first + own < rows ? first + own : rows - 1;
    float stats[2];
    load<2>(of.stats + 2 * row, stats);
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) {
      to[k].mean = kRows == 1 ? stats[0] : t.shuffle_xor(stats[0], own ^ k);
      to[k].inverse = kRows == 1 ? stats[1] : t.shuffle_xor(stats[1], own ^ k);
    }
  }

  /// The normed x, dy and dy times the weight.
  static TRIVIUM_DEVICE void widen_pack(const Row& row, int p, const Raw<T, W>& weight, float (&normed)[W],
                                        float (&d)[W], float (&g)[W]) {
    row.x[p].widen_to(normed);
    row.d[p].widen_to(d);
    weight.widen_to(g);
    for (int i = 0; i < W; ++i) {
      normed[i] = (normed[i] - row.mean) * row.inverse;
      g[i] *= d[i];
    }
  }

  template <class Thread>
  TRIVIUM_DEVICE void take(Thread& t, std::int64_t first, Pair* room, const Raw<T, W> (&weights)[P],
                           float (&sums)[2][P][W]) const {
    Row row[kRows];
    Pair mine[kRows] = {};
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) fetch(t, first + k, row[k]);
    fetch_statistics(t, first, row);
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) {
      TRIVIUM_UNROLL
      for (int p = 0; p < P; ++p) {
        float normed[W], d[W], g[W];
        widen_pack(row[k], p, weights[p], normed, d, g);
        for (int i = 0; i < W; ++i) {
          sums[0][p][i] += d[i] * normed[i];
          sums[1][p][i] += d[i];
          mine[k] = mine[k] + Pair{g[i], g[i] * normed[i]};
        }
      }
    }
    join(t, room, mine);
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) {
      if (first + k >= rows) continue;
      const float mean_g = of.centred ? mine[k].g * share : 0.0F, mean_gx = mine[k].gx * share;
      TRIVIUM_UNROLL
      for (int p = 0; p < P; ++p) {
        if (column(t, p) >= of.n) continue;
        float normed[W], d[W], g[W];
        widen_pack(row[k], p, weights[p], normed, d, g);
        row[k].skip[p].widen_to(d);
        for (int i = 0; i < W; ++i) d[i] += (g[i] - mean_g - normed[i] * mean_gx) * row[k].inverse;
        store<W>(of.dx + (first + k) * of.n + column(t, p), d);
      }
    }
  }

  /// Each row's pair over all threads of the block.
  template <class Thread>
  static TRIVIUM_DEVICE void join(Thread& t, Pair* room, Pair (&mine)[kRows]) {
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) mine[k] = {over_warp(t, mine[k].g, Sum()), over_warp(t, mine[k].gx, Sum())};
    if (t.threads() == kWarp) return;
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) {
      if (t.thread() % kWarp == 0) room[t.thread() / kWarp * kRows + k] = mine[k];
    }
    t.sync();
    TRIVIUM_UNROLL
    for (int k = 0; k < kRows; ++k) mine[k] = room[k];
    for (int warp = 1; warp < t.threads() / kWarp; ++warp) {
      TRIVIUM_UNROLL
      for (int k = 0; k < kRows; ++k) mine[k] = mine[k] + room[warp * kRows + k];
    }
  }
};

}  // namespace trivium::runtime::cuda
