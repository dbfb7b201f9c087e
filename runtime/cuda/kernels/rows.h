// Kernels over rows of tokens: positions, residual sums, column sums. Keep: KeepAll or DropTokens.
#pragma once

#include <utility>

#include "runtime/cuda/kernels/dropping.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// y = x + the table's row of the token's position.
template <class T, int W, class Keep>
struct Position {
  const T* x;
  const T* table;
  T* y;
  std::int64_t n;
  Positions positions;
  Keep keep;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t row = positions.of_row(t.block());
    for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
      float value[W], other[W];
      load<W>(x + t.block() * n + j, value);
      load<W>(table + row * n + j, other);
      for (int i = 0; i < W; ++i) value[i] += other[i];
      keep(t.block(), j, value);
      store<W>(y + t.block() * n + j, value);
    }
  }
};

/// dtable (position) += sum over the samples, in their order. A block a local position.
template <class T, class Keep>
struct PositionBackward {
  const T* dy;
  float* dtable;
  std::int64_t m, n;
  Positions positions;
  Keep keep;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t local = positions.local;
    const std::int64_t first = ((t.block() - positions.offset) % local + local) % local;
    if (first >= m) return;
    const std::int64_t row = positions.of_local(t.block(), positions.rank);
    for (std::int64_t j = t.thread(); j < n; j += t.threads()) {
      float sum = 0;
      for (std::int64_t r = first; r < m; r += local) {
        float value[1] = {widen(dy[r * n + j])};
        keep(r, j, value);
        sum += value[0];
      }
      dtable[row * n + j] += sum;
    }
  }
};

/// y += x.
template <class T, int W>
struct Add {
  const T* x;
  T* y;
  std::int64_t elements;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= elements) return;
    float a[W], b[W];
    load<W>(x + i, a);
    load<W>(y + i, b);
    for (int k = 0; k < W; ++k) b[k] += a[k];
    store<W>(y + i, b);
  }
};

/// Gradients to 16 bits for the wire, and back.
struct Compress {
  const float* gradients;
  std::uint16_t* wire;
  std::int64_t elements;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i < elements) wire[i] = fp16_bits(gradients[i]);
  }
};

struct Decompress {
  const std::uint16_t* wire;
  float* gradients;
  std::int64_t elements;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i < elements) gradients[i] = float_of_fp16_bits(wire[i]);
  }
};

/// y = skip + x + bias + second; biases may be absent.
template <class T, int W>
struct BiasResidual {
  static constexpr int kBlocksAtOnce = 8;
  const T* x;
  const T* bias;
  const T* skip;
  const T* second;
  T* y;
  std::int64_t m, n;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = (t.block() * t.threads() + t.thread()) * W;
    if (i >= m * n) return;
    float sum[W], other[W];
    load<W>(x + i, sum);
    load<W>(skip + i, other);
    for (int k = 0; k < W; ++k) sum[k] += other[k];
    for (int which = 0; which < 2; ++which) {
      const T* row = which == 0 ? bias : second;
      if (row == nullptr) continue;
      load<W>(row + column_of(i, n), other);
      for (int k = 0; k < W; ++k) sum[k] += other[k];
    }
    store<W>(y + i, sum);
  }
};

/// What columns are summed of: x itself. A source fetches its packs of some rows, kAhead of them, before it gives the
/// first of their values; what all rows of a column have in common it brings before. kBlocks: that
/// run at once on a multiprocessor.
template <class T>
struct Values {
  static constexpr int kAhead = 4, kBlocks = 4;
  const T* x;
  std::int64_t n;
  template <int W>
  TRIVIUM_DEVICE Nothing common(std::int64_t) const {
    return {};
  }
  template <int W>
  TRIVIUM_DEVICE Raw<T, W> fetch(std::int64_t r, std::int64_t c) const {
    return hold<W>(x + r * n + c);
  }
  template <int W>
  TRIVIUM_DEVICE void finish(const Raw<T, W>& held, Nothing, std::int64_t, std::int64_t, float (&to)[W]) const {
    held.widen_to(to);
  }
};

/// Or, of a norm, the gradients of its weight, dy (x - mean) / sigma, and of its bias, dy.
template <class T>
struct NormedProducts {
  const T* x;
  const T* dy;
  const float* stats;
  std::int64_t n;
  template <int W>
  TRIVIUM_DEVICE void load_at(std::int64_t r, std::int64_t c, float (&to)[W], float (&second)[W]) const {
    load<W>(x + r * n + c, to);
    load<W>(dy + r * n + c, second);
    const float mean = stats[2 * r], inverse = stats[2 * r + 1];
    for (int i = 0; i < W; ++i) to[i] = second[i] * ((to[i] - mean) * inverse);
  }
};

