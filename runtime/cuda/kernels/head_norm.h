// Norms of query and key heads of (T, q|k|v) (cpu/variants/norm.cpp has the formulas).
#pragma once

#include "runtime/cuda/kernels/norm.h"

namespace trivium::runtime::cuda {

/// Where heads lie: a row has `heads` of queries, then `kv_heads` of keys and as many of values.
struct HeadRows {
  int heads, kv_heads, dim;
  TRIVIUM_DEVICE int normed() const { return heads + kv_heads; }
  TRIVIUM_DEVICE int all() const { return heads + 2 * kv_heads; }
};

/// A block takes one head of one row. Values are copied.
template <class T, int W>
struct HeadNorm {
  const T* x;
  const T* q_weight;
  const T* k_weight;
  T* y;
  float* sigma;  ///< (T, heads + kv_heads): 1 / sigma
  HeadRows rows;
  float epsilon;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const std::int64_t row = t.block() / rows.all(), head = t.block() % rows.all(), at = t.block() * rows.dim;
    const bool value_head = head >= rows.normed();
    float squares = 0;
    for (std::int64_t j = t.thread() * W; j < rows.dim; j += t.threads() * W) {
      float v[W];
      load<W>(x + at + j, v);
      for (int i = 0; i < W; ++i) squares += v[i] * v[i];
    }
    const float mean = over_block(t, squares, room, Sum()) / static_cast<float>(rows.dim);
    const float inverse = inverse_root(mean + epsilon);
    const T* weight = head < rows.heads ? q_weight : k_weight;
    for (std::int64_t j = t.thread() * W; j < rows.dim; j += t.threads() * W) {
      float v[W], w[W];
      load<W>(x + at + j, v);
      load<W>(weight + j, w);
      for (int i = 0; i < W; ++i) v[i] = value_head ? v[i] : v[i] * inverse * w[i];
      store<W>(y + at + j, v);
    }
    if (t.thread() == 0 && !value_head) sigma[row * rows.normed() + head] = inverse;
  }
};

/// dx alone; the gradients of the weights are column sums. dx may be dy.
template <class T, int W>
struct HeadNormBackward {
  const T* x;
  const T* q_weight;
  const T* k_weight;
  const float* sigma;
  const T* dy;
  T* dx;
  HeadRows rows;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* room = reinterpret_cast<float*>(t.shared());
    const std::int64_t row = t.block() / rows.all(), head = t.block() % rows.all(), at = t.block() * rows.dim;
    const bool value_head = head >= rows.normed();
    const float inverse = value_head ? 1.0F : sigma[row * rows.normed() + head];
    const T* weight = head < rows.heads ? q_weight : k_weight;
    float sum = 0;
    for (std::int64_t j = t.thread() * W; j < rows.dim; j += t.threads() * W) {
      float v[W], w[W], d[W];
      load<W>(x + at + j, v);
      load<W>(weight + j, w);
      load<W>(dy + at + j, d);
      for (int i = 0; i < W; ++i) sum += d[i] * w[i] * v[i] * inverse;
    }
    const float mean = over_block(t, sum, room, Sum()) / static_cast<float>(rows.dim);
    for (std::int64_t j = t.thread() * W; j < rows.dim; j += t.threads() * W) {
      float v[W], w[W], d[W];
      load<W>(x + at + j, v);
      load<W>(weight + j, w);
      load<W>(dy + at + j, d);
      for (int i = 0; i < W; ++i) d[i] = value_head ? d[i] : (d[i] * w[i] - v[i] * inverse * mean) * inverse;
      store<W>(dx + at + j, d);
    }
  }
};

/// Rows for column sums: dy x / sigma of one kind of head, head by head of every row; the gradient of its weight.
template <class T>
struct NormedHeadProducts {
  static constexpr int kAhead = 2, kBlocks = 4;
  const T* x;
  const T* dy;
  const float* sigma;
  HeadRows rows;
  int first, count;  ///< heads of the kind
  template <int W>
  TRIVIUM_DEVICE Nothing common(std::int64_t) const {
    return {};
  }
  template <int W>
  TRIVIUM_DEVICE Fetched<W> fetch(std::int64_t r, std::int64_t c) const {
    const std::int64_t row = r / count, head = first + r % count, at = (row * rows.all() + head) * rows.dim + c;
    float v[W];
    Fetched<W> products;
    load<W>(x + at, v);
    load<W>(dy + at, products.values);
    for (int i = 0; i < W; ++i) products.values[i] *= v[i] * sigma[row * rows.normed() + head];
    return products;
  }
  template <int W>
  TRIVIUM_DEVICE void finish(const Fetched<W>& fetched, Nothing, std::int64_t, std::int64_t, float (&to)[W]) const {
    for (int i = 0; i < W; ++i) to[i] = fetched.values[i];
  }
};

}  // namespace trivium::runtime::cuda
