// What the fused attention kernels (flash.h) are made of: whose keys a query sees, tiles in shared memory, rows in
// registers, and products of the two on tensor cores.
#pragma once

#include "runtime/cuda/kernels/dropping.h"
#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

constexpr int kTile = 64, kFlashThreads = 128;
constexpr float kLog2e = 1.4426950408889634F, kLn2 = 0.6931471805599453F;

/// Queries are rows of q_width elements, keys and values of kv_width, in a matrix of their own or in the same; y and dy
/// are (T, heads, D), L and D_i (T, heads). Samples have `local` rows of each.
struct FlashShape {
  std::int64_t local, q_width, kv_width;
  std::int64_t key_at, value_at;  ///< where keys and values begin in a row
  int heads, kv_heads;
  int dim;  ///< elements of a head, a multiple of 8: the rest of the D that a kernel is for are zeros
  /// A query sees the keys up to its own row, or else (other ranks' keys) the first `keys` of them from query `from`
  /// on.
  bool causal;
  std::int64_t from, keys;
  float scale;
  Dropout dropout;

  constexpr std::int64_t tiles() const { return (local + kTile - 1) / kTile; }
  /// How many keys a query sees: the more the later it is.
  TRIVIUM_DEVICE std::int64_t seen(std::int64_t query) const { return causal ? query + 1 : query >= from ? keys : 0; }
  /// Tiles of keys that any of `rows` queries from row0 on sees.
  TRIVIUM_DEVICE std::int64_t key_tiles(std::int64_t row0, int rows) const {
    return (seen((row0 + rows < local ? row0 + rows : local) - 1) + kTile - 1) / kTile;
  }
};

/// Rows of a tile in shared memory lie 16 bytes more than their length apart: eight of them touch all banks once.
template <int D>
constexpr int kPitch = D + 8;

