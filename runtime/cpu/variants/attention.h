// The walk over samples, heads and blocks of query rows that both passes of causal attention share.
// Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245): query head h reads key/value head h * kv_heads /
// heads.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/ir/context.h"
#include "program/ir/op_views.h"
#include "runtime/cpu/dropping.h"
#include "runtime/cpu/variants/eigen.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// Query rows handled together. Causality lets a block read keys up to the end of the block only, and those of its
/// first row's window, so what lies outside costs no more than a block per row; and with flash no more than this many
/// rows of probabilities exist at once.
constexpr Index kQueryBlock = program::kQueryBlock;

/// Of the tensor rank's heads, the first that an attention op sees: context ranks, or those of them that are one rank
/// of a ring together, see a part each.
[[maybe_unused]] static Index first_head(const KernelArguments& a) {
  return a.op->part_of_heads ? program::head_part(a.op->parts, a.context_rank, a.context_ranks) * Index{a.op->heads}
                             : 0;
}

struct AttentionShape {
  Index samples, sequence, heads, kv_heads, dim, value_dim;
  Index window;                         ///< keys that a query sees at most
  bool chunked;                         ///< those from the last multiple of `window` on
  Index tokens;                         ///< of a sample, all of them
  const std::int32_t* document_starts;  ///< (samples, tokens), or null
  Index width() const { return (heads + kv_heads) * dim + kv_heads * value_dim; }
  Index query(Index h) const { return h * dim; }  ///< first column of query head h within (T, q|k|v)
  Index key(Index h) const { return (heads + h * kv_heads / heads) * dim; }
  Index value(Index h) const { return (heads + kv_heads) * dim + h * kv_heads / heads * value_dim; }
  /// The first key that the query of a position sees; none of a later position sees an earlier one.
  Index first_key(Index sample, Index position) const {
    const Index begin = document_starts == nullptr ? 0 : document_starts[sample * tokens + position];
    if (position < window) return begin;
    return std::max(begin, chunked ? position / window * window : position - window + 1);
  }
};

/// Columns of a row of a block that its query sees.
struct Seen {
  Index first, end;
  bool none() const { return first >= end; }
};

[[maybe_unused]] static AttentionShape shape_of(const KernelArguments& a) {
  const program::Op& op = *a.op;
  const Index window = op.window > 0 ? op.window : std::numeric_limits<Index>::max();
  return {op.m / op.sequence,        op.sequence, op.heads,   op.kv_heads, op.head_dim,
          program::value_dim_of(op), window,      op.chunked, op.sequence, a.document_starts};
}

/// With a soft cap c (Gemma 2, arXiv 2408.00118, section 2) products x of queries and keys become c tanh(scale x / c),
/// in place. Returns the factor that is left to apply.
template <class T>
static T cap_scores(const program::Op& op, T* scores, Index rows, Index keys, Index stride, T scale) {
  const T cap = static_cast<T>(op.soft_cap);
  if (!(cap > T(0))) return scale;
  for (Index r = 0; r < rows; ++r) {
    Row<T> row(scores + r * stride, keys);
    row = cap * (row * (scale / cap)).tanh();
  }
  return T(1);
}

/// The slope of a head, of so many (Press et al. 2022, arXiv 2108.12409, section 3; of heads that are no power of two
/// as in its authors' code, which BLOOM follows: those of the power below, then every second one of the power above).
[[maybe_unused]] static double alibi_slope(Index head, Index heads) {
  Index power = 1;
  while (2 * power <= heads) power *= 2;
  const bool more = head >= power;
  const double step = 8.0 / static_cast<double>(more ? 2 * power : power);
  return std::exp2(-step * static_cast<double>(more ? 2 * (head - power) + 1 : head + 1));
}

