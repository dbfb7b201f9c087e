// Fused attention of flash.h, without dropout, whose products are those of whole warpgroups (Hopper's wgmma,
// flash_warpgroup_tiles.h): a group of four warps owns 64 rows, and its tensor cores read the other operand from shared
// memory themselves while the warps go on. The same two kernels backward, for the same reason.
#pragma once

#include <type_traits>

#include "runtime/cuda/kernels/flash_warpgroup_tiles.h"

namespace trivium::runtime::cuda {

/// Blocks over (tile of queries, sample, head), the longest rows first.
template <class T, int D>
struct WarpgroupForward {
  static constexpr int kGroups = D == 64 ? 2 : 3;  ///< that share a block's keys and values
  static constexpr int kThreads = kGroups * kWarpgroup, kQueries = kGroups * kGroupRows;
  static constexpr int kBlocksAtOnce = D == 64 ? 2 : 1, kLoaders = 2 * kWarpgroup;
  /// Probabilities are multiplied with their values one tile later, next to that tile's scores. With two blocks at once
  /// one block's products hide the other's softmax anyway.
  static constexpr bool kIsLate = kBlocksAtOnce == 1;
  static constexpr int kLoaded = kTile * D;
  const T* q;
  const T* kv;
  T* y;
  float* log_sums;
  bool merges;  ///< with the y and L of other keys, which are there
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  /// Two tiles of keys, two of values, the groups' queries.
  static int shared_bytes() { return (4 * kLoaded + kQueries * D) * 2; }
  static constexpr std::int64_t tiles(std::int64_t local) { return (local + kQueries - 1) / kQueries; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const keys = reinterpret_cast<T*>(t.shared());
    T* const values = keys + 2 * kLoaded;
    const std::int64_t row0 = (tiles(s.local) - 1 - t.block() / lines) * kQueries, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.local;
    const int key_tiles = static_cast<int>(s.key_tiles(row0, kQueries));
    if (key_tiles == 0) return;  // all of the block
    const T* const first_key = kv + token * s.kv_width + s.key_at + head * s.kv_heads / s.heads * s.dim;
    const T* const first_value = first_key + s.value_at - s.key_at;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    const int group = t.thread() / kWarpgroup;
    const std::int64_t group_row = row0 + group * kGroupRows;
    T* const q_tile = values + 2 * kLoaded + group * kGroupRows * D;
    // Keys of a tile, and the values that are multiplied next to them, are there after this; the next are on their way.
    const auto advance = [&](int at) {
      t.await_copies_for_products();
      t.sync();  // and all are done with those before
      if (at + 1 < key_tiles) load_tile(t, keys, first_key, at + 1);
      const int value = kIsLate ? at : at + 1;
      if (value < key_tiles) load_tile(t, values, first_value, value);
    };
    load_tile(t, keys, first_key, 0);
    if constexpr (!kIsLate) load_tile(t, values, first_value, 0);
    const std::int64_t q_row = token + (group_row < s.local ? group_row : row0);  // a group may have no rows
    load_swizzled<D, kWarpgroup>(t, t.thread() % kWarpgroup, q_tile, q + q_row * s.q_width + head * s.dim, s.q_width,
                                 s.local - group_row, s.dim);

    const float factor = s.scale * kLog2e;
    float p[8][4], fade[2], sum[D / 8][4] = {};
    Held<kTile> rounded;
    SoftmaxRows rows;
    const auto add_values = [&](int at) { begin_columns<D, D>(t, sum, rounded, values + (at & 1) * kLoaded); };
    const auto add_tile = [&](int at, auto is_first) {
      advance(at);
      t.begin_products();
      begin_rows<D>(t, p, q_tile, keys + (at & 1) * kLoaded);
      constexpr bool kAdds = kIsLate && !decltype(is_first)::value;
      if constexpr (kAdds) add_values(at - 1);
      t.template await_products<kAdds ? 1 : 0>(p);
      const std::int64_t key0 = static_cast<std::int64_t>(at) * kTile;
      if (key0 + kTile > s.seen(row0 + warp_row)) hide_keys<kTile>(s, row0 + warp_row, key0, lane, p);
      soften(t, rows, p, factor, fade);
      if constexpr (kAdds) t.template await_products<0>(sum);
      TRIVIUM_UNROLL
      for (int d = 0; d < D / 8; ++d) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) sum[d][i] *= fade[i / 2];
      }
      hold_rounded<T>(rounded, p);
      if constexpr (kIsLate) return;
      t.begin_products();
      add_values(at);
      t.template await_products<0>(sum);
    };
    // Tiles of which any of the group's rows sees some key: the first ones.
    const int own = group_row < s.local ? static_cast<int>(s.key_tiles(group_row, kGroupRows)) : 0;
    int at = 0;
    if (own > 0) {
      add_tile(at++, std::true_type{});
      while (at < own) add_tile(at++, std::false_type{});
      if constexpr (kIsLate) {
        advance(at++);
        t.begin_products();
        add_values(own - 1);
        t.template await_products<0>(sum);
      }
    }
    while (at < key_tiles + (kIsLate ? 1 : 0)) advance(at++);
    const RowEnds ends = end_rows(t, s, rows, token, row0 + warp_row, head, log_sums, merges);
    T* const own_rows = y + ((token + row0 + warp_row) * s.heads + head) * s.dim;
    store_rows<D>(t, own_rows, s.heads * s.dim, sum, ends.factors, ends.first, ends.valid, s.dim, merges, ends.kept);
  }

 private:
  template <class Thread>
  TRIVIUM_DEVICE void load_tile(Thread& t, T* to, const T* from, int at) const {
    if (t.thread() >= kLoaders) return;
    const std::int64_t key0 = static_cast<std::int64_t>(at) * kTile;
    load_swizzled<D, kLoaders>(t, t.thread(), to + (at & 1) * kLoaded, from + key0 * s.kv_width, s.kv_width,
                               s.local - key0, s.dim);
  }
};