/// Rows [0, kRows) of `dim` elements of `from`, `stride` elements apart, on their way into shared memory; those from
/// `valid` on become 0, as do the elements after the first `dim`. For blocks of kFlashThreads.
template <int D, int kRows, class T, class Thread>
TRIVIUM_DEVICE void load_ahead(Thread& t, T* to, const T* from, std::int64_t stride, std::int64_t valid, int dim) {
  constexpr int kEach = 8, kAcross = D / kEach, kStep = kFlashThreads / kAcross;
  const int row = t.thread() / kAcross, column = t.thread() % kAcross * kEach;
  const int left = column < dim ? static_cast<int>(valid < kRows ? valid : kRows) - row : 0;
  const T* at = from + row * stride + column;
  to += row * kPitch<D> + column;
  TRIVIUM_UNROLL
  for (int i = 0; i < kRows; i += kStep) {
    const bool is_there = i < left;
    t.copy_ahead(to + i * kPitch<D>, is_there ? at : from, is_there);
    at += kStep * stride;
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

/// An accumulator (16, D) as rows of `dim` elements of T, of which [first, valid) are written. Factors are those of the
/// thread's two rows; with `adds`, what is there is added, `kept` times.
template <int D, class T, class Thread>
TRIVIUM_DEVICE void store_rows(Thread& t, T* to, std::int64_t stride, const float (&c)[D / 8][4],
                               const float (&factor)[2], std::int64_t first, std::int64_t valid, int dim, bool adds,
                               const float (&kept)[2]) {
  const int lane = t.thread() % kWarp;
  TRIVIUM_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + 8 * half;
    if (row < first || row >= valid) continue;
    TRIVIUM_UNROLL
    for (int d = 0; d < D / 8; ++d) {
      if (d * 8 >= dim) continue;
      T* const place = to + row * stride + d * 8 + lane % 4 * 2;
      float before[2] = {0, 0};
      if (adds) load<2>(place, before);
      *reinterpret_cast<std::uint32_t*>(place) = pair_of<T>(c[d][2 * half] * factor[half] + before[0] * kept[half],
                                                            c[d][2 * half + 1] * factor[half] + before[1] * kept[half]);
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

/// The lowest number in the place of products with keys that a query does not see: rows are queries from `query` on,
/// columns keys from `key` on.
template <int N>
TRIVIUM_DEVICE void hide_keys(const FlashShape& s, std::int64_t query, std::int64_t key, int lane,
                              float (&c)[N / 8][4]) {
  TRIVIUM_UNROLL
  for (int half = 0; half < 2; ++half) {
    const std::int64_t end = s.seen(query + lane / 4 + half * 8) - key;
    const int seen = static_cast<int>(end < 0 ? 0 : end < N ? end : N) - lane % 4 * 2;
    TRIVIUM_UNROLL
    for (int n = 0; n < N / 8; ++n) {
      TRIVIUM_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (n * 8 + i >= seen) c[n][2 * half + i] = kLowest;
      }
    }
  }
}

/// Likewise where rows are keys from `key` on and columns queries from `query` on: of those, which follow each other,
/// the ones from some place on see a key.
template <int N>
TRIVIUM_DEVICE void hide_queries(const FlashShape& s, std::int64_t key, std::int64_t query, int lane,
                                 float (&c)[N / 8][4]) {
  TRIVIUM_UNROLL
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = key + lane / 4 + half * 8;
    const std::int64_t begin = s.causal ? row - query : row < s.keys ? 0 : N;
    const int hidden = static_cast<int>(begin < 0 ? 0 : begin < N ? begin : N) - lane % 4 * 2;
    TRIVIUM_UNROLL
    for (int n = 0; n < N / 8; ++n) {
      TRIVIUM_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (n * 8 + i < hidden) c[n][2 * half + i] = kLowest;
      }
    }
  }
}

/// Over the tiles of queries of one head of a group after the other.
struct QueryPass {
  int number = 0, member = 0, step = 0;
  TRIVIUM_DEVICE void advance(int each) {
    ++number;
    if (++step == each) step = 0, ++member;
  }
};

/// What a thread's two rows of a forward have come to: the highest score, and the sum of exponentials relative to it.
struct SoftmaxRows {
  float most[2] = {kLowest, kLowest}, total[2] = {0, 0};
};

/// Scores to probabilities, relative to the highest so far; `fade` is what those before are worth now.
template <int N, class Thread>
TRIVIUM_DEVICE void soften(Thread& t, SoftmaxRows& rows, float (&p)[N][4], float factor, float (&fade)[2]) {
  TRIVIUM_UNROLL
  for (int half = 0; half < 2; ++half) {
    float highest = rows.most[half];
    TRIVIUM_UNROLL
    for (int n = 0; n < N; ++n) highest = Largest()(highest, Largest()(p[n][2 * half], p[n][2 * half + 1]));
    highest = Largest()(highest, t.shuffle_xor(highest, 1));
    highest = Largest()(highest, t.shuffle_xor(highest, 2));
    fade[half] = exp2_of((rows.most[half] - highest) * factor);
    rows.most[half] = highest;
    const float offset = highest * factor;
    float sums[2] = {rows.total[half] * fade[half], 0};
    TRIVIUM_UNROLL
    for (int n = 0; n < N; ++n) {
      TRIVIUM_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& each = p[n][2 * half + i];
        each = exp2_of(each * factor - offset);
        sums[i] += each;
      }
    }
    rows.total[half] = sums[0] + sums[1];
  }
}

/// How a forward ends for a thread's two of a warp's 16 rows, of which [first, valid) are written.
struct RowEnds {
  float factors[2], kept[2];  ///< of what was summed, and of what is there of other keys
  std::int64_t first, valid;
};

/// Writes L of a warp's rows from row0 on, merged with that of other keys where asked.
template <class Thread>
TRIVIUM_DEVICE RowEnds end_rows(Thread& t, const FlashShape& s, const SoftmaxRows& rows, std::int64_t token,
                                std::int64_t row0, std::int64_t head, float* log_sums, bool merges) {
  const int lane = t.thread() % kWarp;
  RowEnds ends{{}, {0, 0}, s.causal ? 0 : s.from - row0, s.local - row0};  // those before see nothing
  TRIVIUM_UNROLL
  for (int half = 0; half < 2; ++half) {
    float total = rows.total[half];
    total += t.shuffle_xor(total, 1);
    total += t.shuffle_xor(total, 2);
    const int row = lane / 4 + 8 * half;
    float* const log_sum = log_sums + (token + row0 + row) * s.heads + head;
    const bool writes = lane % 4 == 0 && row >= ends.first && row < ends.valid;
    const float mine = rows.most[half] * s.scale + log_of(total);
    ends.factors[half] = 1.0F / total;
    float after = mine;
    if (merges) {
      // One thread reads for the four of a row, and so before it writes.
      float before = writes ? *log_sum : 0.0F;
      before += t.shuffle_xor(before, 1);
      before += t.shuffle_xor(before, 2);
      const float higher = Largest()(before, mine);
      after = higher + log_of(exp_of(before - higher) + exp_of(mine - higher));
      ends.factors[half] *= exp_of(mine - after);
      ends.kept[half] = exp_of(before - after);
    }
    if (writes) *log_sum = after;
  }
  return ends;
}

