// Cross-entropy over a split vocabulary (cpu/variants/loss.cpp has the formulas). Logits are fp32, a block a row.
#pragma once

#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

struct LossMax {
  const float* logits;
  float* highest;
  std::int64_t n, valid;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    float most = kLowest;
    for (std::int64_t j = t.thread(); j < valid; j += t.threads()) most = Largest()(most, logits[t.block() * n + j]);
    most = over_block(t, most, reinterpret_cast<float*>(t.shared()), Largest());
    if (t.thread() == 0) highest[t.block()] = most;
  }
};

struct LossSums {
  const float* logits;
  const float* highest;
  const std::int32_t* labels;
  float* sums;
  std::int64_t n, valid, first;  ///< first: global number of column 0
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const float* row = logits + t.block() * n;
    const float most = highest[t.block()];
    float sum = 0;
    for (std::int64_t j = t.thread(); j < valid; j += t.threads()) sum += exp_of(row[j] - most);
    sum = over_block(t, sum, reinterpret_cast<float*>(t.shared()), Sum());
    if (t.thread() != 0) return;
    const std::int64_t target = labels[t.block()] - first;
    sums[2 * t.block()] = sum;
    sums[2 * t.block() + 1] = target >= 0 && target < valid ? row[target] - most : 0.0F;
  }
};

/// loss += weight times the sum over all tokens. One block.
struct Loss {
  const float* sums;
  double* loss;
  std::int64_t m;
  double weight;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    double total = 0;
    for (std::int64_t r = t.thread(); r < m; r += t.threads()) {
      total += static_cast<double>(log_of(sums[2 * r])) - static_cast<double>(sums[2 * r + 1]);
    }
    total = over_block(t, total, reinterpret_cast<double*>(t.shared()), Sum());
    if (t.thread() == 0) *loss += total * weight;
  }
};

/// Gradients in the type T of the products that read them, at the start of each row of fp32, also where that is the
/// logits' own row: what is written lies before what is still to be read.
template <class T>
struct LossBackward {
  static constexpr int kEach = 4;
  const float* logits;
  const float* highest;
  const float* sums;
  const std::int32_t* labels;
  float* rows;
  std::int64_t n, valid, first;
  float weight;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const float* row = logits + t.block() * n;
    T* out = reinterpret_cast<T*>(rows + t.block() * n);
    const float most = highest[t.block()], factor = weight / sums[2 * t.block()];
    const std::int64_t target = labels[t.block()] - first;
    for (std::int64_t base = 0; base < n; base += t.threads() * kEach) {
      float d[kEach] = {};
      for (int i = 0; i < kEach; ++i) {
        const std::int64_t j = base + i * t.threads() + t.thread();
        if (j < valid) d[i] = exp_of(row[j] - most) * factor - (j == target ? weight : 0.0F);
      }
      t.sync();
      for (int i = 0; i < kEach; ++i) {
        const std::int64_t j = base + i * t.threads() + t.thread();
        if (j < n) out[j] = narrow<T>(d[i]);
      }
    }
  }
};

}  // namespace trivium::runtime::cuda