/// dk and dv: blocks over (tile of keys, sample, key head). Rows of the products are keys, columns are queries.
template <class T, int D>
struct WarpgroupBackwardKeys {
  static constexpr int kThreads = kWarpgroup, kBlocksAtOnce = D == 64 ? 3 : 2, kQueries = 64;  ///< at once
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dkv;  ///< as kv
  FlashShape s;
  std::int64_t lines;  ///< samples * kv_heads
  /// Two stages: a tile of queries, one of dy, their rows' L and D_i, to a multiple of 1,024 bytes. Then keys and
  /// values.
  static constexpr int kStage = 2 * kQueries * D * 2 + 1024;
  static int shared_bytes() { return 2 * kStage + 2 * kTile * D * 2; }

  template <class Thread>
  TRIVIUM_DEVICE void load_stage(Thread& t, unsigned char* shared, const QueryPass& pass, std::int64_t token,
                                 std::int64_t head0, std::int64_t query0) const {
    const std::int64_t head = head0 + pass.member, first = query0 + static_cast<std::int64_t>(pass.step) * kQueries;
    const std::int64_t left = s.local - first, row = token + first;
    auto* const q_tile = reinterpret_cast<T*>(shared + (pass.number & 1) * kStage);
    T* const dy_tile = q_tile + kQueries * D;
    auto* const rows = reinterpret_cast<float*>(dy_tile + kQueries * D);
    load_swizzled<D, kThreads>(t, t.thread(), q_tile, q + row * s.q_width + head * s.dim, s.q_width, left, s.dim);
    load_swizzled<D, kThreads>(t, t.thread(), dy_tile, dy + (row * s.heads + head) * s.dim, s.heads * s.dim, left,
                               s.dim);
    // A thread a number; of a row that is not there all is 0, as q and dy are.
    const int i = t.thread() % kQueries;
    const bool is_there = i < left;
    const std::int64_t at = is_there ? (row + i) * s.heads + head : 0;
    t.copy_word_ahead(rows + t.thread(), (t.thread() < kQueries ? log_sums : dots) + at, is_there);
  }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const shared = reinterpret_cast<unsigned char*>(t.shared());
    const std::int64_t row0 = t.block() / lines * kTile, line = t.block() % lines;
    const std::int64_t kv_head = line % s.kv_heads, token = line / s.kv_heads * s.local;
    const std::int64_t group = s.heads / s.kv_heads, row_at = (token + row0) * s.kv_width + kv_head * s.dim;
    const std::int64_t key_at = row_at + s.key_at, value_at = row_at + s.value_at;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    // Passes over the queries that see any of the tile, head by head of the group.
    const std::int64_t query0 = s.causal ? row0 : s.from;
    const bool is_seen = s.causal || row0 < s.keys;
    const int each = is_seen ? static_cast<int>((s.local - query0 + kQueries - 1) / kQueries) : 0;
    auto* const k_tile = reinterpret_cast<T*>(shared + 2 * kStage);
    T* const v_tile = k_tile + kTile * D;
    if (each > 0) {
      load_swizzled<D, kThreads>(t, t.thread(), k_tile, kv + key_at, s.kv_width, s.local - row0, s.dim);
      load_swizzled<D, kThreads>(t, t.thread(), v_tile, kv + value_at, s.kv_width, s.local - row0, s.dim);
      load_stage(t, shared, QueryPass{}, token, kv_head * group, query0);
    }

