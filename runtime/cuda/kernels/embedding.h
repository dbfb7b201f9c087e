// Look-ups of tokens in a table, and their gradients.
#pragma once

#include "runtime/cuda/kernels/dropping.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// y = row ids[r] - first of the table, or 0 where another rank holds it. A block a row. Keep here and below: KeepAll
/// or DropTokens.
template <class T, int W, class Keep>
struct Embedding {
  const std::int32_t* ids;
  const T* table;
  T* y;
  std::int64_t n, first, rows;
  Keep keep;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t row = ids[t.block()] - first;
    for (std::int64_t j = t.thread() * W; j < n; j += t.threads() * W) {
      float value[W] = {};
      if (row >= 0 && row < rows) {
        load<W>(table + row * n + j, value);
        keep(t.block(), j, value);
      }
      store<W>(y + t.block() * n + j, value);
    }
  }
};

/// Tokens by id, those of an id in their order: what the kernels below make together. Gradients of an id's row are then
/// sums of neighbours, and how often an id comes decides nothing about how the work is spread.
struct TokenOrder {
  static constexpr int kLength = 512;  ///< of a tile: tokens that are ordered at once
  std::int32_t* tile_ids;              ///< (tokens), ordered within each tile
  std::int32_t* tile_tokens;
  std::int32_t* ids;  ///< (tokens), ordered
  std::int32_t* order;
  std::int64_t tokens;
  static constexpr std::int64_t bytes(std::int64_t tokens) { return 4 * 4 * tokens; }
  static TokenOrder in(std::byte* room, std::int64_t tokens) {
    auto* at = reinterpret_cast<std::int32_t*>(room);
    return {at, at + tokens, at + 2 * tokens, at + 3 * tokens, tokens};
  }
};

/// A block a tile: a token's place is the number of those before it.
struct OrderTiles {
  static constexpr int kThreads = 256, kAtOnce = 4;
  const std::int32_t* ids;
  TokenOrder to;
  static int shared_bytes() { return TokenOrder::kLength * 4; }
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    constexpr std::int32_t kBeyond = 0x7fffffff;  // beyond every id
    auto* all = reinterpret_cast<std::int32_t*>(t.shared());
    const std::int64_t first = t.block() * TokenOrder::kLength;
    for (int i = t.thread(); i < TokenOrder::kLength; i += t.threads())
      all[i] = first + i < to.tokens ? ids[first + i] : kBeyond;
    t.sync();
    for (int i = t.thread(); i < TokenOrder::kLength && first + i < to.tokens; i += t.threads()) {
      const std::int32_t id = all[i];
      const int own = i - i % kAtOnce;  // of the pack that it is in
      int place = 0;
      for (int j = 0; j < TokenOrder::kLength; j += kAtOnce) {
        const auto others = *reinterpret_cast<const Pack<std::int32_t, kAtOnce>*>(all + j);
        const std::int32_t beyond = j < own ? id + 1 : id;  // of those before it equals count
        TRIVIUM_UNROLL
        for (int k = 0; k < kAtOnce; ++k) place += others.of[k] < beyond ? 1 : 0;
      }
      for (int j = own; j < i; ++j) place += all[j] == id ? 1 : 0;
      to.tile_ids[first + place] = id;
      to.tile_tokens[first + place] = static_cast<std::int32_t>(first + i);
    }
  }
};

/// A thread a token: of every other tile it finds by halves how many come before it.
struct MergeTiles {
  TokenOrder to;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t mine = t.block() * t.threads() + t.thread();
    if (mine >= to.tokens) return;
    constexpr std::int64_t length = TokenOrder::kLength;
    const std::int64_t own = mine / length, tiles = (to.tokens + length - 1) / length;
    const std::int32_t id = to.tile_ids[mine];
    std::int64_t place = mine % length;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const auto size = static_cast<int>(to.tokens - tile * length < length ? to.tokens - tile * length : length);
      if (tile != own) place += count_before(to.tile_ids + tile * length, size, tile < own ? id + 1 : id);
    }
    to.ids[place] = id;
    to.order[place] = to.tile_tokens[mine];
  }

 private:
  static TRIVIUM_DEVICE int count_before(const std::int32_t* ordered, int size, std::int32_t id) {
    int count = 0;
    for (int step = TokenOrder::kLength; step > 0; step /= 2) {
      if (count + step <= size && ordered[count + step - 1] < id) count += step;
    }
    return count;
  }
};

/// What one warp of the sums has of the ordered tokens and of their columns. A block is eight neighbouring chunks.
template <int W>
struct TokenChunk {
  static constexpr int kTokens = 64, kWarps = 8, kThreads = kWarps * kWarp;
  std::int64_t number, begin, end, column;

