// Fused causal attention in 16 bits (T) for head dimensions D = 64 and 128, forward and backward (Dao 2023, arXiv
// 2307.08691, algorithms 1 and 2), with grouped key heads. Products run on tensor cores; probabilities never leave the
// registers: the accumulator of one product has the layout that the next one reads its first operand in. A block is
// four warps; a warp owns 16 rows of its block's tile. The backward is two kernels, one over tiles of keys and one over
// tiles of queries, so that nothing is added atomically and results are the same every time.
#pragma once

#include "runtime/cuda/kernels/dropping.h"
#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

constexpr int kTile = 64, kFlashThreads = 128;
constexpr float kLog2e = 1.4426950408889634F, kLn2 = 0.6931471805599453F;

/// qkv is (T, q|k|v), y and dy (T, heads, D), L and D_i (T, heads).
struct FlashShape {
  std::int64_t sequence;
  int heads, kv_heads;
  float scale;
  Dropout dropout;
  TRIVIUM_DEVICE std::int64_t tiles() const { return (sequence + kTile - 1) / kTile; }
};

/// Rows of a tile in shared memory lie 16 bytes more than their length apart: eight of them touch all banks once.
template <int D>
constexpr int kPitch = D + 8;

/// Rows [0, rows) of `from`, `stride` elements apart; those from `valid` on become 0.
template <int D, class T, class Thread>
TRIVIUM_DEVICE void load_tile(Thread& t, T* to, const T* from, std::int64_t stride, int rows, std::int64_t valid) {
  constexpr int kEach = 8, kAcross = D / kEach;
  for (int i = t.thread(); i < rows * kAcross; i += t.threads()) {
    const int row = i / kAcross, column = i % kAcross * kEach;
    Pack<T, kEach> pack = {};
    if (row < valid) pack = *reinterpret_cast<const Pack<T, kEach>*>(from + row * stride + column);
    *reinterpret_cast<Pack<T, kEach>*>(to + row * kPitch<D> + column) = pack;
  }
}

/// c (16, N) += A (16, D) B (N, D)^T, A being rows [row, row + 16) of its tile.
template <int D, int N, class T, class Thread>
TRIVIUM_DEVICE void multiply_rows(Thread& t, float (&c)[N / 8][4], const T* a, int row, const T* b) {
  const int lane = t.thread() % kWarp, part = lane / 8, line = lane % 8;
  TRIVIUM_UNROLL
  for (int k = 0; k < D; k += 16) {
    std::uint32_t left[4];
    t.matrix(a + (row + part % 2 * 8 + line) * kPitch<D> + k + part / 2 * 8, left);
    TRIVIUM_UNROLL
    for (int n = 0; n < N; n += 16) {
      std::uint32_t right[4];
      t.matrix(b + (n + part / 2 * 8 + line) * kPitch<D> + k + part % 2 * 8, right);
      t.multiply(c[n / 8], left, right[0], right[1], T{});
      t.multiply(c[n / 8 + 1], left, right[2], right[3], T{});
    }
  }
}

/// c (16, D) += P (16, N) B (N, D), P in the registers of an accumulator.
template <int D, int N, class T, class Thread>
TRIVIUM_DEVICE void multiply_columns(Thread& t, float (&c)[D / 8][4], const float (&p)[N / 8][4], const T* b) {
  const int lane = t.thread() % kWarp, part = lane / 8, line = lane % 8;
  TRIVIUM_UNROLL
  for (int n = 0; n < N; n += 16) {
    const std::uint32_t left[4] = {pair_of<T>(p[n / 8][0], p[n / 8][1]), pair_of<T>(p[n / 8][2], p[n / 8][3]),
                                   pair_of<T>(p[n / 8 + 1][0], p[n / 8 + 1][1]),
                                   pair_of<T>(p[n / 8 + 1][2], p[n / 8 + 1][3])};
    TRIVIUM_UNROLL
    for (int d = 0; d < D; d += 16) {
      std::uint32_t right[4];
      t.matrix_transposed(b + (n + part % 2 * 8 + line) * kPitch<D> + d + part / 2 * 8, right);
      t.multiply(c[d / 8], left, right[0], right[1], T{});
      t.multiply(c[d / 8 + 1], left, right[2], right[3], T{});
    }
  }
}

