// Look-ups: token embedding (its rows split over the tensor group), learned positions, and plain addition. Dropout of
// the embedding is done where the last of it is added, and again on every gradient that is read.

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/cpu/dropping.h"
#include "runtime/cpu/plain_kernels.h"

namespace trivium::runtime::cpu {

/// What is dropped of a local token row becomes 0, the rest is scaled.
template <class T>
static void drop_token(const KernelArguments& a, std::int64_t r, std::vector<std::uint8_t>& keep, T* row) {
  keep.resize(static_cast<std::size_t>(a.op->n));
  draw_token(a, r, keep.data());
  for (std::int64_t j = 0; j < a.op->n; ++j) {
    row[j] *= static_cast<T>(keep[static_cast<std::size_t>(j)]) * static_cast<T>(a.dropout.scale);
  }
}

/// Gradients of token rows as they were before dropout; `room` where that is not what is given.
template <class T>
static const T* before_dropout(const KernelArguments& a, const T* dy, std::vector<T>& room) {
  if (!a.dropout.drops()) return dy;
  std::vector<std::uint8_t> keep;
  room.assign(dy, dy + a.op->m * a.op->n);
  for (std::int64_t r = 0; r < a.op->m; ++r) drop_token(a, r, keep, room.data() + r * a.op->n);
  return room.data();
}

/// Factor on what is looked up.
template <class T>
static T scale_of(const program::Op& op) {
  return op.score_scale > 0 ? static_cast<T>(op.score_scale) : T(1);
}

// This rank holds rows [tensor_rank * k, +k) of the table; a token of another rank gives zeros here, and the sum over
// the tensor group is the whole embedding (Shoeybi et al. 2019, arXiv 1909.08053, section 3).
template <class T>
static void embedding(const KernelArguments& a) {
  const std::int64_t n = a.op->n, k = a.op->k;
  const T scale = scale_of<T>(*a.op);
  const std::int32_t* ids = input<std::int32_t>(a, 0);
  std::vector<std::uint8_t> keep;
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    T* y = output<T>(a, 0) + r * n;
    const std::int64_t row = ids[r] - a.tensor_rank * k;
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (row >= 0 && row < k) {
      std::memcpy(y, input<T>(a, 1) + row * n, bytes);
      if (scale != T(1)) std::transform(y, y + n, y, [scale](T value) { return value * scale; });
      if (a.dropout.drops()) drop_token(a, r, keep, y);
    } else {
      std::memset(y, 0, bytes);
    }
  }
}

// Rows of dy that fall on one row of the table are summed first, in token order, and then added: what a micro-batch
// contributes is one sum, so that accumulating micro-batches and reducing replicas give the same bits.
template <class T, class RowOf>
static void add_rows(const T* dy, T* dtable, std::int64_t rows, std::int64_t n, T scale, RowOf row_of) {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;  // row of the table, row of dy
  for (std::int64_t r = 0; r < rows; ++r) {
    if (const std::int64_t row = row_of(r); row >= 0) order.emplace_back(row, r);
  }
  std::sort(order.begin(), order.end());
  std::vector<T> sum(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size();) {
    const std::int64_t row = order[i].first;
    const T* first = dy + order[i].second * n;
    std::copy(first, first + n, sum.begin());
    for (++i; i < order.size() && order[i].first == row; ++i) {
      const T* next = dy + order[i].second * n;
      for (std::int64_t j = 0; j < n; ++j) sum[static_cast<std::size_t>(j)] += next[j];
    }
    for (std::int64_t j = 0; j < n; ++j) dtable[row * n + j] += scale * sum[static_cast<std::size_t>(j)];
  }
}

template <class T>
static void embedding_backward(const KernelArguments& a) {
  const std::int64_t k = a.op->k;
  const std::int32_t* ids = input<std::int32_t>(a, 0);
  std::vector<T> room;
  add_rows(before_dropout(a, input<T>(a, 1), room), output<T>(a, 0), a.op->m, a.op->n, scale_of<T>(*a.op),
           [&](std::int64_t r) {
             const std::int64_t row = ids[r] - a.tensor_rank * k;
             return row < k ? row : -1;  // negative: another rank's
           });
}

template <class T>
static void position(const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  std::vector<std::uint8_t> keep;
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    const T* x = input<T>(a, 0) + r * n;
    const T* row = input<T>(a, 1) + document_position_of(a, r, a.op->k) * n;
    T* y = output<T>(a, 0) + r * n;
    for (std::int64_t j = 0; j < n; ++j) y[j] = x[j] + row[j];
    if (a.dropout.drops()) drop_token(a, r, keep, y);
  }
}

template <class T>
static void position_backward(const KernelArguments& a) {
  std::vector<T> room;
  add_rows(before_dropout(a, input<T>(a, 0), room), output<T>(a, 0), a.op->m, a.op->n, T(1),
           [&](std::int64_t r) -> std::int64_t { return document_position_of(a, r, a.op->k); });
}

template <class T>
static void add(const KernelArguments& a) {
  const T* x = input<T>(a, 0);
  T* y = output<T>(a, 0);
  for (std::int64_t i = 0; i < a.op->elements; ++i) y[i] += x[i];
}

void add_embeddings(KernelTable& table) {
  table.add(program::OpKind::kEmbedding, embedding<float>, embedding<double>);
  table.add(program::OpKind::kEmbeddingBackward, embedding_backward<float>, embedding_backward<double>);
  table.add(program::OpKind::kPosition, position<float>, position<double>);
  table.add(program::OpKind::kPositionBackward, position_backward<float>, position_backward<double>);
  table.add(program::OpKind::kAdd, add<float>, add<double>);
}

}  // namespace trivium::runtime::cpu