/// partial (chunk, c) = sum over the chunk's rows. A block is 32 packs of columns and eight rows at once.
template <class Source, int W>
struct ColumnPartials {
  static constexpr int kRows = 8, kThreads = kWarp * kRows, kBlocksAtOnce = Source::kBlocks;
  Source source;
  float* partial;
  std::int64_t m, n, chunks;
  static int shared_bytes() { return kThreads * W * 4; }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const std::int64_t across = (n + kWarp * W - 1) / (kWarp * W);
    const std::int64_t chunk = t.block() / across, column = (t.block() % across * kWarp + t.thread() % kWarp) * W;
    float sum[W] = {};
    if (column < n) {
      const std::int64_t end = m * (chunk + 1) / chunks;
      add_rows(m * chunk / chunks + t.thread() / kWarp, end, column, sum);
    }
    for (int i = 0; i < W; ++i) room[t.thread() * W + i] = sum[i];
    t.sync();
    if (t.thread() >= kWarp || column >= n) return;
    for (int row = 1; row < kRows; ++row) {
      for (int i = 0; i < W; ++i) sum[i] += room[(row * kWarp + t.thread()) * W + i];
    }
    for (int i = 0; i < W; ++i) partial[chunk * n + column + i] = sum[i];
  }

 private:
  using Fetch = decltype(std::declval<Source>().template fetch<W>(0, 0));

  /// Rows r, r + kRows, … before `end`, by groups, each of which is fetched before the one before it is added.
  TRIVIUM_DEVICE void add_rows(std::int64_t r, std::int64_t end, std::int64_t column, float (&sum)[W]) const {
    constexpr int kGroup = Source::kAhead * kRows;
    const auto common = source.template common<W>(column);
    const std::int64_t last = end - (kGroup - kRows);  // a group that begins before it is whole
    Fetch group[Source::kAhead], next[Source::kAhead];
    if (r < last) fetch(r, column, next);
    while (r < last) {
      TRIVIUM_UNROLL
      for (int k = 0; k < Source::kAhead; ++k) group[k] = next[k];
      fetch(r + kGroup < last ? r + kGroup : r, column, next);
      add(group, r, column, common, sum);
      r += kGroup;
    }
    for (; r < end; r += kRows) {
      const Fetch one[1] = {source.template fetch<W>(r, column)};
      add(one, r, column, common, sum);
    }
  }
  TRIVIUM_DEVICE void fetch(std::int64_t r, std::int64_t column, Fetch (&to)[Source::kAhead]) const {
    TRIVIUM_UNROLL
    for (int k = 0; k < Source::kAhead; ++k) to[k] = source.template fetch<W>(r + k * kRows, column);
  }
  template <int K, class Common>
  TRIVIUM_DEVICE void add(const Fetch (&group)[K], std::int64_t r, std::int64_t column, const Common& common,
                          float (&sum)[W]) const {
    TRIVIUM_UNROLL
    for (int k = 0; k < K; ++k) {
      float value[W];
      source.template finish<W>(group[k], common, r + k * kRows, column, value);
      for (int i = 0; i < W; ++i) sum[i] += value[i];
    }
  }
};

/// Likewise of a source that gives two of each column: partial (chunk, 2, c).
template <class Source, int W>
struct ColumnPairPartials {
  static constexpr int kRows = 8, kThreads = kWarp * kRows;
  Source source;
  float* partial;
  std::int64_t m, n, chunks;
  static int shared_bytes() { return kThreads * W * 2 * 4; }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const std::int64_t across = (n + kWarp * W - 1) / (kWarp * W);
    const std::int64_t chunk = t.block() / across, column = (t.block() % across * kWarp + t.thread() % kWarp) * W;
    float sums[2][W] = {};
    if (column < n) {
      for (std::int64_t r = m * chunk / chunks + t.thread() / kWarp; r < m * (chunk + 1) / chunks; r += kRows) {
        float value[2][W];
        source.template load_at<W>(r, column, value[0], value[1]);
        for (int i = 0; i < W; ++i) sums[0][i] += value[0][i], sums[1][i] += value[1][i];
      }
    }
    for (int i = 0; i < 2 * W; ++i) room[t.thread() * 2 * W + i] = sums[i / W][i % W];
    t.sync();
    if (t.thread() >= kWarp || column >= n) return;
    for (int row = 1; row < kRows; ++row) {
      for (int i = 0; i < 2 * W; ++i) sums[i / W][i % W] += room[(row * kWarp + t.thread()) * 2 * W + i];
    }
    for (int i = 0; i < 2 * W; ++i) partial[(chunk * 2 + i / W) * n + column + i % W] = sums[i / W][i % W];
  }
};

/// total (n) += partial (chunks, n), and the same for another total if there is one; of pairs (chunks, 2, n) the second
/// total has sums of its own. A block is eight columns, of which 32 threads share the chunks.
struct ColumnTotals {
  static constexpr int kColumns = 8, kParts = 32, kThreads = kColumns * kParts, kAhead = 8;
  const float* partial;
  float* total;
  float* second;
  std::int64_t n, chunks;
  bool pairs;
  static int shared_bytes() { return kThreads / kWarp * kColumns * 4; }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const std::int64_t columns = pairs ? 2 * n : n, c = t.block() * kColumns + t.thread() % kColumns;
    float sum = 0;
    for (std::int64_t chunk = t.thread() / kColumns; chunk < chunks; chunk += kAhead * kParts) {
      float part[kAhead] = {};
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (c < columns && chunk + k * kParts < chunks) part[k] = partial[(chunk + k * kParts) * columns + c];
      }
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) sum += part[k];
    }
    for (int mask = kWarp / 2; mask >= kColumns; mask /= 2) sum += t.shuffle_xor(sum, mask);
    if (t.thread() % kWarp < kColumns) room[t.thread() / kWarp * kColumns + t.thread() % kWarp] = sum;
    t.sync();
    if (t.thread() >= kColumns || c >= columns) return;
    for (int warp = 1; warp < kThreads / kWarp; ++warp) sum += room[warp * kColumns + t.thread()];
    if (c < n && total != nullptr) total[c] += sum;
    if (second != nullptr && (!pairs || c >= n)) second[pairs ? c - n : c] += sum;
  }
};

}  // namespace trivium::runtime::cuda
