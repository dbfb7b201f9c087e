// Cross-entropy over a split vocabulary (cpu/variants/loss.cpp has the formulas). Logits are fp32, a block a row.
#pragma once

#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

constexpr int kLossAhead = 4;  ///< packs of logits that a thread has under way at once

/// Calls visit(packs of W logits) for the thread's part of a row of `valid`, several packs at once; past the last logit
/// the values are the lowest number.
template <int W, class Thread, class Visit>
TRIVIUM_DEVICE void over_logits(Thread& t, const float* row, std::int64_t valid, const Visit& visit) {
  const std::int64_t step = t.threads() * W;
  std::int64_t j = t.thread() * W;
  for (; j + (kLossAhead - 1) * step + W <= valid; j += kLossAhead * step) {
    float x[kLossAhead][W];
    TRIVIUM_UNROLL
    for (int k = 0; k < kLossAhead; ++k) load<W>(row + j + k * step, x[k]);
    visit(x);
  }
  for (; j < valid; j += step) {
    float x[1][W];
    load<W>(row + j, x[0]);
    for (int w = 0; w < W; ++w) x[0][w] = j + w < valid ? x[0][w] : kLowest;
    visit(x);
  }
}

template <int K, int W>
TRIVIUM_DEVICE float largest_of(float most, const float (&x)[K][W]) {
  TRIVIUM_UNROLL
  for (int k = 0; k < K; ++k) {
    TRIVIUM_UNROLL
    for (int w = 0; w < W; ++w) most = Largest()(most, x[k][w]);
  }
  return most;
}

/// sum + e^(x - most) over all x.
template <int K, int W>
TRIVIUM_DEVICE float with_exponentials(float sum, float most, const float (&x)[K][W]) {
  TRIVIUM_UNROLL
  for (int k = 0; k < K; ++k) {
    TRIVIUM_UNROLL
    for (int w = 0; w < W; ++w) sum += exp_of(x[k][w] - most);
  }
  return sum;
}

template <int W>
struct LossMax {
  const float* logits;
  float* highest;
  std::int64_t n, valid;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    float most = kLowest;
    over_logits<W>(t, logits + t.block() * n, valid, [&](const auto& x) { most = largest_of(most, x); });
    most = over_block(t, most, reinterpret_cast<float*>(t.shared()), Largest());
    if (t.thread() == 0) highest[t.block()] = most;
  }
};

/// With `alone`, where no other rank has a part of the row, the maximum as well, in the same pass: a sum is to the
/// largest logit so far, and follows it.
template <int W>
struct LossSums {
  const float* logits;
  float* highest;
  const std::int32_t* labels;
  float* sums;
  std::int64_t n, valid, first;  ///< first: global number of column 0
  bool alone;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    auto* const room = reinterpret_cast<float*>(t.shared());
    const float* row = logits + t.block() * n;
    float most = alone ? kLowest : highest[t.block()], sum = 0;
    if (alone) {
      over_logits<W>(t, row, valid, [&](const auto& x) {
        const float higher = largest_of(most, x);
        sum = with_exponentials(sum * exp_of(most - higher), higher, x);
        most = higher;
      });
      const float own = most;
      most = over_block(t, most, room, Largest());
      sum *= exp_of(own - most);
    } else {
      over_logits<W>(t, row, valid, [&](const auto& x) { sum = with_exponentials(sum, most, x); });
    }
    sum = over_block(t, sum, room, Sum());
    if (t.thread() != 0) return;
    const std::int64_t target = labels[t.block()] - first;
    if (alone) highest[t.block()] = most;
    sums[2 * t.block()] = sum;
    sums[2 * t.block() + 1] = target >= 0 && target < valid ? row[target] - most : 0.0F;
  }
};

/// loss += weight times the sum over all tokens, or, with labels, over those whose label is not negative. One block.
struct Loss {
  const float* sums;
  const std::int32_t* labels;
  double* loss;
  std::int64_t m;
  double weight;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    double total = 0;
    for (std::int64_t r = t.thread(); r < m; r += t.threads()) {
      if (labels != nullptr && labels[r] < 0) continue;
      total += static_cast<double>(log_of(sums[2 * r])) - static_cast<double>(sums[2 * r + 1]);
    }
    total = over_block(t, total, reinterpret_cast<double*>(t.shared()), Sum());
    if (t.thread() == 0) *loss += total * weight;
  }
};

/// Gradients in the type T of the products that read them, at the start of each row of fp32, also where that is the
/// logits' own row: what is written lies before what is still to be read. 0 where the label is negative.
template <class T, int W>
struct LossBackward {
  static constexpr int kEach = 2;
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
    const float counted = labels[t.block()] < 0 ? 0.0F : weight;
    const float most = highest[t.block()], factor = counted / sums[2 * t.block()];
    const std::int64_t target = labels[t.block()] - first, step = t.threads() * W;
    for (std::int64_t base = t.thread() * W; base < n + t.thread() * W; base += kEach * step) {
      float d[kEach][W] = {};
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach; ++i) {
        if (base + i * step < valid) load<W>(row + base + i * step, d[i]);
      }
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach; ++i) {
        TRIVIUM_UNROLL
        for (int w = 0; w < W; ++w) {
          const std::int64_t j = base + i * step + w;
          d[i][w] = j < valid ? exp_of(d[i][w] - most) * factor - (j == target ? counted : 0.0F) : 0.0F;
        }
      }
      t.sync();
      TRIVIUM_UNROLL
      for (int i = 0; i < kEach; ++i) {
        if (base + i * step < n) store<W>(out + base + i * step, d[i]);
      }
    }
  }
};

}  // namespace trivium::runtime::cuda
