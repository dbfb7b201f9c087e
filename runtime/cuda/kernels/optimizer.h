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

/// v of all threads of the block, the same for all: addition of pairs takes its operands in either order.
template <class Thread>
TRIVIUM_DEVICE Double2 pair_over_block(Thread& t, Double2 v, Double2* room) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) v = v + Double2{t.shuffle_xor(v.hi, mask), t.shuffle_xor(v.lo, mask)};
  if (t.thread() % kWarp == 0) room[t.thread() / kWarp] = v;
  t.sync();
  v = room[0];
  for (int warp = 1; warp < t.threads() / kWarp; ++warp) v = v + room[warp];
  return v;
}

/// Sum of squares as pairs: partial (blocks). An element's square is exact in a double.
struct SquarePartials {
  static constexpr int kAhead = 4;  ///< loads, and sums of their own, that a thread has under way at once
  const float* gradients;           ///< as if of element 0
  Double2* partial;
  Ranges ranges;
  static constexpr int shared_bytes(int threads) { return threads / kWarp * static_cast<int>(sizeof(Double2)); }

  static TRIVIUM_DEVICE void add_square(Double2& sum, float g) {
    const double wide = static_cast<double>(g);
    sum = plus(sum, wide * wide);
  }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    Double2 sums[kAhead] = {};
    const std::int64_t step = t.blocks() * t.threads(), own = t.block() * t.threads() + t.thread();
    for (int range = 0; range < ranges.count; ++range) {
      const std::int64_t end = ranges.end[range], columns = ranges.columns[range];
      std::int64_t i = ranges.begin[range] + own;
      for (; columns == 0 && i + (kAhead - 1) * step < end; i += kAhead * step) {
        float g[kAhead];
        TRIVIUM_UNROLL
        for (int k = 0; k < kAhead; ++k) g[k] = gradients[i + k * step];
        TRIVIUM_UNROLL
        for (int k = 0; k < kAhead; ++k) add_square(sums[k], g[k]);
      }
      for (; i < end; i += step) {
        const bool is_other = columns > 0 && (i - ranges.origin[range]) % columns >= ranges.counted[range];
        if (!is_other) add_square(sums[0], gradients[i]);  // else of key heads that an earlier rank counts
      }
    }
    const Double2 mine = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const Double2 sum = pair_over_block(t, mine, reinterpret_cast<Double2*>(t.shared()));
    if (t.thread() == 0) partial[t.block()] = sum;
  }
};

/// norm (a pair) += partial (count). One block.
struct SquareTotal {
  const Double2* partial;
  double* norm;
  int count;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    Double2 sum{0, 0};
    for (int i = t.thread(); i < count; i += t.threads()) sum = sum + partial[i];
    sum = pair_over_block(t, sum, reinterpret_cast<Double2*>(t.shared()));
    if (t.thread() != 0) return;
    sum = Double2{norm[0], norm[1]} + sum;
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
        // All that is read before anything is written: nobody but this line says that they lie apart.
        const float g = gradients[i] * clip, p = master != nullptr ? master[i] : widen(parameters[i]);
        const float m = v.beta1 * first[i] + v.rest1 * g, w = v.beta2 * second[i] + v.rest2 * g * g;
        first[i] = m;
        second[i] = w;
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
