// The optimizer's kernels over a bucket's part (cpu/optimizer.cpp has the formulas).
#pragma once

#include "runtime/cuda/kernels/elementwise_math.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// Elements of a bucket that belong to parameters, numbered from the start of the chunk's.
struct Ranges {
  static constexpr int kMost = 32;
  std::int64_t begin[kMost], end[kMost];
  bool decayed[kMost];
  std::int64_t origin[kMost];   ///< first element of the parameter
  std::int64_t columns[kMost];  ///< of its rows; 0: all elements count in the norm
  std::int64_t counted[kMost];  ///< columns that this rank counts
  int count = 0;
};

/// Sum of squares as pairs: partial (blocks). An element's square is exact in a double.
struct SquarePartials {
  const float* gradients;  ///< as if of element 0
  Double2* partial;
  Ranges ranges;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    Double2 sum{0, 0};
    const std::int64_t step = t.blocks() * t.threads();
    for (int range = 0; range < ranges.count; ++range) {
      for (std::int64_t i = ranges.begin[range] + t.block() * t.threads() + t.thread(); i < ranges.end[range];
           i += step) {
        if (ranges.columns[range] > 0 && (i - ranges.origin[range]) % ranges.columns[range] >= ranges.counted[range]) {
          continue;  // key heads that an earlier rank counts
        }
        const double g = static_cast<double>(gradients[i]);
        sum = sum + Double2{g * g, 0};
      }
    }
    auto* room = reinterpret_cast<Double2*>(t.shared());
    room[t.thread()] = sum;
    t.sync();
    if (t.thread() != 0) return;
    for (int i = 1; i < t.threads(); ++i) sum = sum + room[i];
    partial[t.block()] = sum;
  }
};

/// norm (a pair) += partial (count). One thread.
struct SquareTotal {
  const Double2* partial;
  double* norm;
  int count;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    if (t.thread() != 0) return;
    Double2 sum{norm[0], norm[1]};
    for (int i = 0; i < count; ++i) sum = sum + partial[i];
    norm[0] = sum.hi;
    norm[1] = sum.lo;
  }
};

/// pairs (count) = sum over members of gathered (members, count), in their order.
struct PairSums {
  const Double2* gathered;
  Double2* pairs;
  std::int64_t count;
  int members;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const std::int64_t i = t.block() * t.threads() + t.thread();
    if (i >= count) return;
    Double2 sum = gathered[i];
    for (int member = 1; member < members; ++member) sum = sum + gathered[member * count + i];
    pairs[i] = sum;
  }
};

struct AdamWValues {
  float rate, beta1, beta2, rest1, rest2, correct1, correct2, epsilon, decay;
  double clip_norm;
  double unscale;  ///< 1 / the scale that gradients and their norm carry
};

/// Parameters of type T with, where that is not fp32, the copy that is stepped: `master`.
template <class T>
struct AdamW {
  T* parameters;  ///< as if of element 0, as are the others
  const float* gradients;
  float* first;
  float* second;
  float* master;  ///< null: the parameters themselves
  const double* norm;
  AdamWValues v;
  Ranges ranges;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    const double root = wide_root(norm[0] + norm[1]) * v.unscale;
    if (!(root < kInfinite))
      return;  // gradients overflowed: all ranks have the same norm, and leave out the same steps
    const double limit = v.clip_norm / (root + 1e-6);
    const float clip = static_cast<float>((v.clip_norm > 0 && limit < 1 ? limit : 1.0) * v.unscale);
    const std::int64_t step = t.blocks() * t.threads();
    for (int range = 0; range < ranges.count; ++range) {
      const float decay = ranges.decayed[range] ? v.decay : 0.0F;
      for (std::int64_t i = ranges.begin[range] + t.block() * t.threads() + t.thread(); i < ranges.end[range];
           i += step) {
        const float g = gradients[i] * clip;
        const float m = v.beta1 * first[i] + v.rest1 * g, w = v.beta2 * second[i] + v.rest2 * g * g;
        first[i] = m;
        second[i] = w;
        const float p = master != nullptr ? master[i] : widen(parameters[i]);
        const float direction = m * v.correct1 / (root_of(w * v.correct2) + v.epsilon);
        const float stepped = p - v.rate * (direction + decay * p);
        if (master != nullptr) master[i] = stepped;
        parameters[i] = narrow<T>(stepped);
      }
    }
  }

 private:
  static constexpr double kInfinite = __builtin_huge_val();
  static TRIVIUM_DEVICE double wide_root(double x) {
#if defined(__CUDA_ARCH__)
    return sqrt(x);
#else
    return std::sqrt(x);
#endif
  }
};

}  // namespace trivium::runtime::cuda
