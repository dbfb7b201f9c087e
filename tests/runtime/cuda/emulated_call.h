// One op on the CPU backend and on the host emulation of the CUDA kernels, from the same operands.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "runtime/cpu/kernels.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/kernels/numbers.h"

namespace trivium::runtime::cuda {

/// What an operand is made of in a run in type T: T itself, or the same in all types.
enum class Form { kTyped, kWide, kInts, kPair, kBytes };

/// An op with its operands, as numbers. Typed operands are rounded to 16 bits beforehand where the emulated has 16, so
/// that both sides see the same input.
struct EmulatedCall {
  program::Op op;
  KernelArguments a;
  StepValues values;
  program::Routing routing;
  struct Operand {
    Form form = Form::kTyped;
    std::vector<double> numbers;
    bool given = false;
  };
  std::array<Operand, program::kMaxOperands> in;
  std::array<Operand, 3> out;  ///< before the call; of what only is written, anything
  bool in_place = false;       ///< out[0] is in[0]
  bool raises = false;         ///< in[1] is changed, and given as out[2], which the op has not
  bool warpgroups = false;     ///< with kernels that have their products, where the emulation has such
  bool packs_rows = false;     ///< out[0] holds gradients of logits: in 16 bits at the start of rows of fp32
  ScaledProducts scaled = ScaledProducts::kNone;  ///< that the emulation has; a GPU has its own

  EmulatedCall(program::OpKind kind, std::int64_t m, std::int64_t n, std::int64_t k) {
    op.kind = kind, op.m = m, op.n = n, op.k = k;
    a.values = &values;
    a.routing = &routing;
  }
  EmulatedCall& with_in(std::size_t i, Form form, std::vector<double> numbers) {
    in[i] = {form, std::move(numbers), true};
    return *this;
  }
  EmulatedCall& with_out(std::size_t i, Form form, std::vector<double> numbers) {
    out[i] = {form, std::move(numbers), true};
    return *this;
  }

  /// Bytes of the operands, where given.
  struct Sizes {
    std::array<std::int64_t, program::kMaxOperands> in{};
    std::array<std::int64_t, 3> out{};
  };
  using Run = std::function<void(const KernelArguments& arguments, const Sizes& sizes)>;
  /// The outputs after `kernel` ran in `type`; typed operands were rounded to `rounding` beforehand.
  std::array<std::vector<double>, 3> run(program::DType type, program::DType rounding, const Run& kernel) const;
  /// What the outputs hold after the CPU kernel in fp32, and after the emulated in T: on the host
  /// (host_emulations.cpp), or in the tests of a GPU on that (device_emulations.cpp).
  std::array<std::vector<double>, 3> on_cpu(program::DType rounding) const;
  std::array<std::vector<double>, 3> on_emulation(program::DType type) const;
};

/// The op drops a quarter of what it has dropout for, in samples of so many tokens.
void drop_a_quarter(EmulatedCall& call, std::int64_t sequence);

/// |emulated - CPU| <= tolerance * largest |CPU| for every element of every output.
void expect_equal_to_emulation(const EmulatedCall& call, program::DType type, double tolerance);

/// All types: fp32 sums in another order; in bf16 every result is rounded to 8 bits, 2^-9 of its size, as are the
/// probabilities within attention; in fp16 to 11 bits.
inline void expect_equal_to_emulation(const EmulatedCall& call, double half = 0.004) {
  expect_equal_to_emulation(call, program::DType::kFp32, 3e-6);
  expect_equal_to_emulation(call, program::DType::kBf16, half);
  expect_equal_to_emulation(call, program::DType::kFp16, half / 8);
}

/// `count` numbers uniform in [-1, 1), the same for the same seed.
inline std::vector<double> uniform(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<double> result(static_cast<std::size_t>(count));
  for (double& x : result) x = static_cast<double>(generator() >> 8) / 8388608.0 - 1.0;
  return result;
}

inline std::vector<double> indices(std::int64_t count, unsigned seed, unsigned below) {
  std::mt19937 generator(seed);
  std::vector<double> result(static_cast<std::size_t>(count));
  for (double& x : result) x = static_cast<double>(generator() % below);
  return result;
}

}  // namespace trivium::runtime::cuda