/// Which of a draw's four columns are kept, as bits.
template <class Dropping>
TRIVIUM_DEVICE std::uint32_t kept_bits(const Dropping& d, const PhiloxWords& words) {
  std::uint32_t bits = 0;
  TRIVIUM_UNROLL
  for (int i = 0; i < 4; ++i) bits |= (words.of[i] < d.threshold ? 0U : 1U) << i;
  return bits;
}

/// c (16, N) times what dropout leaves: rows are queries from position `query` on, columns keys from `key` on, a
/// multiple of four. Two threads hold the four keys of a draw of two rows: each draws for one of them and shows the
/// other.
template <int N, class Thread, class Dropping>
TRIVIUM_DEVICE void drop_rows(Thread& t, const Dropping& d, std::int64_t head, std::int64_t sample, std::int64_t query,
                              std::int64_t key, float (&c)[N / 8][4]) {
  static_assert(N / 8 * 4 <= 32);  // a word holds the bits of a thread's draws
  const int lane = t.thread() % kWarp, own = lane % 2;
  std::uint32_t mine = 0;
  TRIVIUM_UNROLL
  for (int n = 0; n < N / 8; ++n) {
    const std::int64_t quad = (key + n * 8 + lane % 4 * 2) / 4;
    mine |= kept_bits(d, dropout_words(d, head, sample, query + lane / 4 + own * 8, quad)) << (4 * n);
  }
  const std::uint32_t shown = t.shuffle_xor(mine, 1);
  const std::uint32_t bits[2] = {(own == 0 ? mine : shown) >> (2 * own), (own == 0 ? shown : mine) >> (2 * own)};
  const float scale = static_cast<float>(d.scale);
  TRIVIUM_UNROLL
  for (int n = 0; n < N / 8; ++n) {
    TRIVIUM_UNROLL
    for (int i = 0; i < 4; ++i) c[n][i] *= (bits[i / 2] >> (4 * n + i % 2) & 1U) != 0 ? scale : 0.0F;
  }
}

/// Likewise where rows are keys from `key` on and columns queries from `query` on: `by` (16, N) is what elements are
/// multiplied by. Four threads hold the keys of the four draws for two queries and two quads of keys: each draws for
/// one of these and shows the others.
template <int N, class Thread, class Dropping>
TRIVIUM_DEVICE void column_factors(Thread& t, const Dropping& d, std::int64_t head, std::int64_t sample,
                                   std::int64_t query, std::int64_t key, float (&by)[N / 8][4]) {
  static_assert(N / 8 * 4 <= 32);
  const int lane = t.thread() % kWarp, own = lane / 4 % 4;
  const std::int64_t quad = (key + lane / 16 * 4 + own / 2 * 8) / 4;
  std::uint32_t shown[4] = {};  // by how the thread that drew differs from this one
  TRIVIUM_UNROLL
  for (int n = 0; n < N / 8; ++n) {
    const std::int64_t position = query + n * 8 + lane % 4 * 2 + own % 2;
    shown[0] |= kept_bits(d, dropout_words(d, head, sample, position, quad)) << (4 * n);
  }
  TRIVIUM_UNROLL
  for (int other = 1; other < 4; ++other) shown[other] = t.shuffle_xor(shown[0], 4 * other);
  const float scale = static_cast<float>(d.scale);
  TRIVIUM_UNROLL
  for (int i = 0; i < 4; ++i) {
    // Written without an index into `shown`, which would move it to memory.
    const std::uint32_t even = ((own ^ i) & 1) != 0 ? shown[1] : shown[0];
    const std::uint32_t odd = ((own ^ i) & 1) != 0 ? shown[3] : shown[2];
    const std::uint32_t bits = (((own ^ i) & 2) != 0 ? odd : even) >> own;
    TRIVIUM_UNROLL
    for (int n = 0; n < N / 8; ++n) by[n][i] = (bits >> (4 * n) & 1U) != 0 ? scale : 0.0F;
  }
}

}  // namespace trivium::runtime::cuda