/// An accumulator (16, D) as bf16 rows, of which the first `valid` exist. Factors are those of the thread's two rows.
template <int D, class T, class Thread>
TRIVIUM_DEVICE void store_rows(Thread& t, T* to, std::int64_t stride, const float (&c)[D / 8][4],
                               const float (&factor)[2], std::int64_t valid) {
  const int lane = t.thread() % kWarp;
  TRIVIUM_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    if (row >= valid) continue;
    TRIVIUM_UNROLL
    for (int d = 0; d < D / 8; ++d) {
      *reinterpret_cast<std::uint32_t*>(to + row * stride + d * 8 + lane % 4 * 2) =
          pair_of<T>(c[d][2 * half] * factor[half], c[d][2 * half + 1] * factor[half]);
    }
  }
}

template <int N>
TRIVIUM_DEVICE void clear(float (&c)[N][4]) {
  TRIVIUM_UNROLL
  for (int n = 0; n < N; ++n) {
    TRIVIUM_UNROLL
    for (int i = 0; i < 4; ++i) c[n][i] = 0;
  }
}

/// c (16, N) times what dropout leaves: rows are queries from position `query` on, columns keys from `key` on. The two
/// neighbours that a thread holds of a row share a draw.
template <int N>
TRIVIUM_DEVICE void drop_rows(const Dropout& d, std::int64_t head, std::int64_t sample, std::int64_t query,
                              std::int64_t key, int lane, float (&c)[N / 8][4]) {
  TRIVIUM_UNROLL
  for (int n = 0; n < N / 8; ++n) {
    const std::int64_t column = key + n * 8 + lane % 4 * 2;
    TRIVIUM_UNROLL
    for (int half = 0; half < 2; ++half) {
      const PhiloxWords words = dropout_words(d, head, sample, query + lane / 4 + half * 8, column / 4);
      c[n][2 * half] *= kept_factor(d, words, column);
      c[n][2 * half + 1] *= kept_factor(d, words, column + 1);
    }
  }
}

/// Blocks over (tile, sample, head), the longest rows first. kDrops, here and below: whether there is dropout.
template <class T, int D, bool kDrops>
struct FlashForward {
  const T* qkv;
  T* y;
  float* log_sums;
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  static int shared_bytes() { return 3 * kTile * kPitch<D> * 2; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* q_tile = reinterpret_cast<T*>(t.shared());
    T* k_tile = q_tile + kTile * kPitch<D>;
    T* v_tile = k_tile + kTile * kPitch<D>;
    const std::int64_t tile = s.tiles() - 1 - t.block() / lines, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.sequence;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * D, row0 = tile * kTile;
    const T* keys = qkv + token * width + (s.heads + head * s.kv_heads / s.heads) * D;
    const T* values = keys + s.kv_heads * D;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    load_tile<D>(t, q_tile, qkv + (token + row0) * width + head * D, width, kTile, s.sequence - row0);

    const float factor = s.scale * kLog2e;
    float sum[D / 8][4], most[2] = {kLowest, kLowest}, total[2] = {0, 0};
    clear(sum);
    for (std::int64_t at = 0; at <= tile; ++at) {
      t.sync();
      load_tile<D>(t, k_tile, keys + at * kTile * width, width, kTile, s.sequence - at * kTile);
      load_tile<D>(t, v_tile, values + at * kTile * width, width, kTile, s.sequence - at * kTile);
      t.sync();
      float p[kTile / 8][4];
      clear(p);
      multiply_rows<D, kTile>(t, p, q_tile, warp_row, k_tile);
      if (at == tile) {
        TRIVIUM_UNROLL
        for (int n = 0; n < kTile / 8; ++n) {
          TRIVIUM_UNROLL
          for (int i = 0; i < 4; ++i) {
            if (n * 8 + lane % 4 * 2 + i % 2 > warp_row + lane / 4 + i / 2 * 8) p[n][i] = kLowest;
          }
        }
      }
      TRIVIUM_UNROLL
      for (int half = 0; half < 2; ++half) {
        float highest = most[half];
        TRIVIUM_UNROLL
        for (int n = 0; n < kTile / 8; ++n) {
          highest = Largest()(highest, Largest()(p[n][2 * half], p[n][2 * half + 1]));
        }
        highest = Largest()(highest, t.shuffle_xor(highest, 1));
        highest = Largest()(highest, t.shuffle_xor(highest, 2));
        const float fade = exp2_of((most[half] - highest) * factor);
        most[half] = highest;
        total[half] *= fade;
        TRIVIUM_UNROLL
        for (int n = 0; n < kTile / 8; ++n) {
          TRIVIUM_UNROLL
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            p[n][i] = exp2_of((p[n][i] - highest) * factor);
            total[half] += p[n][i];
          }
        }
        TRIVIUM_UNROLL
        for (int d = 0; d < D / 8; ++d) {
          sum[d][2 * half] *= fade;
          sum[d][2 * half + 1] *= fade;
        }
      }
      if constexpr (kDrops) {
        drop_rows<kTile>(s.dropout, head, line / s.heads, row0 + warp_row, at * kTile, lane, p);
      }
      multiply_columns<D, kTile>(t, sum, p, v_tile);
    }
    float inverse[2];
    const std::int64_t valid = s.sequence - row0 - warp_row;
    TRIVIUM_UNROLL
    for (int half = 0; half < 2; ++half) {
      total[half] += t.shuffle_xor(total[half], 1);
      total[half] += t.shuffle_xor(total[half], 2);
      inverse[half] = 1.0F / total[half];
      const int row = lane / 4 + 8 * half;
      if (lane % 4 == 0 && row < valid) {
        log_sums[(token + row0 + warp_row + row) * s.heads + head] = most[half] * s.scale + log_of(total[half]);
      }
    }
    store_rows<D>(t, y + ((token + row0 + warp_row) * s.heads + head) * D, s.heads * D, sum, inverse, valid);
  }
};

