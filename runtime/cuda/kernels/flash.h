// Fused causal attention in 16 bits (T) for head dimensions D = 64 and 128, forward and backward (Dao 2023, arXiv
// 2307.08691, algorithms 1 and 2), with grouped key heads. Products run on tensor cores; probabilities never leave the
// registers: the accumulator of one product has the layout that the next one reads its first operand in. A block is
// four warps; a warp owns 16 or 32 rows of its block's tile, held in registers for all products with the tiles that
// pass by, of which the next is on its way while one is worked on. The backward is two kernels, one over tiles of keys
// and one over tiles of queries, so that nothing is added atomically and results are the same every time.
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

/// Rows [0, rows) of `from`, `stride` elements apart, on their way into shared memory; those from `valid` on become 0.
template <int D, class T, class Thread>
TRIVIUM_DEVICE void load_ahead(Thread& t, T* to, const T* from, std::int64_t stride, int rows, std::int64_t valid) {
  constexpr int kEach = 8, kAcross = D / kEach;
  for (int i = t.thread(); i < rows * kAcross; i += t.threads()) {
    const int row = i / kAcross, column = i % kAcross * kEach;
    const bool is_there = row < valid;
    t.copy_ahead(to + row * kPitch<D> + column, is_there ? from + row * stride + column : from, is_there);
  }
}

/// First operands of products, 16 rows of D elements each, as the threads of a warp hold them.
template <int D>
struct Held {
  std::uint32_t of[D / 16][4];
};

/// Rows [row, row + 16) of a tile.
template <int D, class T, class Thread>
TRIVIUM_DEVICE void hold_rows(Thread& t, Held<D>& held, const T* tile, int row) {
  const int lane = t.thread() % kWarp, part = lane / 8, line = lane % 8;
  TRIVIUM_UNROLL
  for (int k = 0; k < D / 16; ++k) {
    t.matrix(tile + (row + part % 2 * 8 + line) * kPitch<D> + k * 16 + part / 2 * 8, held.of[k]);
  }
}

/// c (M times 16, N) += A (M times 16, D) B (N, D)^T: what is read of B serves all M.
template <int D, int N, int M, class T, class Thread>
TRIVIUM_DEVICE void multiply_rows(Thread& t, float (&c)[M][N / 8][4], const Held<D> (&a)[M], const T* b) {
  const int lane = t.thread() % kWarp, part = lane / 8, line = lane % 8;
  TRIVIUM_UNROLL
  for (int k = 0; k < D / 16; ++k) {
    TRIVIUM_UNROLL
    for (int n = 0; n < N; n += 16) {
      std::uint32_t right[4];
      t.matrix(b + (n + part / 2 * 8 + line) * kPitch<D> + k * 16 + part % 2 * 8, right);
      TRIVIUM_UNROLL
      for (int m = 0; m < M; ++m) {
        t.multiply(c[m][n / 8], a[m].of[k], right[0], right[1], T{});
        t.multiply(c[m][n / 8 + 1], a[m].of[k], right[2], right[3], T{});
      }
    }
  }
}

