// Activations of the MLP, with the bias of the layer before: u = x + bias. program::activation_of:
//   0 GELU, tanh form as in GPT-2 (Hendrycks, Gimpel 2016, arXiv 1606.08415, section 2):  y = u/2 (1 + tanh z)
//   1 ReLU:  y = max(u, 0)
//   2 SwiGLU, 3 GeGLU (Shazeer 2020, arXiv 2002.05202, eq. 6):  u is (T, gate n | up n),  y = silu(gate) up, gelu(gate)
//   up
//   4 GELU, exact:  y = u/2 (1 + erf(u / sqrt 2))
//   6 clamped SwiGLU (gpt-oss):  y = f(min(gate, 7)) (1 + up cut to -7 .. 7),  f(u) = u s(1.702 u)
//   5 squared ReLU (So et al. 2021, arXiv 2109.08668):  y = max(u, 0)^2
// Since (1 + tanh z)/2 = s(2z) with s the logistic function, GELU and SiLU are both  f(u) = u s(g(u)),  with
//   GELU: g = 2 z = 2 sqrt(2/pi) (u + 0.044715 u^3);  SiLU: g = u, or 1.702 u.  Then  f' = s + u s (1 - s) g'.

#include <cmath>

#include "models/model.h"
#include "program/ir/op_views.h"
#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

using models::Activation;

constexpr double kTwoRootTwoOverPi = 1.5957691216057308;  // 2 sqrt(2/pi)
constexpr double kCubic = 0.044715;
constexpr double kRootOfHalf = 0.70710678118654752, kRootOfOneOverTwoPi = 0.39894228040143268;
// |g| is cut here, where s is 0 or 1 to 2e-35: beyond, floats turn subnormal and ten times slower.
constexpr double kFlat = 80;

[[maybe_unused]] static Activation kind_of(const program::Op& op) { return program::activation_of(op); }

template <class T>
static void apply_gelu_erf(const ConstRow<T>& u, Row<T>& value, T* slope_data) {
  const T root = static_cast<T>(kRootOfHalf), peak = static_cast<T>(kRootOfOneOverTwoPi);
  for (Index i = 0; i < u.size(); ++i) {
    const T x = u[i], below = T(0.5) * (T(1) + std::erf(x * root));  // of the normal distribution
    if (slope_data != nullptr) slope_data[i] = below + x * peak * std::exp(T(-0.5) * x * x);
    value[i] = x * below;
  }
}

/// value = f(u) and, where asked for, slope = f'(u). `value` may be `u`; `slope` lies apart.
template <class T>
static void apply(Activation kind, const T* u_data, Index n, T* value_data, T* slope_data) {
  const ConstRow<T> u(u_data, n);
  Row<T> value(value_data, n);
  if (kind == Activation::kRelu) {
    if (slope_data != nullptr) Row<T>(slope_data, n) = (u > T(0)).template cast<T>();
    value = u.max(T(0));
    return;
  }
  if (kind == Activation::kSquaredRelu) {
    if (slope_data != nullptr) Row<T>(slope_data, n) = T(2) * u.max(T(0));
    value = u.max(T(0)).square();
    return;
  }
  if (kind == Activation::kGeluErf) return apply_gelu_erf(u, value, slope_data);
  Row<T> s(scratch<T, 0>(n), n);
  const bool clamped = kind == Activation::kClampedSwiglu, silu = kind == Activation::kSwiglu || clamped;
  const T scale = static_cast<T>(kTwoRootTwoOverPi), cubic = static_cast<T>(kCubic), flat = static_cast<T>(kFlat);
  const T steepness = clamped ? static_cast<T>(models::kClampedSlope) : T(1);
  if (silu) {
    s = (T(1) + (-steepness * u).min(flat).max(-flat).exp()).inverse();
  } else {
    s = (T(1) + (-scale * (u + cubic * u.cube())).min(flat).max(-flat).exp()).inverse();
  }
  if (slope_data != nullptr) {
    Row<T> slope(slope_data, n);
    if (silu) {
      slope = s + steepness * u * s * (T(1) - s);
    } else {
      slope = s + u * s * (T(1) - s) * (scale * (T(1) + T(3) * cubic * u.square()));
    }
  }
  value = u * s;
}

/// x + bias of row r in scratch: (width).
template <class T>
static T* biased_row(const KernelArguments& a, Index r, Index width) {
  T* u = scratch<T, 1>(width);
  const ConstRow<T> x(input<T>(a, 0) + r * width, width);
  if (const T* bias = input<T>(a, 1)) {
    Row<T>(u, width) = x + ConstRow<T>(bias, width);
  } else {
    Row<T>(u, width) = x;
  }
  return u;
}

/// Cuts a row of gates and values as kClampedSwiglu does, and keeps which were beyond: 0 where their gradient ends.
template <class T>
static void clamp(T* u, Index n, T* inside) {
  const T limit = static_cast<T>(models::kClampedLimit);
  Row<T> gate(u, n), up(u + n, n);
  if (inside != nullptr) {
    Row<T>(inside, n) = (gate <= limit).template cast<T>();
    Row<T>(inside + n, n) = (up.abs() <= limit).template cast<T>();
  }
  gate = gate.min(limit);
  up = T(1) + up.min(limit).max(-limit);
}

template <class T>
static void activation(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n;
  const Activation kind = kind_of(*a.op);
  const bool gated = models::is_gated(kind), clamped = kind == Activation::kClampedSwiglu;
  const Index width = gated ? 2 * n : n;
  for (Index r = 0; r < m; ++r) {
    T* u = biased_row<T>(a, r, width);
    if (clamped) clamp<T>(u, n, nullptr);
    T* y = output<T>(a, 0) + r * n;
    apply<T>(kind, u, n, y, nullptr);
    if (gated) Row<T>(y, n) *= ConstRow<T>(u + n, n);
  }
}

// dx may be x: a row of x is copied before that row of dx is written.
template <class T>
static void activation_backward(const KernelArguments& a) {
  const Index m = a.op->m, n = a.op->n;
  const Activation kind = kind_of(*a.op);
  const bool gated = models::is_gated(kind), clamped = kind == Activation::kClampedSwiglu;
  const Index width = gated ? 2 * n : n;
  T* dbias = output<T>(a, 1);
  Row<T> value(scratch<T, 2>(n), n), slope(scratch<T, 3>(n), n), dbias_sum(scratch<T, 4>(width), width);
  T* inside = clamped ? scratch<T, 5>(width) : nullptr;
  dbias_sum.setZero();
  for (Index r = 0; r < m; ++r) {
    T* u = biased_row<T>(a, r, width);
    if (clamped) clamp<T>(u, n, inside);
    const ConstRow<T> dy(input<T>(a, 2) + r * n, n);
    T* dx = output<T>(a, 0) + r * width;
    apply<T>(kind, u, n, value.data(), slope.data());
    if (gated) {
      Row<T>(dx, n) = dy * slope * ConstRow<T>(u + n, n);
      Row<T>(dx + n, n) = dy * value;
    } else {
      Row<T>(dx, n) = dy * slope;
    }
    if (clamped) Row<T>(dx, width) *= ConstRow<T>(inside, width);
    if (dbias != nullptr) dbias_sum += ConstRow<T>(dx, width);
  }
  if (dbias != nullptr) Row<T>(dbias, width) += dbias_sum;
}

void add_activations(KernelTable& table) {
  table.add(program::OpKind::kActivation, activation<float>, activation<double>);
  table.add(program::OpKind::kActivationBackward, activation_backward<float>, activation_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
