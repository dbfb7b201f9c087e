// Rotary position embedding (Su et al. 2021, arXiv 2104.09864, eq. 34) on the q and k heads of (T, q|k|v), in place.
// Half-split pairing as in llama: of the components that turn, i turns with i + half by position x frequency i. And
// what layers may have instead: queries that grow with their position (Nakanishi 2025, arXiv 2501.19399).

#include <cmath>

#include "program/ir/op_views.h"
#include "runtime/cpu/variants/eigen.h"
#include "runtime/cpu/variants/kernels.h"

namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT {

/// Cosines, then sines, of every position: (2, sequence, half). Kept by the thread until they are others; `Which` of
/// two, as layers with windows may have their own.
template <class T, int Which>
static const T* angles(Index sequence, const program::RotaryTable& rotary) {
  thread_local Index known_sequence = 0;
  thread_local double known_amplitude = 0;
  thread_local DenseRow<double> known;
  thread_local DenseRow<T> table;
  const auto half = static_cast<Index>(rotary.frequencies.size());
  const ConstRow<double> frequencies(rotary.frequencies.data(), half);
  if (known_sequence == sequence && known_amplitude == rotary.amplitude && known.size() == half &&
      (known == frequencies).all()) {
    return table.data();
  }
  table.resize(2 * sequence * half);
  for (Index p = 0; p < sequence; ++p) {
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * frequencies[i];
      table[p * half + i] = static_cast<T>(std::cos(angle) * rotary.amplitude);
      table[(sequence + p) * half + i] = static_cast<T>(std::sin(angle) * rotary.amplitude);
    }
  }
  known_sequence = sequence;
  known_amplitude = rotary.amplitude;
  known = frequencies;
  return table.data();
}

/// Turns every head by +angle (direction 1) or -angle (direction -1, the transpose and so the gradient).
template <class T>
static void turn(const KernelArguments& a, T direction) {
  const program::Op& op = *a.op;
  const auto half = static_cast<Index>(a.rotary->frequencies.size());
  const Index turned = op.heads + op.kv_heads;
  const Index width = program::qkv_width_of(op);
  const T* table = program::turns_by_window_frequencies(op) ? angles<T, 1>(op.sequence, *a.rotary)
                                                            : angles<T, 0>(op.sequence, *a.rotary);
  T* qkv = output<T>(a, 0);
  if (a.in[0] != nullptr && a.in[0] != a.out[0]) Row<T>(qkv, op.m * width) = ConstRow<T>(input<T>(a, 0), op.m * width);
  Row<T> kept(scratch<T, 0>(half), half);
  for (Index r = 0; r < op.m; ++r) {
    const Index p = document_position_of(a, r, op.sequence);
    const ConstRow<T> cosine(table + p * half, half), sine(table + (op.sequence + p) * half, half);
    for (Index h = 0; h < turned; ++h) {
      Row<T> first(qkv + r * width + h * op.head_dim, half), second(first.data() + half, half);
      kept = first;
      first = kept * cosine - second * sine * direction;
      second = second * cosine + kept * sine * direction;
    }
  }
}

template <class T>
static void rotary(const KernelArguments& a) {
  turn<T>(a, T(1));
}

template <class T>
static void rotary_backward(const KernelArguments& a) {
  turn<T>(a, T(-1));
}

/// The product is its own gradient.
template <class T>
static void scale_queries(const KernelArguments& a) {
  const program::Op& op = *a.op;
  const Index width = program::qkv_width_of(op), queries = op.n;
  T* qkv = output<T>(a, 0);
  if (a.in[0] != nullptr && a.in[0] != a.out[0]) Row<T>(qkv, op.m * width) = ConstRow<T>(input<T>(a, 0), op.m * width);
  for (Index r = 0; r < op.m; ++r) {
    const auto runs = static_cast<double>((document_position_of(a, r, op.sequence) + 1) / op.k);
    Row<T>(qkv + r * width, queries) *= static_cast<T>(1 + op.score_scale * std::log1p(runs));
  }
}

void add_rotary(KernelTable& table) {
  table.add(program::OpKind::kScaleQueries, scale_queries<float>, scale_queries<double>);
  table.add(program::OpKind::kRotary, rotary<float>, rotary<double>);
  table.add(program::OpKind::kRotaryBackward, rotary_backward<float>, rotary_backward<double>);
}

}  // namespace trivium::runtime::cpu::TRIVIUM_CPU_VARIANT
