// Attention row by row, for every shape: fp32, head dimensions without a fused kernel, ring steps; and the softmax of
// the products of matrices. cpu/variants/attention*.cpp have the formulas. A warp has a row; its threads share the head
// dimension, kSlots elements each.
#pragma once

#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/rows.h"

namespace trivium::runtime::cuda {

/// Scores (heads, length, length) to probabilities in place: row r sees its first r % length + 1 columns. A block a
/// row.
template <class T>
struct CausalSoftmax {
  T* scores;
  std::int64_t length;
  float* log_sums;  ///< (length, heads), `log_stride` apart, or null
  std::int64_t log_stride;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    T* row = scores + t.block() * length;
    const std::int64_t valid = t.block() % length + 1;
    float most = kLowest;
    for (std::int64_t j = t.thread(); j < valid; j += t.threads()) most = Largest()(most, widen(row[j]));
    most = over_block(t, most, room, Largest());
    float sum = 0;
    for (std::int64_t j = t.thread(); j < valid; j += t.threads()) sum += exp_of(widen(row[j]) - most);
    const float total = over_block(t, sum, room, Sum()), factor = 1.0F / total;
    if (log_sums != nullptr && t.thread() == 0) {
      log_sums[(valid - 1) * log_stride + t.block() / length] = most + log_of(total);
    }
    for (std::int64_t j = t.thread(); j < length; j += t.threads()) {
      row[j] = narrow<T>(j < valid ? exp_of(widen(row[j]) - most) * factor : 0.0F);
    }
  }
};

/// dS = P (dP - sum of P dP), in place of dP. A block a row; columns that the row does not see become 0.
template <class T>
struct CausalSoftmaxBackward {
  const T* probabilities;
  T* dscores;
  std::int64_t length;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const T* p = probabilities + t.block() * length;
    T* d = dscores + t.block() * length;
    const std::int64_t valid = t.block() % length + 1;
    float sum = 0;
    for (std::int64_t j = t.thread(); j < valid; j += t.threads()) sum += widen(p[j]) * widen(d[j]);
    sum = over_block(t, sum, reinterpret_cast<float*>(t.shared()), Sum());
    for (std::int64_t j = t.thread(); j < length; j += t.threads()) {
      d[j] = narrow<T>(j < valid ? widen(p[j]) * (widen(d[j]) - sum) : 0.0F);
    }
  }
};

/// Queries of this rank against keys of rank `source` of the context group (itself where the sequence is not split).
struct AttentionShape {
  std::int64_t samples, local;  ///< local: tokens of a sample on a rank
  int heads, kv_heads, dim;
  std::int64_t q_width, kv_width;  ///< elements of a token in the query's and in the key's matrix
  std::int64_t key_at, value_at;   ///< where keys and values begin in the latter
  Positions positions;
  int source;
  float scale;
  Dropout dropout;

  TRIVIUM_DEVICE std::int64_t kv_head(std::int64_t h) const { return h * kv_heads / heads; }
  TRIVIUM_DEVICE bool sees(std::int64_t query, std::int64_t key) const {
    return positions.of_local(key, source) <= positions.of_local(query, positions.rank);
  }
  /// What dropout multiplies a probability by; query and key: local tokens of the sample.
  TRIVIUM_DEVICE float factor(std::int64_t sample, std::int64_t head, std::int64_t query, std::int64_t key) const {
    return score_factor(dropout, head, sample, positions.of_local(query, positions.rank),
                        positions.of_local(key, source));
  }
};

constexpr int kSlots = 8;  ///< elements of a head a thread holds: dim up to 256
constexpr int kMostRowDim = kSlots * kWarp;

/// Whether flash.h has a kernel in 16 bits for heads of this size, whose rows it moves 16 bytes at once.
constexpr bool has_fused_dim(int dim) { return dim <= 128 && dim % 8 == 0; }

template <class Thread>
TRIVIUM_DEVICE float over_warp(Thread& t, float v) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v += t.shuffle_xor(v, mask);
  return v;
}

template <class T>
TRIVIUM_DEVICE void load_head(const T* from, int lane, int dim, float (&to)[kSlots]) {
  for (int i = 0; i < kSlots; ++i) to[i] = lane + i * kWarp < dim ? widen(from[lane + i * kWarp]) : 0.0F;
}

