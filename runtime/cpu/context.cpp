// Copies of context parallelism: keys and values in and out of (T, q|k|v), and the two layouts that an all-to-all over
// heads turns into each other.

#include <algorithm>
#include <cstring>

#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"

namespace trivium::runtime::cpu {
namespace {

template <class T>
void copy(const T* from, T* to, std::int64_t count) {
  std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
}

/// The heads of one part of (T, q|k|v), or of (T, y) without key heads.
struct HeadParts {
  explicit HeadParts(const program::Op& op)
      : tokens(op.m),
        parts(op.parts),
        query(op.heads * op.head_dim),
        kv_heads(op.kv_heads),
        part_heads(op.kv_heads == 0 ? 0 : std::max(1, op.kv_heads / op.parts)),
        dim(op.head_dim),
        values(program::value_dim_of(op)),
        part_query(op.heads / op.parts * op.head_dim) {}
  std::int64_t width() const { return query + kv_heads * (dim + values); }
  std::int64_t part_width() const { return part_query + part_heads * (dim + values); }
  std::int64_t part_key() const { return part_heads * dim; }
  std::int64_t part_value() const { return part_heads * values; }
  /// Columns of the first key and value head of a part.
  std::int64_t key(std::int64_t part) const { return query + part * kv_heads / parts * dim; }
  std::int64_t value(std::int64_t part) const { return query + kv_heads * dim + part * kv_heads / parts * values; }
  std::int64_t tokens, parts, query, kv_heads, part_heads, dim, values, part_query;
};

}  // namespace

template <class T>
static void split_kv(const KernelArguments& a) {
  const std::int64_t query = a.op->heads * a.op->head_dim, n = a.op->n;
  for (std::int64_t r = 0; r < a.op->m; ++r) copy(input<T>(a, 0) + r * (query + n) + query, output<T>(a, 0) + r * n, n);
}

template <class T>
static void join_kv(const KernelArguments& a) {
  const std::int64_t query = a.op->heads * a.op->head_dim, n = a.op->n;
  for (std::int64_t r = 0; r < a.op->m; ++r) copy(input<T>(a, 0) + r * n, output<T>(a, 0) + r * (query + n) + query, n);
}

template <class T>
static void pack_heads(const KernelArguments& a) {
  const HeadParts h(*a.op);
  T* y = output<T>(a, 0);
  for (std::int64_t part = 0; part < h.parts; ++part) {
    for (std::int64_t r = 0; r < h.tokens; ++r, y += h.part_width()) {
      const T* x = input<T>(a, 0) + r * h.width();
      copy(x + part * h.part_query, y, h.part_query);
      copy(x + h.key(part), y + h.part_query, h.part_key());
      copy(x + h.value(part), y + h.part_query + h.part_key(), h.part_value());
    }
  }
}

// Key heads that several parts share come back from each of them: gradients add up, in the order of the parts.
template <class T>
static void unpack_heads(const KernelArguments& a) {
  const HeadParts h(*a.op);
  const T* x = input<T>(a, 0);
  T* whole = output<T>(a, 0);
  for (std::int64_t r = 0; r < h.tokens; ++r) std::fill_n(whole + r * h.width() + h.query, h.width() - h.query, T(0));
  for (std::int64_t part = 0; part < h.parts; ++part) {
    for (std::int64_t r = 0; r < h.tokens; ++r, x += h.part_width()) {
      T* y = whole + r * h.width();
      copy(x, y + part * h.part_query, h.part_query);
      T *key = y + h.key(part), *value = y + h.value(part);
      for (std::int64_t i = 0; i < h.part_key(); ++i) key[i] += x[h.part_query + i];
      for (std::int64_t i = 0; i < h.part_value(); ++i) value[i] += x[h.part_query + h.part_key() + i];
    }
  }
}

/// Calls visit(sample-major row, row by parts) for every token.
template <class Visit>
static void for_each_token(const KernelArguments& a, Visit visit) {
  const program::Op& op = *a.op;
  const std::int64_t samples = op.m / op.sequence, local = op.sequence / op.parts;
  std::int64_t by_parts = 0;
  for (int part = 0; part < op.parts; ++part) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (std::int64_t i = 0; i < local; ++i, ++by_parts) {
        const auto position = program::context_position(a.context_method, i, op.sequence, part, op.parts);
        visit(sample * op.sequence + position, by_parts);
      }
    }
  }
}

template <class T>
static void pack_tokens(const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  for_each_token(a, [&](std::int64_t row, std::int64_t by_parts) {
    copy(input<T>(a, 0) + row * n, output<T>(a, 0) + by_parts * n, n);
  });
}

template <class T>
static void unpack_tokens(const KernelArguments& a) {
  const std::int64_t n = a.op->n;
  for_each_token(a, [&](std::int64_t row, std::int64_t by_parts) {
    copy(input<T>(a, 0) + by_parts * n, output<T>(a, 0) + row * n, n);
  });
}

void add_context(KernelTable& table) {
  table.add(program::OpKind::kSplitKv, split_kv<float>, split_kv<double>);
  table.add(program::OpKind::kJoinKv, join_kv<float>, join_kv<double>);
  table.add(program::OpKind::kPackHeads, pack_heads<float>, pack_heads<double>);
  table.add(program::OpKind::kUnpackHeads, unpack_heads<float>, unpack_heads<double>);
  table.add(program::OpKind::kPackTokens, pack_tokens<float>, pack_tokens<double>);
  table.add(program::OpKind::kUnpackTokens, unpack_tokens<float>, unpack_tokens<double>);
}

}  // namespace trivium::runtime::cpu
