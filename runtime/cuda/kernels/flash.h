// Fused causal attention in 16 bits (T) for head dimensions of up to D = 64 and 128, forward and backward (Dao 2023,
// arXiv 2307.08691, algorithms 1 and 2), with grouped key heads. Products run on tensor cores; probabilities never
// leave the registers: the accumulator of one product has the layout that the next one reads its first operand in. A
// block is four warps; a warp owns 16 or 32 rows of its block's tile, held in registers for all products with the tiles
// that pass by, loading the next while one is worked on. The backward is two kernels, one over tiles of
// keys and one over tiles of queries, so that nothing is added atomically and results are the same every time.
#pragma once

#include "runtime/cuda/kernels/flash_tiles.h"

namespace trivium::runtime::cuda {

/// Blocks over (tile of queries, sample, head), the longest rows first. kDrops, here and below: whether there is
/// dropout.
template <class T, int D, bool kDrops>
struct FlashForward {
  static constexpr int kSteps = D == 64 ? 2 : 1;  ///< times 16 rows of a warp: what the registers hold
  static constexpr int kWarpRows = 16 * kSteps, kQueries = kWarpRows * kFlashThreads / kWarp;
  const T* q;
  const T* kv;
  T* y;
  float* log_sums;
  bool merges;  ///< with the y and L of other keys, which are there
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  static int shared_bytes() { return 4 * kTile * kPitch<D> * 2; }
  static constexpr std::int64_t tiles(std::int64_t local) { return (local + kQueries - 1) / kQueries; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    constexpr int kStage = 2 * kTile * kPitch<D>;  // a tile of keys, one of values; before the first, the queries
    auto* const stages = reinterpret_cast<T*>(t.shared());
    const std::int64_t row0 = (tiles(s.local) - 1 - t.block() / lines) * kQueries, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.local;
    const std::int64_t key_tiles = s.key_tiles(row0, kQueries);
    if (key_tiles == 0) return;  // all of the block
    const T* keys = kv + token * s.kv_width + s.key_at + head * s.kv_heads / s.heads * s.dim;
    const T* values = keys + s.value_at - s.key_at;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * kWarpRows;
    const auto load_stage = [&](std::int64_t at) {
      T* const stage = stages + (at & 1) * kStage;
      const std::int64_t key0 = at * kTile, row = key0 * s.kv_width;
      load_ahead<D, kTile>(t, stage, keys + row, s.kv_width, s.local - key0, s.dim);
      load_ahead<D, kTile>(t, stage + kTile * kPitch<D>, values + row, s.kv_width, s.local - key0, s.dim);
    };
    load_stage(0);
    load_ahead<D, kQueries>(t, stages + kStage, q + (token + row0) * s.q_width + head * s.dim, s.q_width,
                            s.local - row0, s.dim);
    t.await_copies();
    t.sync();
    Held<D> queries[kSteps];
    TRIVIUM_UNROLL
    for (int m = 0; m < kSteps; ++m) hold_rows(t, queries[m], stages + kStage, warp_row + 16 * m);

    const float factor = s.scale * kLog2e;
    float sum[kSteps][D / 8][4];
    clear(sum);
    SoftmaxRows rows[kSteps];
    for (std::int64_t at = 0; at < key_tiles; ++at) {
      t.await_copies();
      t.sync();  // and all are done with the other stage
      if (at + 1 < key_tiles) load_stage(at + 1);
      const std::int64_t key0 = at * kTile, warp_row0 = row0 + warp_row;
      if (key0 >= s.seen(warp_row0 + kWarpRows - 1)) continue;  // none of this warp's rows sees any of it
      const T* const stage = stages + (at & 1) * kStage;
      float p[kSteps][kTile / 8][4];
      clear(p);
      multiply_rows<D, kTile>(t, p, queries, stage);
      if (key0 + kTile > s.seen(warp_row0)) {
        TRIVIUM_UNROLL
        for (int m = 0; m < kSteps; ++m) hide_keys<kTile>(s, warp_row0 + 16 * m, key0, lane, p[m]);
      }
      TRIVIUM_UNROLL
      for (int m = 0; m < kSteps; ++m) {
        float fade[2];
        soften(t, rows[m], p[m], factor, fade);
        TRIVIUM_UNROLL
        for (int d = 0; d < D / 8; ++d) {
          TRIVIUM_UNROLL
          for (int i = 0; i < 4; ++i) sum[m][d][i] *= fade[i / 2];
        }
        if constexpr (kDrops) {
          drop_rows<kTile>(t, s.dropout, head, line / s.heads, warp_row0 + 16 * m, key0, p[m]);
        }
      }
      multiply_columns<D, kTile>(t, sum, p, stage + kTile * kPitch<D>);
    }
    TRIVIUM_UNROLL
    for (int m = 0; m < kSteps; ++m) {
      const std::int64_t row0_of_m = row0 + warp_row + 16 * m;
      const RowEnds ends = end_rows(t, s, rows[m], token, row0_of_m, head, log_sums, merges);
      T* const own = y + ((token + row0_of_m) * s.heads + head) * s.dim;
      store_rows<D>(t, own, s.heads * s.dim, sum[m], ends.factors, ends.first, ends.valid, s.dim, merges, ends.kept);
    }
  }
};

/// dk and dv: blocks over (tile of keys, sample, key head). Rows of the products are keys, columns are queries.
template <class T, int D, bool kDrops>
struct FlashBackwardKeys {
  static constexpr int kQueries = D == 64 ? 64 : 32;  ///< at once: what the registers hold
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dkv;  ///< as kv
  FlashShape s;
  std::int64_t lines;  ///< samples * kv_heads
  /// Two stages: a tile of queries, one of dy, their rows' L and D_i. Before the first, the second holds keys and
  /// values.
  static constexpr int kStage = 2 * kQueries * kPitch<D> * 2 + 2 * kQueries * 4;
  static int shared_bytes() {
    return kStage + (kStage > 2 * kTile * kPitch<D> * 2 ? kStage : 2 * kTile * kPitch<D> * 2);
  }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const shared = reinterpret_cast<unsigned char*>(t.shared());
    const std::int64_t tile = t.block() / lines, line = t.block() % lines;
    const std::int64_t kv_head = line % s.kv_heads, token = line / s.kv_heads * s.local, row0 = tile * kTile;
    const std::int64_t group = s.heads / s.kv_heads, row_at = (token + row0) * s.kv_width + kv_head * s.dim;
    const std::int64_t key_at = row_at + s.key_at, value_at = row_at + s.value_at;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    // Passes over the queries that see any of the tile, head by head of the group.
    const std::int64_t query0 = s.causal ? row0 : s.from;
    const bool is_seen = s.causal || row0 < s.keys;
    const int each = is_seen ? static_cast<int>((s.local - query0 + kQueries - 1) / kQueries) : 0;
    const auto load_stage = [&](const QueryPass& pass) {
      const std::int64_t head = kv_head * group + pass.member,
                         first = query0 + static_cast<std::int64_t>(pass.step) * kQueries;
      const std::int64_t left = s.local - first, row = token + first;
      auto* const q_tile = reinterpret_cast<T*>(shared + (pass.number & 1) * kStage);
      T* const dy_tile = q_tile + kQueries * kPitch<D>;
      auto* const rows = reinterpret_cast<float*>(dy_tile + kQueries * kPitch<D>);
      load_ahead<D, kQueries>(t, q_tile, q + row * s.q_width + head * s.dim, s.q_width, left, s.dim);
      load_ahead<D, kQueries>(t, dy_tile, dy + (row * s.heads + head) * s.dim, s.heads * s.dim, left, s.dim);
      if (const int i = t.thread(); i < kQueries) {  // of a row that is not there all is 0, as q and dy are
        const bool is_there = i < left;
        const std::int64_t at = is_there ? (row + i) * s.heads + head : 0;
        t.copy_word_ahead(rows + i, log_sums + at, is_there);
        t.copy_word_ahead(rows + kQueries + i, dots + at, is_there);
      }
    };
    auto* const k_tile = reinterpret_cast<T*>(shared + kStage);
    T* const v_tile = k_tile + kTile * kPitch<D>;
    load_ahead<D, kTile>(t, k_tile, kv + key_at, s.kv_width, s.local - row0, s.dim);
    load_ahead<D, kTile>(t, v_tile, kv + value_at, s.kv_width, s.local - row0, s.dim);
    if (each > 0) load_stage(QueryPass{});
    t.await_copies();
    t.sync();
    Held<D> keys[1], values[1];
    hold_rows(t, keys[0], k_tile, warp_row);
    hold_rows(t, values[0], v_tile, warp_row);