template <class T>
TRIVIUM_DEVICE void store_head(T* to, int lane, int dim, const float (&from)[kSlots], float factor) {
  for (int i = 0; i < kSlots; ++i) {
    if (lane + i * kWarp < dim) to[lane + i * kWarp] = narrow<T>(from[i] * factor);
  }
}

TRIVIUM_DEVICE float dot_of(const float (&a)[kSlots], const float (&b)[kSlots]) {
  float sum = 0;
  for (int i = 0; i < kSlots; ++i) sum += a[i] * b[i];
  return sum;
}

/// y and L of a row; with `merges` joined to what the steps before left there. Warps over (token, head).
template <class T>
struct AttentionRow {
  const T* q;
  const T* kv;
  T* y;
  float* log_sums;
  AttentionShape s;
  bool merges;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t item = t.block() * (t.threads() / kWarp) + t.thread() / kWarp;
    if (item >= s.samples * s.local * s.heads) return;
    const int lane = t.thread() % kWarp;
    const std::int64_t token = item / s.heads, head = item % s.heads, first = token / s.local * s.local;
    float query[kSlots], sum[kSlots] = {}, other[kSlots];
    load_head(q + token * s.q_width + head * s.dim, lane, s.dim, query);
    const T* keys = kv + s.key_at + s.kv_head(head) * s.dim;
    const T* values = kv + s.value_at + s.kv_head(head) * s.dim;
    float most = kLowest, total = 0;
    for (std::int64_t j = 0; j < s.local; ++j) {
      if (!s.sees(token - first, j)) continue;
      load_head(keys + (first + j) * s.kv_width, lane, s.dim, other);
      const float score = over_warp(t, dot_of(query, other)) * s.scale;
      const float higher = Largest()(most, score), fade = exp_of(most - higher), weight = exp_of(score - higher);
      load_head(values + (first + j) * s.kv_width, lane, s.dim, other);
      const float kept = weight * s.factor(token / s.local, head, token - first, j);
      for (int i = 0; i < kSlots; ++i) sum[i] = sum[i] * fade + kept * other[i];
      total = total * fade + weight;
      most = higher;
    }
    T* own = y + (token * s.heads + head) * s.dim;
    float& log_sum = log_sums[token * s.heads + head];
    if (!merges) {
      store_head(own, lane, s.dim, sum, total > 0 ? 1.0F / total : 0.0F);
      if (lane == 0) log_sum = total > 0 ? most + log_of(total) : kLowest;
      return;
    }
    if (!(total > 0)) return;
    // One thread reads for all, and so before it writes.
    const float before = over_warp(t, lane == 0 ? log_sum : 0.0F), mine = most + log_of(total),
                higher = Largest()(before, mine);
    const float after = higher + log_of(exp_of(before - higher) + exp_of(mine - higher));
    load_head(own, lane, s.dim, other);
    for (int i = 0; i < kSlots; ++i) {
      sum[i] = other[i] * exp_of(before - after) + sum[i] / total * exp_of(mine - after);
    }
    store_head(own, lane, s.dim, sum, 1.0F);
    if (lane == 0) log_sum = after;
  }
};

/// D = dy . y of every (token, head), whose rows of kThreads packs of 8 elements as many threads share.
template <class T, int kThreads>
struct AttentionPackDots {
  static constexpr int kEach = 8;
  const T* y;
  const T* dy;
  float* dots;
  std::int64_t items;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t at = t.block() * t.threads() + t.thread(), item = at / kThreads;
    float sum = 0;
    if (item < items) {
      float a[kEach], b[kEach];
      load<kEach>(y + at * kEach, a);
      load<kEach>(dy + at * kEach, b);
      for (int i = 0; i < kEach; ++i) sum += a[i] * b[i];
    }
    for (int mask = kThreads / 2; mask > 0; mask /= 2) sum += t.shuffle_xor(sum, mask);
    if (item < items && t.thread() % kThreads == 0) dots[item] = sum;
  }
};

