// Copies of context parallelism (cpu/context.cpp), by element of what is written.
#pragma once

#include "runtime/cuda/kernels/numbers.h"
#include "runtime/cuda/kernels/rows.h"

namespace trivium::runtime::cuda {

/// Columns [from_at, + n) of rows of `from_width` to columns [to_at, + n) of rows of `to_width`.
template <class T>
struct CopyColumns {
  const T* from;
  T* to;
  std::int64_t m, n, from_width, from_at, to_width, to_at;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i >= m * n) return;
    to[i / n * to_width + to_at + i % n] = from[i / n * from_width + from_at + i % n];
  }
};

/// (T, q|k|v) against (parts, T, a part's q|k|v): all heads of a token, or those of one part. With fewer key heads than
/// parts, parts share them.
struct HeadParts {
  std::int64_t tokens, parts, query, key, part_query, part_key, kv_heads, dim;
  TRIVIUM_DEVICE std::int64_t width() const { return query + 2 * key; }
  TRIVIUM_DEVICE std::int64_t part_width() const { return part_query + 2 * part_key; }
  TRIVIUM_DEVICE std::int64_t first_key(std::int64_t part) const { return part * kv_heads / parts * dim; }
  /// Column of the whole for column j of a part.
  TRIVIUM_DEVICE std::int64_t column(std::int64_t part, std::int64_t j) const {
    if (j < part_query) return part * part_query + j;
    const std::int64_t k = j - part_query;
    return query + (k < part_key ? 0 : key - part_key) + first_key(part) + k;
  }
};

template <class T>
struct PackHeads {
  const T* whole;
  T* packed;
  HeadParts h;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread(), wide = h.part_width();
    if (i >= h.parts * h.tokens * wide) return;
    const std::int64_t part = i / (h.tokens * wide), r = i / wide % h.tokens;
    packed[i] = whole[r * h.width() + h.column(part, i % wide)];
  }
};

/// A thread an element of the whole; those that several parts sent back are added in the order of the parts.
template <class T>
struct UnpackHeads {
  const T* packed;
  T* whole;
  HeadParts h;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i >= h.tokens * h.width()) return;
    const std::int64_t r = i / h.width(), column = i % h.width();
    if (column < h.query) {
      const std::int64_t part = column / h.part_query;
      whole[i] = packed[(part * h.tokens + r) * h.part_width() + column % h.part_query];
      return;
    }
    const std::int64_t values = column >= h.query + h.key ? 1 : 0, k = column - h.query - values * h.key;
    float sum = 0;
    for (std::int64_t part = 0; part < h.parts; ++part) {
      const std::int64_t inside = k - h.first_key(part);
      if (inside < 0 || inside >= h.part_key) continue;
      sum += widen(packed[(part * h.tokens + r) * h.part_width() + h.part_query + values * h.part_key + inside]);
    }
    whole[i] = narrow<T>(sum);
  }
};

/// Rows by (part, sample, token of the part) against rows by (sample, token): a thread an element.
template <class T>
struct ReorderTokens {
  const T* from;
  T* to;
  std::int64_t n, samples, sequence, parts;
  bool packs;  ///< from sample-major to parts, else back
  bool ring;   ///< part r holds chunks r and 2 parts - 1 - r of a sample, else a run
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i >= samples * sequence * n) return;
    const std::int64_t row = i / n, local = sequence / parts;
    const std::int64_t sample = row / sequence, position = row % sequence;
    std::int64_t part = position / local, inside = position % local;
    if (ring && parts > 1) {
      const std::int64_t width = local / 2, chunk = position / width;
      part = chunk < parts ? chunk : 2 * parts - 1 - chunk;
      inside = position % width + (chunk < parts ? 0 : width);
    }
    const std::int64_t by_parts = (part * samples + sample) * local + inside;
    if (packs) {
      to[by_parts * n + i % n] = from[i];
    } else {
      to[i] = from[by_parts * n + i % n];
    }
  }
};

}  // namespace trivium::runtime::cuda