  static std::int64_t chunks(std::int64_t tokens) { return (tokens + kTokens - 1) / kTokens; }
  static std::int64_t blocks(std::int64_t tokens, std::int64_t n) {
    return (chunks(tokens) + kWarps - 1) / kWarps * across(n);
  }
  template <class Thread>
  static TRIVIUM_DEVICE TokenChunk of(Thread& t, std::int64_t tokens, std::int64_t n) {
    const std::int64_t number = t.block() / across(n) * kWarps + t.thread() / kWarp, begin = number * kTokens;
    const std::int64_t end = begin + kTokens < tokens ? begin + kTokens : tokens;
    return {number, begin, end, (t.block() % across(n) * kWarp + t.thread() % kWarp) * W};
  }
  TRIVIUM_DEVICE bool is_empty(std::int64_t n) const { return begin >= end || column >= n; }

 private:
  static constexpr std::int64_t across(std::int64_t n) { return (n + kWarp * W - 1) / (kWarp * W); }
};

/// dtable (row of the id) += sum of the rows of dy with that id, in token order, for ids whose tokens lie in one chunk.
/// Sums of others go to partial (chunk, 2, n): first of an id that began before the chunk, then of one that continues
/// after it.
template <class T, int W, class Keep>
struct EmbeddingSums {
  static constexpr int kAtOnce = 8;
  TokenOrder by;
  const T* dy;
  float* dtable;
  float* partial;
  std::int64_t n;
  std::int32_t first, rows;
  Keep keep;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const auto chunk = TokenChunk<W>::of(t, by.tokens, n);
    if (chunk.is_empty(n)) return;
    float sum[W] = {};
    std::int64_t begun = chunk.begin;
    for (std::int64_t i = chunk.begin; i < chunk.end; i += kAtOnce) {
      std::int32_t id[kAtOnce + 1];
      TRIVIUM_UNROLL
      for (int k = 0; k <= kAtOnce; ++k) id[k] = i + k < by.tokens ? by.ids[i + k] : kNone;
      float value[kAtOnce][W] = {};
      TRIVIUM_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        if (!is_own(id[k])) continue;
        const std::int64_t token = by.order[i + k];
        load<W>(dy + token * n + chunk.column, value[k]);
        keep(token, chunk.column, value[k]);
      }
      TRIVIUM_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        for (int w = 0; w < W; ++w) sum[w] += value[k][w];
        if (id[k] == id[k + 1] && i + k + 1 != chunk.end) continue;
        if (is_own(id[k])) put(chunk, begun, id[k], id[k + 1], sum);
        for (int w = 0; w < W; ++w) sum[w] = 0;
        begun = i + k + 1;
      }
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;  ///< no token's
  TRIVIUM_DEVICE bool is_own(std::int32_t id) const { return id >= first && id < first + rows; }

  /// The sum of the chunk's tokens from `begun` on that have the id; the next one's is `next`.
  TRIVIUM_DEVICE void put(const TokenChunk<W>& chunk, std::int64_t begun, std::int32_t id, std::int32_t next,
                          const float (&sum)[W]) const {
    const bool began_before = begun == chunk.begin && begun > 0 && by.ids[begun - 1] == id;
    if (began_before || id == next)
      return store<W>(partial + (2 * chunk.number + (began_before ? 0 : 1)) * n + chunk.column, sum);
    float* to = dtable + (id - first) * n + chunk.column;
    for (int w = 0; w < W; ++w) to[w] += sum[w];
  }
};

/// Likewise for ids with tokens in several chunks, by the warps of the chunk in which an id begins: its partial sums in
/// their order.
template <int W>
struct EmbeddingJoin {
  static constexpr int kAtOnce = 8;
  TokenOrder by;
  const float* partial;
  float* dtable;
  std::int64_t n;
  std::int32_t first, rows;

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const auto chunk = TokenChunk<W>::of(t, by.tokens, n);
    if (chunk.is_empty(n) || !goes_on(chunk.end)) return;
    const std::int32_t id = by.ids[chunk.end];
    if (chunk.begin > 0 && by.ids[chunk.begin - 1] == id) return;  // an earlier chunk's
    if (id < first || id >= first + rows) return;
    std::int64_t last = chunk.number + 1;
    while (goes_on((last + 1) * TokenChunk<W>::kTokens) && by.ids[(last + 1) * TokenChunk<W>::kTokens] == id) ++last;
    float sum[W];
    load<W>(partial + (2 * chunk.number + 1) * n + chunk.column, sum);
    for (std::int64_t next = chunk.number + 1; next <= last; next += kAtOnce) {
      float value[kAtOnce][W] = {};
      TRIVIUM_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        if (next + k <= last) load<W>(partial + 2 * (next + k) * n + chunk.column, value[k]);
      }
      TRIVIUM_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        for (int w = 0; w < W; ++w) sum[w] += value[k][w];
      }
    }
    float* to = dtable + (id - first) * n + chunk.column;
    for (int w = 0; w < W; ++w) to[w] += sum[w];
  }

 private:
  /// Whether the tokens on both sides of a chunk's end have one id.
  TRIVIUM_DEVICE bool goes_on(std::int64_t end) const { return end < by.tokens && by.ids[end - 1] == by.ids[end]; }
};

}  // namespace trivium::runtime::cuda