/// The same of rows of any length: a warp each.
template <class T>
struct AttentionDots {
  const T* y;
  const T* dy;
  float* dots;
  std::int64_t items;
  int dim;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t item = t.block() * (t.threads() / kWarp) + t.thread() / kWarp;
    if (item >= items) return;
    const int lane = t.thread() % kWarp;
    float sum = 0;
    for (int i = lane; i < dim; i += kWarp) sum += widen(y[item * dim + i]) * widen(dy[item * dim + i]);
    sum = over_warp(t, sum);
    if (lane == 0) dots[item] = sum;
  }
};

/// dq of a row, added to what is there with `adds`. Warps over (token, head).
template <class T>
struct AttentionRowDq {
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dq;
  AttentionShape s;
  bool adds;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t item = t.block() * (t.threads() / kWarp) + t.thread() / kWarp;
    if (item >= s.samples * s.local * s.heads) return;
    const int lane = t.thread() % kWarp;
    const std::int64_t token = item / s.heads, head = item % s.heads, first = token / s.local * s.local;
    float query[kSlots], d[kSlots], sum[kSlots] = {}, key[kSlots], value[kSlots];
    load_head(q + token * s.q_width + head * s.dim, lane, s.dim, query);
    load_head(dy + item * s.dim, lane, s.dim, d);
    const T* keys = kv + s.key_at + s.kv_head(head) * s.dim;
    const T* values = kv + s.value_at + s.kv_head(head) * s.dim;
    for (std::int64_t j = 0; j < s.local; ++j) {
      if (!s.sees(token - first, j)) continue;
      load_head(keys + (first + j) * s.kv_width, lane, s.dim, key);
      load_head(values + (first + j) * s.kv_width, lane, s.dim, value);
      const float p = exp_of(over_warp(t, dot_of(query, key)) * s.scale - log_sums[item]);
      const float dp = over_warp(t, dot_of(d, value)) * s.factor(token / s.local, head, token - first, j);
      const float ds = p * (dp - dots[item]) * s.scale;
      for (int i = 0; i < kSlots; ++i) sum[i] += ds * key[i];
    }
    T* own = dq + token * s.q_width + head * s.dim;
    if (adds) {
      load_head(own, lane, s.dim, key);
      for (int i = 0; i < kSlots; ++i) sum[i] += key[i];
    }
    store_head(own, lane, s.dim, sum, 1.0F);
  }
};

/// dk and dv of a key row, over all query heads that read it. Warps over (token, key head).
template <class T>
struct AttentionRowDkv {
  const T* q;
  const T* kv;
  const T* dy;
  const float* log_sums;
  const float* dots;
  T* dkv;
  AttentionShape s;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t item = t.block() * (t.threads() / kWarp) + t.thread() / kWarp;
    if (item >= s.samples * s.local * s.kv_heads) return;
    const int lane = t.thread() % kWarp, group = s.heads / s.kv_heads;
    const std::int64_t token = item / s.kv_heads, kv_head = item % s.kv_heads, first = token / s.local * s.local;
    float key[kSlots], value[kSlots], dk[kSlots] = {}, dv[kSlots] = {}, query[kSlots], d[kSlots];
    load_head(kv + token * s.kv_width + s.key_at + kv_head * s.dim, lane, s.dim, key);
    load_head(kv + token * s.kv_width + s.value_at + kv_head * s.dim, lane, s.dim, value);
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t i = 0; i < s.local; ++i) {
        if (!s.sees(i, token - first)) continue;
        const std::int64_t row = (first + i) * s.heads + head;
        load_head(q + (first + i) * s.q_width + head * s.dim, lane, s.dim, query);
        load_head(dy + row * s.dim, lane, s.dim, d);
        const float p = exp_of(over_warp(t, dot_of(query, key)) * s.scale - log_sums[row]);
        const float by = s.factor(token / s.local, head, i, token - first);
        const float ds = p * (over_warp(t, dot_of(d, value)) * by - dots[row]) * s.scale;
        for (int k = 0; k < kSlots; ++k) {
          dv[k] += p * by * d[k];
          dk[k] += ds * query[k];
        }
      }
    }
    store_head(dkv + token * s.kv_width + s.key_at + kv_head * s.dim, lane, s.dim, dk, 1.0F);
    store_head(dkv + token * s.kv_width + s.value_at + kv_head * s.dim, lane, s.dim, dv, 1.0F);
  }
};

}  // namespace trivium::runtime::cuda
