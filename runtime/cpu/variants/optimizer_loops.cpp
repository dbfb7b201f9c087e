#include "runtime/cpu/optimizer_loops.h"

#include <cmath>

#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

constexpr Index kLanes = 32;     // independent sums: no addition waits for the one before
constexpr Index kTogether = 64;  // additions of a lane before its pair is brought to order again
constexpr Index kAhead = 4096;   // bytes: beyond a page, where the hardware's own prefetching stops
using Lanes = Eigen::Array<double, kLanes, 1>;

/// Asks for the cache lines of `count` elements that a loop reaches kAhead later.
template <class T>
static void prefetch(const T* x, Index count) {
  const char* at = reinterpret_cast<const char*>(x) + kAhead;
  for (Index line = 0; line < count * static_cast<Index>(sizeof(T)); line += 64) __builtin_prefetch(at + line);
}

constexpr Index kBlock = 64;  // elements of AdamW between two rounds of prefetching

template <class T>
static void adamw_loop(const AdamWFactors<T>& f, T* p, const T* g, T* first, T* second, std::int64_t count) {
  T* __restrict parameter = p;
  const T* __restrict gradient = g;
  T* __restrict m = first;
  T* __restrict v = second;
  for (std::int64_t block = 0; block < count; block += kBlock) {
    const std::int64_t end = block + kBlock < count ? block + kBlock : count;
    prefetch<T>(parameter + block, kBlock);
    prefetch<T>(gradient + block, kBlock);
    prefetch<T>(m + block, kBlock);
    prefetch<T>(v + block, kBlock);
    for (std::int64_t i = block; i < end; ++i) {
      const T clipped = gradient[i] * f.clip;
      m[i] = f.beta1 * m[i] + f.rest1 * clipped;
      v[i] = f.beta2 * v[i] + f.rest2 * clipped * clipped;
      const T direction = m[i] * f.correct1 / (std::sqrt(v[i] * f.correct2) + f.epsilon);
      parameter[i] -= f.rate * (direction + f.decay * parameter[i]);
    }
  }
}

/// Squares of kLanes elements, and what their rounding lost: nothing for floats, whose squares fit a double.
static Lanes squares_of(const float* x, Lanes& lost) {
  lost.setZero();
  return Eigen::Map<const Eigen::Array<float, kLanes, 1>>(x).cast<double>().square();
}
static Lanes squares_of(const double* x, Lanes& lost) {
  const Lanes square = Eigen::Map<const Lanes>(x).square();
  for (Index i = 0; i < kLanes; ++i) lost[i] = std::fma(x[i], x[i], -square[i]);
  return square;
}

/// hi + lo += square + lost, lane by lane. Knuth's TwoSum finds what the sum rounds away; lo only collects it, which
/// over kTogether additions errs by 2^-100 of the sum at most.
static void add_lanes(Lanes& hi, Lanes& lo, const Lanes& square, const Lanes& lost) {
  const Lanes sum = hi + square;
  const Lanes part = sum - hi;
  lo += (hi - (sum - part)) + (square - part) + lost;
  hi = sum;
}

static void in_order(Lanes& hi, Lanes& lo) {
  const Lanes sum = hi + lo;
  lo = lo - (sum - hi);
  hi = sum;
}

template <class T>
static void squares_loop(const T* x, std::int64_t count, double* total_hi, double* total_lo) {
  Lanes hi = Lanes::Zero(), lo = Lanes::Zero(), lost;
  Index since = 0;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    prefetch(x + i, kLanes);
    add_lanes(hi, lo, squares_of(x + i, lost), lost);
    if (++since == kTogether) since = 0, in_order(hi, lo);
  }
  Eigen::Array<T, kLanes, 1> rest = Eigen::Array<T, kLanes, 1>::Zero();
  for (Index lane = 0; i < count; ++i, ++lane) rest[lane] = x[i];
  add_lanes(hi, lo, squares_of(rest.data(), lost), lost);
  in_order(hi, lo);
  // The lanes' pairs in order, each addition as in double_double.h.
  double sum_hi = 0, sum_lo = 0;
  for (Index lane = 0; lane < kLanes; ++lane) {
    const double sum = sum_hi + hi[lane], part = sum - sum_hi;
    const double error = (sum_hi - (sum - part)) + (hi[lane] - part);
    const double low = error + (sum_lo + lo[lane]);
    sum_hi = sum + low;
    sum_lo = low - (sum_hi - sum);
  }
  *total_hi = sum_hi;
  *total_lo = sum_lo;
}

OptimizerLoops<float> float_loops();  // called by dispatch.cpp
OptimizerLoops<double> double_loops();

OptimizerLoops<float> float_loops() { return {adamw_loop<float>, squares_loop<float>, newton_schulz}; }
OptimizerLoops<double> double_loops() { return {adamw_loop<double>, squares_loop<double>, newton_schulz}; }

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
