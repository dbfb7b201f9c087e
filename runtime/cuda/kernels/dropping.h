// Dropout within kernels (runtime/dropout.h): what an element is multiplied by.
#pragma once

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/positions.h"
#include "runtime/dropout.h"

namespace trivium::runtime::cuda {

/// For one of the four columns that `words` are of. Written without an index into them, which would move them to
/// memory.
TRIVIUM_DEVICE float kept_factor(const Dropout& d, const PhiloxWords& words, std::int64_t column) {
  const std::uint32_t low = (column & 1) != 0 ? words.of[1] : words.of[0];
  const std::uint32_t high = (column & 1) != 0 ? words.of[3] : words.of[2];
  return ((column & 2) != 0 ? high : low) < d.threshold ? 0.0F : static_cast<float>(d.scale);
}

/// Of a probability of attention; 1 where nothing is dropped.
TRIVIUM_DEVICE float score_factor(const Dropout& d, std::int64_t head, std::int64_t sample, std::int64_t query,
                                  std::int64_t key) {
  return d.drops() ? kept_factor(d, dropout_words(d, head, sample, query, key / 4), key) : 1.0F;
}

/// What kernels over token rows do to what they have in hand: nothing, or what its columns are multiplied by.
struct KeepAll {
  template <int W>
  TRIVIUM_DEVICE void operator()(std::int64_t, std::int64_t, float (&)[W]) const {}
};

struct DropTokens {
  Dropout d;
  Positions positions;

  /// Columns [column, column + W) of local row r; W is 1, or 4 and the column a multiple of it.
  template <int W>
  TRIVIUM_DEVICE void factors(std::int64_t r, std::int64_t column, float (&to)[W]) const {
    const PhiloxWords words = dropout_words(d, 0, positions.sample_of_row(r), positions.of_row(r), column / 4);
    for (int i = 0; i < W; ++i) to[i] = kept_factor(d, words, column + i);
  }
  template <int W>
  TRIVIUM_DEVICE void operator()(std::int64_t r, std::int64_t column, float (&value)[W]) const {
    float by[W];
    factors<W>(r, column, by);
    for (int i = 0; i < W; ++i) value[i] *= by[i];
  }
};

/// y = skip + mask o (x + bias + second) / (1 - p), and the mask; biases may be absent.
template <class T, int W>
struct DroppedResidual {
  const T* x;
  const T* bias;
  const T* skip;
  const T* second;
  T* y;
  std::uint8_t* mask;
  std::int64_t m, n;
  DropTokens drop;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * n) return;
    float sum[W], other[W];
    load<W>(x + i, sum);
    for (int which = 0; which < 2; ++which) {
      const T* row = which == 0 ? bias : second;
      if (row == nullptr) continue;
      load<W>(row + i % n, other);
      for (int k = 0; k < W; ++k) sum[k] += other[k];
    }
    float by[W];
    drop.template factors<W>(i / n, i % n, by);
    load<W>(skip + i, other);
    for (int k = 0; k < W; ++k) {
      mask[i + k] = by[k] > 0 ? 1 : 0;
      sum[k] = other[k] + sum[k] * by[k];
    }
    store<W>(y + i, sum);
  }
};

/// What a mask lets through of dy (T,n), as rows to be summed and as they are stored.
template <class T>
struct KeptValues {
  static constexpr int kAhead = 2, kBlocks = 4;
  const T* dy;
  const std::uint8_t* mask;
  std::int64_t n;
  float scale;
  template <int W>
  TRIVIUM_DEVICE Nothing common(std::int64_t) const {
    return {};
  }
  template <int W>
  TRIVIUM_DEVICE Fetched<W> fetch(std::int64_t r, std::int64_t c) const {
    Fetched<W> kept;
    load<W>(dy + r * n + c, kept.values);
    for (int i = 0; i < W; ++i) kept.values[i] *= mask[r * n + c + i] != 0 ? scale : 0.0F;
    return kept;
  }
  template <int W>
  TRIVIUM_DEVICE void finish(const Fetched<W>& fetched, Nothing, std::int64_t, std::int64_t, float (&to)[W]) const {
    for (int i = 0; i < W; ++i) to[i] = fetched.values[i];
  }
};

template <class T, int W>
struct StoreKept {
  KeptValues<T> values;
  T* dx;
  std::int64_t m;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * values.n) return;
    store<W>(dx + i, values.template fetch<W>(i / values.n, i % values.n).values);
  }
};

/// Causal scores (samples, heads, length, length) to what dropout leaves of them; a thread four keys of a query. Keys
/// that the query does not see become 0. The mask is drawn, or was.
template <class T>
struct DropScores {
  const T* from;
  T* to;  ///< may be `from`
  std::uint8_t* mask;
  std::int64_t samples, heads, length;
  Dropout d;
  bool draws;
  TRIVIUM_DEVICE std::int64_t quads() const { return (length + 3) / 4; }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i >= samples * heads * length * quads()) return;
    const std::int64_t row = i / quads(), first = i % quads() * 4, query = row % length, line = row / length;
    PhiloxWords words = {};
    if (draws && first <= query) words = dropout_words(d, line % heads, line / heads, query, first / 4);
    for (std::int64_t key = first; key < first + 4 && key < length; ++key) {
      const std::int64_t at = row * length + key;
      float value = 0;
      if (key <= query) {
        if (draws) mask[at] = kept_factor(d, words, key) > 0 ? 1 : 0;
        value = mask[at] != 0 ? widen(from[at]) * static_cast<float>(d.scale) : 0.0F;
      }
      to[at] = narrow<T>(value);
    }
  }
};

}  // namespace trivium::runtime::cuda