    const float factor = s.scale * kLog2e;
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    const int passes = static_cast<int>(group) * each;
    QueryPass next{};
    for (QueryPass pass{}; pass.number < passes; pass = next) {
      t.await_copies_for_products();
      t.sync();  // and all are done with the other stage
      next.advance(each);
      if (next.number < passes) load_stage(t, shared, next, token, kv_head * group, query0);
      const std::int64_t first = query0 + static_cast<std::int64_t>(pass.step) * kQueries;
      const auto* const q_tile = reinterpret_cast<const T*>(shared + (pass.number & 1) * kStage);
      const T* const dy_tile = q_tile + kQueries * D;
      const auto* const row_sums = reinterpret_cast<const float*>(dy_tile + kQueries * D);
      const float* const row_dots = row_sums + kQueries;
      float p[8][4], ds[8][4];
      t.begin_products();
      begin_rows<D>(t, p, k_tile, q_tile);
      begin_rows<D>(t, ds, v_tile, dy_tile);
      t.template await_products<1>(p);
      if (row0 + kTile > s.seen(first)) hide_queries<kQueries>(s, row0 + warp_row, first, lane, p);
      TRIVIUM_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          p[n][i] = exp2_of(p[n][i] * factor - row_sums[n * 8 + lane % 4 * 2 + i % 2] * kLog2e);
        }
      }
      Held<kAcross> rounded;
      hold_rounded<T>(rounded, p);
      t.template await_products<0>(ds);
      t.begin_products();
      begin_columns<D, kAcross>(t, dv, rounded, dy_tile);
      TRIVIUM_UNROLL
      for (int n = 0; n < kQueries / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) {
          ds[n][i] = p[n][i] * (ds[n][i] - row_dots[n * 8 + lane % 4 * 2 + i % 2]);
        }
      }
      Held<kAcross> gradients;
      hold_rounded<T>(gradients, ds);
      t.begin_products();
      begin_columns<D, kAcross>(t, dk, gradients, q_tile);
      t.template await_products<0>(dv);
      t.template await_products<0>(dk);
    }
    const std::int64_t valid = s.local - row0 - warp_row, down = warp_row * s.kv_width;
    const float scales[2] = {s.scale, s.scale}, ones[2] = {1, 1};
    store_rows<D>(t, dkv + key_at + down, s.kv_width, dk, scales, 0, valid, s.dim, false, ones);
    store_rows<D>(t, dkv + value_at + down, s.kv_width, dv, ones, 0, valid, s.dim, false, ones);
  }
};