/// Products of queries and keys, to be multiplied by `scale`, plus ALiBi's bias: minus the head's slope times the
/// distance of the key. `head`: of the op; `row`, `from`: positions of the first query and key.
template <class T>
static void add_alibi(const KernelArguments& a, T* scores, Index head, Index row, Index from, Index rows, Index keys,
                      Index stride, T scale) {
  if (a.op->alibi_heads == 0) return;
  const T slope = static_cast<T>(alibi_slope(a.dropout.first_head + head, a.op->alibi_heads)) / scale;
  for (Index r = 0; r < rows; ++r) {
    const T nearest = static_cast<T>(from - row - r);
    Row<T> values(scores + r * stride, keys);
    values += slope * DenseRow<T>::LinSpaced(keys, nearest, nearest + static_cast<T>(keys - 1));
  }
}

/// What a row of gradients by capped scores takes to be one by scores that were not.
template <class T>
static void uncap_gradients(const program::Op& op, T* gradients, const T* capped, Index keys) {
  Row<T>(gradients, keys) *= T(1) - (ConstRow<T>(capped, keys) / static_cast<T>(op.soft_cap)).square();
}

/// Columns that are not seen become 0.
template <class T>
static void only_seen(T* row, Seen seen, Index length) {
  Row<T>(row, seen.first).setZero();
  Row<T>(row + seen.end, length - seen.end).setZero();
}

/// What a query head's sink adds to its softmax (gpt-oss): exp(sink), or nothing. With all-to-all over heads a context
/// rank sees a part of the heads.
template <class T>
struct Sinks {
  const T* of_heads;
  bool any() const { return of_heads != nullptr; }
  T operator()(Index head) const { return any() ? of_heads[head] : -std::numeric_limits<T>::infinity(); }
};

template <class T>
static Sinks<T> sinks_of(const KernelArguments& a, std::size_t operand) {
  const T* sinks = input<T>(a, operand);
  return {sinks == nullptr ? nullptr : sinks + first_head(a)};
}

/// Scores to probabilities over the columns that are seen; the others of `length` become 0. `sink` takes its part of
/// the sum. Returns L.
template <class T>
static T softmax(T* row, Seen seen, Index length, T scale, T sink) {
  Row<T> p(row + seen.first, seen.end - seen.first);
  const T highest = scale > 0 ? std::max(p.maxCoeff(), sink / scale) : p.maxCoeff();
  p = ((p - highest) * scale).exp();
  const T sum = p.sum() + std::exp(sink - highest * scale);
  p *= T(1) / sum;
  only_seen(row, seen, length);
  return highest * scale + std::log(sum);
}

/// With dropout: a byte for every probability of a block of queries, rows `stride` apart.
struct ScoreMask {
  std::uint8_t* keep;
  Index rows, keys, stride;

  /// Draws it. `query`, `key`: positions of the block's first ones; row r sees its first valid(r) keys.
  template <class Valid>
  void draw(const Dropout& d, Index sample, Index head, Index query, Index key, Valid valid) const {
    for (Index r = 0; r < rows; ++r) draw_row(d, head, sample, query + r, key, valid(r), keep + r * stride);
  }
  /// to = mask o from / (1 - p), row by row; both as wide as the mask is. They may be one.
  template <class T>
  void drop(const Dropout& d, const T* from, T* to) const {
    for (Index r = 0; r < rows; ++r) {
      Row<T>(to + r * stride, keys) = kept_of(from + r * stride, keep + r * stride, keys, static_cast<T>(d.scale));
    }
  }
};

/// Calls visit(sample, head, first row, rows) for every block, first rows ascending within (sample, head).
template <class Visit>
static void for_each_query_block(const AttentionShape& s, Visit visit) {
  for (Index sample = 0; sample < s.samples; ++sample) {
    for (Index head = 0; head < s.heads; ++head) {
      for (Index row = 0; row < s.sequence; row += kQueryBlock) {
        visit(sample, head, row, row + kQueryBlock < s.sequence ? kQueryBlock : s.sequence - row);
      }
    }
  }
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