    const float factor = s.scale * kLog2e;
    float dk[1][D / 8][4], dv[1][D / 8][4];
    clear(dk);
    clear(dv);
    const int passes = static_cast<int>(group * each);
    QueryPass next{};
    for (QueryPass pass{}; pass.number < passes; pass = next) {
      t.await_copies();
      t.sync();  // and all are done with the other stage
      next.advance(each);
      if (next.number < passes) load_stage(next);
      const std::int64_t first = query0 + static_cast<std::int64_t>(pass.step) * kQueries;
      const auto* const q_tile = reinterpret_cast<const T*>(shared + (pass.number & 1) * kStage);
      const T* const dy_tile = q_tile + kQueries * kPitch<D>;
      const auto* const row_sums = reinterpret_cast<const float*>(dy_tile + kQueries * kPitch<D>);
      const float* const row_dots = row_sums + kQueries;
      float p[1][kQueries / 8][4], ds[1][kQueries / 8][4];
      clear(p);
      multiply_rows<D, kQueries>(t, p, keys, q_tile);
      if (row0 + kTile > s.seen(first)) hide_queries<kQueries>(s, row0 + warp_row, first, lane, p[0]);
      TRIVIUM_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          p[0][n][i] = exp2_of(p[0][n][i] * factor - row_sums[n * 8 + lane % 4 * 2 + i % 2] * kLog2e);
        }
      }
      if constexpr (!kDrops) multiply_columns<D, kQueries>(t, dv, p, dy_tile);
      clear(ds);
      multiply_rows<D, kQueries>(t, ds, values, dy_tile);
      [[maybe_unused]] float by[kQueries / 8][4];
      if constexpr (kDrops) {
        column_factors<kQueries>(t, s.dropout, kv_head * group + pass.member, line / s.kv_heads, first, row0 + warp_row,
                                 by);
      }
      TRIVIUM_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int query = n * 8 + lane % 4 * 2 + i % 2;
          const float probability = p[0][n][i];
          if constexpr (kDrops) {
            ds[0][n][i] *= by[n][i];
            p[0][n][i] *= by[n][i];
          }
          ds[0][n][i] = probability * (ds[0][n][i] - row_dots[query]);
        }
      }
      if constexpr (kDrops) multiply_columns<D, kQueries>(t, dv, p, dy_tile);
      multiply_columns<D, kQueries>(t, dk, ds, q_tile);
    }
    const std::int64_t valid = s.local - row0 - warp_row, down = warp_row * s.kv_width;
    const float scales[2] = {s.scale, s.scale}, ones[2] = {1, 1};
    store_rows<D>(t, dkv + key_at + down, s.kv_width, dk[0], scales, 0, valid, s.dim, false, ones);
    store_rows<D>(t, dkv + value_at + down, s.kv_width, dv[0], ones, 0, valid, s.dim, false, ones);
  }
};

