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

/// Which items of one range after the other a thread has. A range begins at the block after that in which the one
/// before it ended, so that short ranges do not all fall to the first blocks.
class Deal {
 public:
  /// The thread's first item; others follow by step().
  template <class Thread>
  TRIVIUM_DEVICE std::int64_t own(const Thread& t) const {
    const std::int64_t block = t.block() - first_;
    return (block < 0 ? block + t.blocks() : block) * t.threads() + t.thread();
  }
  template <class Thread>
  static TRIVIUM_DEVICE std::int64_t step(const Thread& t) {
    return t.blocks() * t.threads();
  }
  /// After a range of so many items.
  template <class Thread>
  TRIVIUM_DEVICE void pass(const Thread& t, std::int64_t items) {
    first_ = (first_ + (items + t.threads() - 1) / t.threads()) % t.blocks();
  }

 private:
  std::int64_t first_ = 0;
};

/// Sum of squares as pairs: partial (blocks). An element's square is exact in a double.
struct SquarePartials {
  static constexpr int kBlocksAtOnce = 4;
  static constexpr int kAhead = 4, kPack = 4;  ///< packs that a thread has under way at once; elements of a pack
  const float* gradients;                      ///< as if of element 0
  Double2* partial;
  Ranges ranges;
  static constexpr int shared_bytes(int threads) { return threads / kWarp * static_cast<int>(sizeof(Double2)); }

  static TRIVIUM_DEVICE void add_square(Double2& sum, float g) {
    const double wide = static_cast<double>(g);
    sum = plus(sum, wide * wide);
  }

  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    Double2 sums[kPack] = {};
    Deal deal;
    for (int range = 0; range < ranges.count; ++range) {
      const float* const from = gradients + ranges.begin[range];
      const std::int64_t count = ranges.end[range] - ranges.begin[range];
      if (ranges.columns[range] > 0) {
        add_counted(t, range, deal.own(t), sums[0]);
        deal.pass(t, count);
      } else {
        deal.pass(t, add_all(t, from, count, deal.own(t), sums));
      }
    }
    const Double2 mine = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    const Double2 sum = pair_over_block(t, mine, reinterpret_cast<Double2*>(t.shared()));
    if (t.thread() == 0) partial[t.block()] = sum;
  }

 private:
  /// Packs from the first address on where one may be read, and what is before and after them one by one. How many
  /// packs there are.
  template <class Thread>
  static TRIVIUM_DEVICE std::int64_t add_all(const Thread& t, const float* from, std::int64_t count, std::int64_t own,
                                             Double2 (&sums)[kPack]) {
    constexpr std::uintptr_t kBytes = kPack * sizeof(float);
    const auto before =
        static_cast<std::int64_t>((kBytes - reinterpret_cast<std::uintptr_t>(from) % kBytes) % kBytes / sizeof(float));
    const std::int64_t head = before < count ? before : count, packs = (count - head) / kPack;
    const float* const body = from + head;
    if (own < head) add_square(sums[0], from[own]);
    if (own < count - head - packs * kPack) add_square(sums[0], body[packs * kPack + own]);
    const std::int64_t step = Deal::step(t);
    for (std::int64_t i = own; i < packs; i += kAhead * step) {
      // Always read, so that no load waits for another's answer: where there is no pack the last.
      float g[kAhead][kPack];
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const std::int64_t pack = i + k * step < packs ? i + k * step : packs - 1;
        load<kPack>(body + pack * kPack, g[k]);
      }
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        for (int e = 0; e < kPack; ++e) add_square(sums[e], i + k * step < packs ? g[k][e] : 0.0F);
      }
    }
    return packs;
  }

  /// All but those of key heads that an earlier rank counts.
  template <class Thread>
  TRIVIUM_DEVICE void add_counted(const Thread& t, int range, std::int64_t own, Double2& sum) const {
    for (std::int64_t i = ranges.begin[range] + own; i < ranges.end[range]; i += Deal::step(t)) {
      if ((i - ranges.origin[range]) % ranges.columns[range] < ranges.counted[range]) add_square(sum, gradients[i]);
    }
  }
};

/// norm (a pair) += partial (count). One block.
struct SquareTotal {
  const Double2* partial;
  double* norm;
  int count;
  template <class Thread>
  TRIVIUM_DEVICE void operator()(Thread& t) const {
    constexpr int kAhead = 4;
    Double2 sum{0, 0};
    for (int i = t.thread(); i < count; i += kAhead * t.threads()) {
      Double2 part[kAhead] = {};
      TRIVIUM_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (i + k * t.threads() < count) part[k] = partial[i + k * t.threads()];
      }
      sum = sum + ((part[0] + part[1]) + (part[2] + part[3]));
    }
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
  static constexpr int kBlocksAtOnce = 4;
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
    Deal deal;
    for (int range = 0; range < ranges.count; ++range) {
      const float decay = ranges.decayed[range] ? v.decay : 0.0F;
      const std::int64_t end = ranges.end[range], step = Deal::step(t);
      for (std::int64_t i = ranges.begin[range] + deal.own(t); i < end; i += kAhead * step) {
        Element of[kAhead];
        TRIVIUM_UNROLL
        for (int k = 0; k < kAhead; ++k) of[k] = element(i + k * step < end ? i + k * step : end - 1);
        TRIVIUM_UNROLL
        for (int k = 0; k < kAhead; ++k) {
          if (i + k * step < end) take_step(i + k * step, of[k], clip, decay);
        }
      }
      deal.pass(t, end - ranges.begin[range]);
    }
  }

 private:
  static constexpr int kAhead = 4;
  /// All that is read, before anything is written: nobody but this says that they lie apart.
  struct Element {
    float g, p, m, w;
  };
  TRIVIUM_DEVICE Element element(std::int64_t i) const {
    return {gradients[i], master != nullptr ? master[i] : widen(parameters[i]), first[i], second[i]};
  }
  TRIVIUM_DEVICE void take_step(std::int64_t i, const Element& of, float clip, float decay) const {
    const float g = of.g * clip, m = v.beta1 * of.m + v.rest1 * g, w = v.beta2 * of.w + v.rest2 * g * g;
    first[i] = m;
    second[i] = w;
    const float direction = m * v.correct1 / (root_of(w * v.correct2) + v.epsilon);
    const float stepped = of.p - v.rate * (direction + decay * of.p);
    if (master != nullptr) master[i] = stepped;
    parameters[i] = narrow<T>(stepped);
  }

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