/// c (M times 16, D) += P (M times 16, N) B (N, D), P in the registers of accumulators.
template <int D, int N, int M, class T, class Thread>
TRIVIUM_DEVICE void multiply_columns(Thread& t, float (&c)[M][D / 8][4], const float (&p)[M][N / 8][4], const T* b) {
  const int lane = t.thread() % kWarp, part = lane / 8, line = lane % 8;
  TRIVIUM_UNROLL
  for (int n = 0; n < N; n += 16) {
    std::uint32_t left[M][4];
    TRIVIUM_UNROLL
    for (int m = 0; m < M; ++m) {
      TRIVIUM_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float(&from)[4] = p[m][n / 8 + i / 2];
        left[m][i] = pair_of<T>(from[i % 2 * 2], from[i % 2 * 2 + 1]);
      }
    }
    TRIVIUM_UNROLL
    for (int d = 0; d < D; d += 16) {
      std::uint32_t right[4];
      t.matrix_transposed(b + (n + part % 2 * 8 + line) * kPitch<D> + d + part / 2 * 8, right);
      TRIVIUM_UNROLL
      for (int m = 0; m < M; ++m) {
        t.multiply(c[m][d / 8], left[m], right[0], right[1], T{});
        t.multiply(c[m][d / 8 + 1], left[m], right[2], right[3], T{});
      }
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

template <int M, int N>
TRIVIUM_DEVICE void clear(float (&c)[M][N][4]) {
  TRIVIUM_UNROLL
  for (int m = 0; m < M; ++m) {
    TRIVIUM_UNROLL
    for (int n = 0; n < N; ++n) {
      TRIVIUM_UNROLL
      for (int i = 0; i < 4; ++i) c[m][n][i] = 0;
    }
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

/// Blocks over (tile of queries, sample, head), the longest rows first. kDrops, here and below: whether there is
/// dropout.
template <class T, int D, bool kDrops>
struct FlashForward {
  static constexpr int kSteps = D == 64 ? 2 : 1;  ///< times 16 rows of a warp: what the registers hold
  static constexpr int kWarpRows = 16 * kSteps, kQueries = kWarpRows * kFlashThreads / kWarp;
  const T* qkv;
  T* y;
  float* log_sums;
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  static int shared_bytes() { return 4 * kTile * kPitch<D> * 2; }
  static std::int64_t tiles(std::int64_t sequence) { return (sequence + kQueries - 1) / kQueries; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    constexpr int kStage = 2 * kTile * kPitch<D>;  // a tile of keys, one of values; before the first, the queries
    auto* const stages = reinterpret_cast<T*>(t.shared());
    const std::int64_t tile = (s.sequence + kQueries - 1) / kQueries - 1 - t.block() / lines, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.sequence;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * D, row0 = tile * kQueries;
    const T* keys = qkv + token * width + (s.heads + head * s.kv_heads / s.heads) * D;
    const T* values = keys + s.kv_heads * D;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * kWarpRows;
    const auto load_stage = [&](std::int64_t at) {
      T* const stage = stages + (at & 1) * kStage;
      load_ahead<D>(t, stage, keys + at * kTile * width, width, kTile, s.sequence - at * kTile);
      load_ahead<D>(t, stage + kTile * kPitch<D>, values + at * kTile * width, width, kTile, s.sequence - at * kTile);
    };
    load_stage(0);
    load_ahead<D>(t, stages + kStage, qkv + (token + row0) * width + head * D, width, kQueries, s.sequence - row0);
    t.await_copies();
    t.sync();
    Held<D> queries[kSteps];
    TRIVIUM_UNROLL
    for (int m = 0; m < kSteps; ++m) hold_rows(t, queries[m], stages + kStage, warp_row + 16 * m);

    const float factor = s.scale * kLog2e;
    float sum[kSteps][D / 8][4], most[kSteps][2], total[kSteps][2];
    clear(sum);
    TRIVIUM_UNROLL
    for (int m = 0; m < kSteps; ++m) most[m][0] = most[m][1] = kLowest, total[m][0] = total[m][1] = 0;
    const std::int64_t last_query = row0 + kQueries < s.sequence ? row0 + kQueries - 1 : s.sequence - 1;
    for (std::int64_t at = 0; at <= last_query / kTile; ++at) {
      t.await_copies();
      t.sync();  // and all are done with the other stage
      if (at < last_query / kTile) load_stage(at + 1);
      const std::int64_t key0 = at * kTile, warp_row0 = row0 + warp_row;
      if (key0 >= warp_row0 + kWarpRows) continue;  // all of it comes after this warp's rows
      const T* const stage = stages + (at & 1) * kStage;
      float p[kSteps][kTile / 8][4];
      clear(p);
      multiply_rows<D, kTile>(t, p, queries, stage);
      if (key0 + kTile > warp_row0 + 1) {
        TRIVIUM_UNROLL
        for (int m = 0; m < kSteps; ++m) {
          TRIVIUM_UNROLL
          for (int n = 0; n < kTile / 8; ++n) {
            TRIVIUM_UNROLL
            for (int i = 0; i < 4; ++i) {
              const std::int64_t row = warp_row0 + 16 * m + lane / 4 + i / 2 * 8;
              if (key0 + n * 8 + lane % 4 * 2 + i % 2 > row) p[m][n][i] = kLowest;
            }
          }
        }
      }
      TRIVIUM_UNROLL
      for (int m = 0; m < kSteps; ++m) {
        TRIVIUM_UNROLL
        for (int half = 0; half < 2; ++half) {
          float highest = most[m][half];
          TRIVIUM_UNROLL
          for (int n = 0; n < kTile / 8; ++n) {
            highest = Largest()(highest, Largest()(p[m][n][2 * half], p[m][n][2 * half + 1]));
          }
          highest = Largest()(highest, t.shuffle_xor(highest, 1));
          highest = Largest()(highest, t.shuffle_xor(highest, 2));
          const float fade = exp2_of((most[m][half] - highest) * factor);
          most[m][half] = highest;
          total[m][half] *= fade;
          const float offset = highest * factor;
          TRIVIUM_UNROLL
          for (int n = 0; n < kTile / 8; ++n) {
            TRIVIUM_UNROLL
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
              p[m][n][i] = exp2_of(p[m][n][i] * factor - offset);
              total[m][half] += p[m][n][i];
            }
          }
          TRIVIUM_UNROLL
          for (int d = 0; d < D / 8; ++d) {
            sum[m][d][2 * half] *= fade;
            sum[m][d][2 * half + 1] *= fade;
          }
        }
        if constexpr (kDrops) {
          drop_rows<kTile>(s.dropout, head, line / s.heads, warp_row0 + 16 * m, key0, lane, p[m]);
        }
      }
      multiply_columns<D, kTile>(t, sum, p, stage + kTile * kPitch<D>);
    }
    TRIVIUM_UNROLL
    for (int m = 0; m < kSteps; ++m) {
      const std::int64_t row0_of_m = row0 + warp_row + 16 * m, valid = s.sequence - row0_of_m;
      float inverse[2];
      TRIVIUM_UNROLL
      for (int half = 0; half < 2; ++half) {
        total[m][half] += t.shuffle_xor(total[m][half], 1);
        total[m][half] += t.shuffle_xor(total[m][half], 2);
        inverse[half] = 1.0F / total[m][half];
        const int row = lane / 4 + 8 * half;
        if (lane % 4 == 0 && row < valid) {
          log_sums[(token + row0_of_m + row) * s.heads + head] = most[m][half] * s.scale + log_of(total[m][half]);
        }
      }
      store_rows<D>(t, y + ((token + row0_of_m) * s.heads + head) * D, s.heads * D, sum[m], inverse, valid);
    }
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
  /// Two stages: a tile of queries, one of dy, their rows' L and D_i. Before the first, the second holds keys and values.
  static constexpr int kStage = 2 * kQueries * kPitch<D> * 2 + 2 * kQueries * 4;
  static int shared_bytes() { return kStage + (kStage > 2 * kTile * kPitch<D> * 2 ? kStage : 2 * kTile * kPitch<D> * 2); }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const shared = reinterpret_cast<unsigned char*>(t.shared());
    const std::int64_t tile = t.block() / lines, line = t.block() % lines;
    const std::int64_t kv_head = line % s.kv_heads, token = line / s.kv_heads * s.sequence, row0 = tile * kTile;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * D, group = s.heads / s.kv_heads;
    const std::int64_t key_at = (token + row0) * width + (s.heads + kv_head) * D, value_at = key_at + s.kv_heads * D;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    // Passes over the queries from this tile's first row on, head by head of the group.
    const std::int64_t each = (s.sequence - row0 + kQueries - 1) / kQueries;
    const auto load_stage = [&](std::int64_t pass) {
      const std::int64_t head = kv_head * group + pass / each, first = row0 + pass % each * kQueries;
      const std::int64_t left = s.sequence - first, row = token + first;
      auto* const q_tile = reinterpret_cast<T*>(shared + (pass & 1) * kStage);
      T* const dy_tile = q_tile + kQueries * kPitch<D>;
      auto* const rows = reinterpret_cast<float*>(dy_tile + kQueries * kPitch<D>);
      load_ahead<D>(t, q_tile, qkv + row * width + head * D, width, kQueries, left);
      load_ahead<D>(t, dy_tile, dy + (row * s.heads + head) * D, s.heads * D, kQueries, left);
      for (int i = t.thread(); i < kQueries && i < left; i += t.threads()) {
        rows[i] = log_sums[(row + i) * s.heads + head] * kLog2e;
        rows[kQueries + i] = dots[(row + i) * s.heads + head];
      }
    };
    auto* const k_tile = reinterpret_cast<T*>(shared + kStage);
    T* const v_tile = k_tile + kTile * kPitch<D>;
    load_ahead<D>(t, k_tile, qkv + key_at, width, kTile, s.sequence - row0);
    load_ahead<D>(t, v_tile, qkv + value_at, width, kTile, s.sequence - row0);
    load_stage(0);
    t.await_copies();
    t.sync();
    Held<D> keys[1], values[1];
    hold_rows(t, keys[0], k_tile, warp_row);
    hold_rows(t, values[0], v_tile, warp_row);

    const float factor = s.scale * kLog2e;
    float dk[1][D / 8][4], dv[1][D / 8][4];
    clear(dk);
    clear(dv);
    const std::int64_t passes = group * each;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      t.await_copies();
      t.sync();  // and all are done with the other stage
      if (pass + 1 < passes) load_stage(pass + 1);
      const std::int64_t first = row0 + pass % each * kQueries, left = s.sequence - first;
      const auto* const q_tile = reinterpret_cast<const T*>(shared + (pass & 1) * kStage);
      const T* const dy_tile = q_tile + kQueries * kPitch<D>;
      const auto* const row_sums = reinterpret_cast<const float*>(dy_tile + kQueries * kPitch<D>);
      const float* const row_dots = row_sums + kQueries;
      float p[1][kQueries / 8][4], ds[1][kQueries / 8][4];
      clear(p);
      multiply_rows<D, kQueries>(t, p, keys, q_tile);
      TRIVIUM_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int query = n * 8 + lane % 4 * 2 + i % 2;
          const bool seen = row0 + warp_row + lane / 4 + i / 2 * 8 <= first + query && query < left;
          p[0][n][i] = seen ? exp2_of(p[0][n][i] * factor - row_sums[query]) : 0.0F;
        }
      }
      if constexpr (!kDrops) multiply_columns<D, kQueries>(t, dv, p, dy_tile);
      clear(ds);
      multiply_rows<D, kQueries>(t, ds, values, dy_tile);
      TRIVIUM_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int query = n * 8 + lane % 4 * 2 + i % 2;
          const float probability = p[0][n][i];
          if constexpr (kDrops) {
            const std::int64_t key = row0 + warp_row + lane / 4 + i / 2 * 8, head = kv_head * group + pass / each;
            const float by = score_factor(s.dropout, head, line / s.kv_heads, first + query, key);
            ds[0][n][i] *= by;
            p[0][n][i] *= by;
          }
          ds[0][n][i] = query < left ? probability * (ds[0][n][i] - row_dots[query]) : 0.0F;
        }
      }
      if constexpr (kDrops) multiply_columns<D, kQueries>(t, dv, p, dy_tile);
      multiply_columns<D, kQueries>(t, dk, ds, q_tile);
    }
    const std::int64_t valid = s.sequence - row0 - warp_row;
    const float scales[2] = {s.scale, s.scale}, ones[2] = {1, 1};
    store_rows<D>(t, dqkv + key_at + warp_row * width, width, dk[0], scales, valid);
    store_rows<D>(t, dqkv + value_at + warp_row * width, width, dv[0], ones, valid);
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
    constexpr int kStage = 2 * kTile * kPitch<D>;  // a tile of keys, one of values; before the first, queries and dy
    auto* const stages = reinterpret_cast<T*>(t.shared());
    const std::int64_t tile = s.tiles() - 1 - t.block() / lines, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.sequence, row0 = tile * kTile;
    const std::int64_t width = (s.heads + 2 * s.kv_heads) * D;
    const T* keys = qkv + token * width + (s.heads + head * s.kv_heads / s.heads) * D;
    const T* values = keys + s.kv_heads * D;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    const auto load_stage = [&](std::int64_t at) {
      T* const stage = stages + (at & 1) * kStage;
      load_ahead<D>(t, stage, keys + at * kTile * width, width, kTile, s.sequence - at * kTile);
      load_ahead<D>(t, stage + kTile * kPitch<D>, values + at * kTile * width, width, kTile, s.sequence - at * kTile);
    };
    T* const dy_tile = stages + kStage + kTile * kPitch<D>;
    load_ahead<D>(t, stages + kStage, qkv + (token + row0) * width + head * D, width, kTile, s.sequence - row0);
    load_ahead<D>(t, dy_tile, dy + ((token + row0) * s.heads + head) * D, s.heads * D, kTile, s.sequence - row0);
    load_stage(0);
    t.await_copies();
    t.sync();
    Held<D> queries[1], dys[1];
    hold_rows(t, queries[0], stages + kStage, warp_row);
    hold_rows(t, dys[0], dy_tile, warp_row);

    const float factor = s.scale * kLog2e;
    const std::int64_t valid = s.sequence - row0 - warp_row;
    float log_sum[2] = {0, 0}, dot[2] = {0, 0}, dq[1][D / 8][4];
    TRIVIUM_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      if (row >= valid) continue;
      log_sum[half] = log_sums[(token + row0 + warp_row + row) * s.heads + head] * kLog2e;
      dot[half] = dots[(token + row0 + warp_row + row) * s.heads + head];
    }
    clear(dq);
    for (std::int64_t at = 0; at <= tile; ++at) {
      t.await_copies();
      t.sync();  // and all are done with the other stage
      if (at < tile) load_stage(at + 1);
      const T* const stage = stages + (at & 1) * kStage;
      float p[1][kTile / 8][4], ds[1][kTile / 8][4];
      clear(p);
      clear(ds);
      multiply_rows<D, kTile>(t, p, queries, stage);
      multiply_rows<D, kTile>(t, ds, dys, stage + kTile * kPitch<D>);
      if constexpr (kDrops) {
        drop_rows<kTile>(s.dropout, head, line / s.heads, row0 + warp_row, at * kTile, lane, ds[0]);
      }
      TRIVIUM_UNROLL
      for (int n = 0; n < kTile / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          const bool seen = at < tile || n * 8 + lane % 4 * 2 + i % 2 <= warp_row + lane / 4 + i / 2 * 8;
          const float probability = seen ? exp2_of(p[0][n][i] * factor - log_sum[i / 2]) : 0.0F;
          ds[0][n][i] = probability * (ds[0][n][i] - dot[i / 2]);
        }
      }
      multiply_columns<D, kTile>(t, dq, ds, stage);
    }
    const float scales[2] = {s.scale, s.scale};
    store_rows<D>(t, dqkv + (token + row0 + warp_row) * width + head * D, width, dq[0], scales, valid);
  }
};

}  // namespace trivium::runtime::cuda
