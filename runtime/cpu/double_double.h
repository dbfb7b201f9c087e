// Sums of doubles carried as an unevaluated pair hi + lo of twice the precision, so that their rounded value does not
// depend on how the terms were spread over ranks. Knuth's TwoSum and Dekker's TwoProduct (Dekker 1971, Numer. Math.
// 18).
#pragma once

#include <cmath>

namespace trivium::runtime::cpu {

/// hi + lo with |lo| at most half a unit in the last place of hi. One addition errs by at most about 2^-104 relative
/// when all terms have one sign. Needs plain IEEE arithmetic: not for -ffast-math.
struct DoubleDouble {
  double hi = 0, lo = 0;
  double rounded() const { return hi + lo; }
};

/// a + b exactly.
inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

/// a + b exactly where |a| >= |b|.
inline DoubleDouble fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// a * b exactly (but for underflow).
inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = two_sum(a.hi, b.hi);
  const DoubleDouble low = two_sum(a.lo, b.lo);
  const DoubleDouble first = fast_two_sum(high.hi, high.lo + low.hi);
  return fast_two_sum(first.hi, first.lo + low.lo);
}

/// The square of an element, exactly. That of a float fits a double.
inline DoubleDouble exact_square(float x) { return {static_cast<double>(x) * static_cast<double>(x), 0}; }
inline DoubleDouble exact_square(double x) { return two_product(x, x); }

}  // namespace trivium::runtime::cpu
