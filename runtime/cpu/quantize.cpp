// Products in 8 bits, emulated: operands are cast to E4M3 or E5M2 with a scale a block, and read back before a product
// of the op's own type. So sums are those of that type, as tensor cores' are of fp32.
//
// Every scale is the smallest power of two that brings its block's largest number into the format's range. Scales of
// other blocks then change no rounding but that of numbers below 2^-14 (E4M3; E5M2: 2^-29) of their block's largest: a
// split, whose ranks scale what they hold, casts what the unsplit run casts, up to those.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "program/ir/fp8_layout.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/operands.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/fp8.h"

namespace trivium::runtime::cpu {
namespace {

using program::AmaxHistory;
using program::Fp8;
using program::Fp8Layout;
using program::Fp8Operand;
using reduction::float_of_fp8;
using reduction::format_of;
using reduction::fp8_of_float;
using reduction::Fp8Type;

constexpr int kLeastExponent = -126, kMostExponent = 127, kE8M0Bias = 127;

Fp8Type type_of(Fp8 recipe, Fp8Operand operand) {
  const bool wide = operand == Fp8Operand::kGradient && program::scales_tensors(recipe);
  return wide ? Fp8Type::kE5M2 : Fp8Type::kE4M3;
}

/// Exponent of the smallest power of two that brings `largest` into the format's range.
template <class T>
int exponent_of(T largest, Fp8Type type) {
  if (largest == 0 || !std::isfinite(largest)) return 0;
  const T most = format_of(type).largest;
  int exponent = std::ilogb(largest) - std::ilogb(most);
  if (largest > std::ldexp(most, exponent)) ++exponent;
  return std::clamp(exponent, kLeastExponent, kMostExponent);
}

void put_scale(std::byte* scales, std::int64_t block, std::int64_t bytes, int exponent) {
  if (bytes == 1) {
    scales[block] = static_cast<std::byte>(exponent + kE8M0Bias);
    return;
  }
  const float scale = std::ldexp(1.F, exponent);
  std::memcpy(scales + block * bytes, &scale, sizeof scale);
}

float scale_at(const std::byte* scales, std::int64_t block, std::int64_t bytes) {
  if (bytes == 1) return std::ldexp(1.F, static_cast<int>(scales[block]) - kE8M0Bias);
  float scale = 0;
  std::memcpy(&scale, scales + block * bytes, sizeof scale);
  return scale;
}

/// Calls `each(block, first row, end, first column, end)` of every block in the order of the scales.
template <class Each>
void for_blocks(const Fp8Layout& layout, const Each& each) {
  std::int64_t block = 0;
  for (std::int64_t run = 0; run < layout.runs; ++run) {
    const std::int64_t begin = run * layout.run_rows, end = begin + layout.run_rows;
    for (std::int64_t row = begin; row < end; row += layout.block_rows) {
      for (std::int64_t column = 0; column < layout.columns; column += layout.block_columns, ++block) {
        each(block, row, std::min(end, row + layout.block_rows), column,
             std::min(layout.columns, column + layout.block_columns));
      }
    }
  }
}

/// In the scale's units, as fp32. What overflows there is beyond 8 bits as well, and saturates like it.
template <class T>
float scaled(T x, T inverse) {
  constexpr T kMost = std::numeric_limits<float>::max();
  const T y = x * inverse;
  return static_cast<float>(std::isfinite(x) ? std::clamp(y, -kMost, kMost) : y);
}

/// Scales by the largest number of each block, or by the one that is given. Returns the largest of all.
template <class T>
T cast(const T* x, const Fp8Layout& layout, Fp8Type type, std::optional<T> given, std::byte* to) {
  T largest_of_all = 0;
  auto* codes = reinterpret_cast<std::uint8_t*>(to);
  std::byte* scales = to + layout.scales_begin();
  for_blocks(layout, [&](std::int64_t block, std::int64_t row, std::int64_t end_row, std::int64_t column,
                         std::int64_t end_column) {
    T largest = 0;
    for (std::int64_t r = row; r < end_row; ++r) {
      for (std::int64_t c = column; c < end_column; ++c) {
        largest = std::max(largest, std::abs(x[r * layout.columns + c]));
      }
    }
    largest_of_all = std::max(largest_of_all, largest);
    const int exponent = exponent_of(given.value_or(largest), type);
    put_scale(scales, block, layout.scale_bytes, exponent);
    const T inverse = std::ldexp(T(1), -exponent);
    for (std::int64_t r = row; r < end_row; ++r) {
      for (std::int64_t c = column; c < end_column; ++c) {
        const std::int64_t i = r * layout.columns + c;
        codes[i] = fp8_of_float(scaled(x[i], inverse), type);
      }
    }
  });
  return largest_of_all;
}

template <class T>
void read_back(const std::byte* from, const Fp8Layout& layout, Fp8Type type, std::vector<T>& x) {
  std::array<float, 256> numbers;
  for (std::size_t code = 0; code < numbers.size(); ++code) {
    numbers[code] = float_of_fp8(static_cast<std::uint8_t>(code), type);
  }
  x.resize(static_cast<std::size_t>(layout.rows() * layout.columns));
  const auto* codes = reinterpret_cast<const std::uint8_t*>(from);
  const std::byte* scales = from + layout.scales_begin();
  for_blocks(layout, [&](std::int64_t block, std::int64_t row, std::int64_t end_row, std::int64_t column,
                         std::int64_t end_column) {
    const T scale = scale_at(scales, block, layout.scale_bytes);
    for (std::int64_t r = row; r < end_row; ++r) {
      for (std::int64_t c = column; c < end_column; ++c) {
        const std::int64_t i = r * layout.columns + c;
        x[static_cast<std::size_t>(i)] = scale * T(numbers[codes[i]]);
      }
    }
  });
}

template <class T>
void quantize(const KernelArguments& a) {
  const T* x = input<T>(a, 0);
  const Fp8Type type = type_of(a.op->fp8, a.op->operand);
  auto* const history = reinterpret_cast<float*>(a.in[1]);
  std::optional<T> given;
  if (history != nullptr && !a.values->looks_first) given = T(history[AmaxHistory::kOfWindow * a.op->k]);
  for (std::size_t way = 0; way < 2; ++way) {
    if (a.out[way] == nullptr) continue;
    const T largest = cast(x, program::cast_layout(*a.op, way == 0), type, given, a.out[way]);
    if (history != nullptr) *history = std::max(*history, static_cast<float>(largest));
  }
  T* dbias = output<T>(a, 2);
  if (dbias == nullptr) return;
  std::vector<T> sums(static_cast<std::size_t>(a.op->n), T(0));
  for (std::int64_t r = 0; r < a.op->m; ++r) {
    for (std::int64_t c = 0; c < a.op->n; ++c) sums[static_cast<std::size_t>(c)] += x[r * a.op->n + c];
  }
  for (std::int64_t c = 0; c < a.op->n; ++c) dbias[c] += sums[static_cast<std::size_t>(c)];
}

/// Of every site (see AmaxHistory).
void record_largest(const KernelArguments& a) {
  const std::int64_t sites = a.op->m, steps = a.op->k;
  auto* const history = reinterpret_cast<float*>(a.out[0]);
  float* const window = history + AmaxHistory::kFirstStep * sites;
  for (std::int64_t site = 0; site < sites; ++site) {
    const float largest = history[AmaxHistory::kThisStep * sites + site];
    window[a.values->step % steps * sites + site] = std::isfinite(largest) ? largest : 0;
    float& of_window = history[AmaxHistory::kOfWindow * sites + site] = 0;
    for (std::int64_t step = 0; step < steps; ++step) of_window = std::max(of_window, window[step * sites + site]);
  }
}

/// A product whose first two operands are in 8 bits: that of the numbers they stand for.
template <class T, program::DType type>
void product(const KernelArguments& a) {
  thread_local std::array<std::vector<T>, 2> rooms;
  KernelArguments wide = a;
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Fp8Operand what = program::operand_of(*a.op, i);
    read_back(a.in[at], program::operand_layout(*a.op, i), type_of(a.op->fp8, what), rooms[at]);
    wide.in[at] = reinterpret_cast<std::byte*>(rooms[at].data());
  }
  find_kernel(a.op->kind, type)(wide);
}

}  // namespace

Kernel fp8_product(program::DType type) {
  if (type == program::DType::kFp32) return product<float, program::DType::kFp32>;
  return type == program::DType::kFp64 ? product<double, program::DType::kFp64> : widened;
}

void add_casts(KernelTable& table) {
  table.add(program::OpKind::kQuantize, quantize<float>, quantize<double>);
  table.add_any(program::OpKind::kRecordLargest, record_largest);
}

}  // namespace trivium::runtime::cpu