/// dk and dv: blocks over (tile of keys, sample, key head). Rows of the products are keys, columns are queries.
template <class T, int D, bool kDrops>
struct FlashBackwardKeys {
  static constexpr int kQueries = D == 64 ? 64 : 32;  ///< at once: what the registers hold
  const T* qkv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dqkv;
  FlashShape s;
  std::int64_t lines;  ///< samples * kv_heads
  static int shared_bytes() { return 2 * (kTile + kQueries) * kPitch<D> * 2 + 2 * kQueries * 4; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* k_tile = reinterpret_cast<T*>(t.shared());
    T* v_tile = k_tile + kTile * kPitch<D>;
    T* q_tile = v_tile + kTile * kPitch<D>;
    T* dy_tile = q_tile + kQueries * kPitch<D>;
    auto* row_sums = reinterpret_cast<float*>(dy_tile + kQueries * kPitch<D>);
    float* row_dots = row_sums + kQueries;
    const std::int64_t tile = t.block() / lines, line = t.block() % lines;
    const std::int64_t kv_head = line % s.kv_heads, token = line / s.kv_heads * s.sequence, row0 = tile * kTile;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * D, group = s.heads / s.kv_heads;
    const std::int64_t key_at = (token + row0) * width + (s.heads + kv_head) * D, value_at = key_at + s.kv_heads * D;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    load_tile<D>(t, k_tile, qkv + key_at, width, kTile, s.sequence - row0);
    load_tile<D>(t, v_tile, qkv + value_at, width, kTile, s.sequence - row0);

    const float factor = s.scale * kLog2e;
    float dk[D / 8][4], dv[D / 8][4];
    clear(dk);
    clear(dv);
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t first = row0; first < s.sequence; first += kQueries) {
        const std::int64_t left = s.sequence - first, row = token + first;
        t.sync();
        load_tile<D>(t, q_tile, qkv + row * width + head * D, width, kQueries, left);
        load_tile<D>(t, dy_tile, dy + (row * s.heads + head) * D, s.heads * D, kQueries, left);
        for (int i = t.thread(); i < kQueries && i < left; i += t.threads()) {
          row_sums[i] = log_sums[(row + i) * s.heads + head];
          row_dots[i] = dots[(row + i) * s.heads + head];
        }
        t.sync();
        float p[kQueries / 8][4], ds[kQueries / 8][4];
        clear(p);
        multiply_rows<D, kQueries>(t, p, k_tile, warp_row, q_tile);
        TRIVIUM_UNROLL
        for (int n = 0; n < kQueries / 8; ++n) {
          TRIVIUM_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int query = n * 8 + lane % 4 * 2 + i % 2;
            const bool seen = row0 + warp_row + lane / 4 + i / 2 * 8 <= first + query && query < left;
            p[n][i] = seen ? exp2_of(p[n][i] * factor - row_sums[query] * kLog2e) : 0.0F;
          }
        }
        if constexpr (!kDrops) multiply_columns<D, kQueries>(t, dv, p, dy_tile);
        clear(ds);
        multiply_rows<D, kQueries>(t, ds, v_tile, warp_row, dy_tile);
        TRIVIUM_UNROLL
        for (int n = 0; n < kQueries / 8; ++n) {
          TRIVIUM_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int query = n * 8 + lane % 4 * 2 + i % 2;
            const float probability = p[n][i];
            if constexpr (kDrops) {
              const std::int64_t key = row0 + warp_row + lane / 4 + i / 2 * 8;
              const float by = score_factor(s.dropout, head, line / s.kv_heads, first + query, key);
              ds[n][i] *= by;
              p[n][i] *= by;
            }
            ds[n][i] = query < left ? probability * (ds[n][i] - row_dots[query]) : 0.0F;
          }
        }
        if constexpr (kDrops) multiply_columns<D, kQueries>(t, dv, p, dy_tile);
        multiply_columns<D, kQueries>(t, dk, ds, q_tile);
      }
    }
    const std::int64_t valid = s.sequence - row0 - warp_row;
    const float scales[2] = {s.scale, s.scale}, ones[2] = {1, 1};
    store_rows<D>(t, dqkv + key_at + warp_row * width, width, dk, scales, valid);
    store_rows<D>(t, dqkv + value_at + warp_row * width, width, dv, ones, valid);
  }
};