/// dq: blocks over (tile of queries, sample, head), the longest rows first.
template <class T, int D>
struct WarpgroupBackwardQueries {
  static constexpr int kThreads = kWarpgroup, kBlocksAtOnce = D == 64 ? 4 : 2;
  static constexpr int kStage = 2 * kTile * D;  // a tile of keys, one of values; after two of them, queries and dy
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dq;      ///< as q
  bool adds;  ///< to what is there of other keys
  FlashShape s;
  std::int64_t lines;  ///< samples * heads
  static int shared_bytes() { return 3 * kStage * 2; }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const stages = reinterpret_cast<T*>(t.shared());
    const std::int64_t row0 = (s.tiles() - 1 - t.block() / lines) * kTile, line = t.block() % lines;
    const std::int64_t head = line % s.heads, token = line / s.heads * s.local;
    const int key_tiles = static_cast<int>(s.key_tiles(row0, kTile));
    if (key_tiles == 0) return;  // all of the block
    const T* keys = kv + token * s.kv_width + s.key_at + head * s.kv_heads / s.heads * s.dim;
    const T* values = keys + s.value_at - s.key_at;
    const int lane = t.thread() % kWarp, warp_row = t.thread() / kWarp * 16;
    const auto load_stage = [&](int at) {
      T* const stage = stages + (at & 1) * kStage;
      const std::int64_t key0 = static_cast<std::int64_t>(at) * kTile, row = key0 * s.kv_width;
      const int thread = t.thread();
      load_swizzled<D, kThreads>(t, thread, stage, keys + row, s.kv_width, s.local - key0, s.dim);
      load_swizzled<D, kThreads>(t, thread, stage + kTile * D, values + row, s.kv_width, s.local - key0, s.dim);
    };
    T* const q_tile = stages + 2 * kStage;
    T* const dy_tile = q_tile + kTile * D;
    load_swizzled<D, kThreads>(t, t.thread(), q_tile, q + (token + row0) * s.q_width + head * s.dim, s.q_width,
                               s.local - row0, s.dim);
    load_swizzled<D, kThreads>(t, t.thread(), dy_tile, dy + ((token + row0) * s.heads + head) * s.dim, s.heads * s.dim,
                               s.local - row0, s.dim);
    load_stage(0);

    const float factor = s.scale * kLog2e;
    const std::int64_t valid = s.local - row0 - warp_row;
    float log_sum[2] = {0, 0}, dot[2] = {0, 0}, sum[D / 8][4] = {};
    TRIVIUM_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + 8 * half;
      if (row >= valid) continue;
      log_sum[half] = log_sums[(token + row0 + warp_row + row) * s.heads + head] * kLog2e;
      dot[half] = dots[(token + row0 + warp_row + row) * s.heads + head];
    }
    for (int at = 0; at < key_tiles; ++at) {
      t.await_copies_for_products();
      t.sync();  // and all are done with the other stage
      if (at + 1 < key_tiles) load_stage(at + 1);
      const std::int64_t key0 = static_cast<std::int64_t>(at) * kTile;
      const T* const stage = stages + (at & 1) * kStage;
      float p[8][4], ds[8][4];
      t.begin_products();
      begin_rows<D>(t, p, q_tile, stage);
      begin_rows<D>(t, ds, dy_tile, stage + kTile * D);
      t.template await_products<1>(p);
      if (key0 + kTile > s.seen(row0 + warp_row)) hide_keys<kTile>(s, row0 + warp_row, key0, lane, p);
      TRIVIUM_UNROLL
      for (int n = 0; n < kTile / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) p[n][i] = exp2_of(p[n][i] * factor - log_sum[i / 2]);
      }
      t.template await_products<0>(ds);
      TRIVIUM_UNROLL
      for (int n = 0; n < kTile / 8; ++n) {
        TRIVIUM_UNROLL
        for (int i = 0; i < 4; ++i) ds[n][i] = p[n][i] * (ds[n][i] - dot[i / 2]);
      }
      Held<kAcross> gradients;
      hold_rounded<T>(gradients, ds);
      t.begin_products();
      begin_columns<D, kAcross>(t, sum, gradients, stage);
      t.template await_products<0>(sum);
    }
    const float scales[2] = {s.scale, s.scale}, ones[2] = {1, 1};
    T* const own = dq + (token + row0 + warp_row) * s.q_width + head * s.dim;
    store_rows<D>(t, own, s.q_width, sum, scales, 0, valid, s.dim, adds, ones);
  }
};

}  // namespace trivium::runtime::cuda