/// dq: blocks over (tile of queries, sample, head), the longest rows first.
template <class T, int D, bool kDrops>
struct FlashBackwardQueries {
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dq;      ///< as q
  bool adds;  ///< to what is there of other keys
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  static int shared_bytes() { return 4 * kTile * kPitch<D> * 2; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    constexpr int kStage = 2 * kTile * kPitch<D>;  // a tile of keys, one of values; before the first, queries and dy
    auto* const stages = reinterpret_cast<T*>(t.shared());
    const std::int64_t row0 = (s.tiles() - 1 - t.block() / lines) * kTile, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.local, key_tiles = s.key_tiles(row0, kTile);
    if (key_tiles == 0) return;  // all of the block
    const T* keys = kv + token * s.kv_width + s.key_at + head * s.kv_heads / s.heads * s.dim;
    const T* values = keys + s.value_at - s.key_at;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    const auto load_stage = [&](std::int64_t at) {
      T* const stage = stages + (at & 1) * kStage;
      const std::int64_t key0 = at * kTile, row = key0 * s.kv_width;
      load_ahead<D, kTile>(t, stage, keys + row, s.kv_width, s.local - key0, s.dim);
      load_ahead<D, kTile>(t, stage + kTile * kPitch<D>, values + row, s.kv_width, s.local - key0, s.dim);
    };
    T* const dy_tile = stages + kStage + kTile * kPitch<D>;
    load_ahead<D, kTile>(t, stages + kStage, q + (token + row0) * s.q_width + head * s.dim, s.q_width, s.local - row0,
                         s.dim);
    load_ahead<D, kTile>(t, dy_tile, dy + ((token + row0) * s.heads + head) * s.dim, s.heads * s.dim, s.local - row0,
                         s.dim);
    load_stage(0);
    t.await_copies();
    t.sync();
    Held<D> queries[1], dys[1];
    hold_rows(t, queries[0], stages + kStage, warp_row);
    hold_rows(t, dys[0], dy_tile, warp_row);

    const float factor = s.scale * kLog2e;
    const std::int64_t valid = s.local - row0 - warp_row;
    float log_sum[2] = {0, 0}, dot[2] = {0, 0}, sum[1][D / 8][4];
    TRIVIUM_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      if (row >= valid) continue;
      log_sum[half] = log_sums[(token + row0 + warp_row + row) * s.heads + head] * kLog2e;
      dot[half] = dots[(token + row0 + warp_row + row) * s.heads + head];
    }
    clear(sum);
    for (std::int64_t at = 0; at < key_tiles; ++at) {
      t.await_copies();
      t.sync();  // and all are done with the other stage
      if (at + 1 < key_tiles) load_stage(at + 1);
      const T* const stage = stages + (at & 1) * kStage;
      float p[1][kTile / 8][4], ds[1][kTile / 8][4];
      clear(p);
      clear(ds);
      multiply_rows<D, kTile>(t, p, queries, stage);
      multiply_rows<D, kTile>(t, ds, dys, stage + kTile * kPitch<D>);
      if constexpr (kDrops) {
        drop_rows<kTile>(t, s.dropout, head, line / s.heads, row0 + warp_row, at * kTile, ds[0]);
      }
      if ((at + 1) * kTile > s.seen(row0 + warp_row)) {
        hide_keys<kTile>(s, row0 + warp_row, at * kTile, lane, p[0]);
      }
      TRIVIUM_UNROLL
      for (int n = 0; n < kTile / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          ds[0][n][i] = exp2_of(p[0][n][i] * factor - log_sum[i / 2]) * (ds[0][n][i] - dot[i / 2]);
        }
      }
      multiply_columns<D, kTile>(t, sum, ds, stage);
    }
    const float scales[2] = {s.scale, s.scale}, ones[2] = {1, 1};
    T* const own = dq + (token + row0 + warp_row) * s.q_width + head * s.dim;
    store_rows<D>(t, own, s.q_width, sum[0], scales, 0, valid, s.dim, adds, ones);
  }
};

}  // namespace trivium::runtime::cuda