/// dq: blocks over (tile of queries, sample, head), the longest rows first.
template <class T, int D, bool kDrops>
struct FlashBackwardQueries {
  const T* qkv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dqkv;
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  static int shared_bytes() { return 4 * kTile * kPitch<D> * 2; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* q_tile = reinterpret_cast<T*>(t.shared());
    T* dy_tile = q_tile + kTile * kPitch<D>;
    T* k_tile = dy_tile + kTile * kPitch<D>;
    T* v_tile = k_tile + kTile * kPitch<D>;
    const std::int64_t tile = s.tiles() - 1 - t.block() / lines, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.sequence, row0 = tile * kTile;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * D;
    const T* keys = qkv + token * width + (s.heads + head * s.kv_heads / s.heads) * D;
    const T* values = keys + s.kv_heads * D;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    load_tile<D>(t, q_tile, qkv + (token + row0) * width + head * D, width, kTile, s.sequence - row0);
    load_tile<D>(t, dy_tile, dy + ((token + row0) * s.heads + head) * D, s.heads * D, kTile, s.sequence - row0);

    const float factor = s.scale * kLog2e;
    const std::int64_t valid = s.sequence - row0 - warp_row;
    float log_sum[2] = {0, 0}, dot[2] = {0, 0}, dq[D / 8][4];
    TRIVIUM_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      if (row >= valid) continue;
      log_sum[half] = log_sums[(token + row0 + warp_row + row) * s.heads + head] * kLog2e;
      dot[half] = dots[(token + row0 + warp_row + row) * s.heads + head];
    }
    clear(dq);
    for (std::int64_t at = 0; at <= tile; ++at) {
      t.sync();
      load_tile<D>(t, k_tile, keys + at * kTile * width, width, kTile, s.sequence - at * kTile);
      load_tile<D>(t, v_tile, values + at * kTile * width, width, kTile, s.sequence - at * kTile);
      t.sync();
      float p[kTile / 8][4], ds[kTile / 8][4];
      clear(p);
      clear(ds);
      multiply_rows<D, kTile>(t, p, q_tile, warp_row, k_tile);
      multiply_rows<D, kTile>(t, ds, dy_tile, warp_row, v_tile);
      if constexpr (kDrops) {
        drop_rows<kTile>(s.dropout, head, line / s.heads, row0 + warp_row, at * kTile, lane, ds);
      }
      TRIVIUM_UNROLL
      for (int n = 0; n < kTile / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          const bool seen = at < tile || n * 8 + lane % 4 * 2 + i % 2 <= warp_row + lane / 4 + i / 2 * 8;
          const float probability = seen ? exp2_of(p[n][i] * factor - log_sum[i / 2]) : 0.0F;
          ds[n][i] = probability * (ds[n][i] - dot[i / 2]);
        }
      }
      multiply_columns<D, kTile>(t, dq, ds, k_tile);
    }
    const float scales[2] = {s.scale, s.scale};
    store_rows<D>(t, dqkv + (token + row0 + warp_row) * width + head * D, width, dq, scales, valid);
  }
};

}  // namespace trivium::runtime::cuda
