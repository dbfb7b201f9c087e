// Kernels on 16-bit operands: their fp32 counterparts between a widening and a rounding. Products of 16-bit numbers are
// exact in fp32 and sums inside a kernel are fp32, as in tensor cores up to the order of the sums (Micikevicius et al.
// 2018, arXiv 1710.03740; Kalamkar et al. 2019, arXiv 1905.12322).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "program/ir/alignment.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/plain_kernels.h"
#include "runtime/reduction/half.h"

namespace trivium::runtime::cpu {
namespace {

using program::DType;

constexpr std::size_t kMostHalves = program::kMaxOperands + 3;  // inputs and outputs

/// Memory of this thread for one operand in fp32, kept between calls.
float* room(std::size_t operand, std::int64_t elements) {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  struct Room {
    std::unique_ptr<float, Free> memory;
    std::int64_t elements = 0;
  };
  thread_local std::array<Room, kMostHalves> rooms;
  Room& own = rooms[operand];
  if (own.elements < elements) {
    const auto bytes = program::aligned(elements * static_cast<std::int64_t>(sizeof(float)));
    own.memory.reset(static_cast<float*>(std::aligned_alloc(program::kAlignment, static_cast<std::size_t>(bytes))));
    if (!own.memory) throw std::bad_alloc();
    own.elements = elements;
  }
  return own.memory.get();
}

/// An operand in 16 bits; inputs and outputs at one place are one.
struct Half {
  std::uint16_t* memory = nullptr;
  DType type{};
  std::int64_t elements = 0;
  bool written = false;
  float* wide = nullptr;
};

class Halves {
 public:
  void add(const KernelArguments& a, std::byte* memory, int buffer, bool written) {
    if (memory == nullptr || buffer == program::kNoBuffer) return;
    const program::Buffer& named = a.kind->buffers[static_cast<std::size_t>(buffer)];
    if (!program::is_half(named.dtype)) return;
    Half* half = find(memory);
    if (half == nullptr) half = &halves_[count_++];
    half->memory = reinterpret_cast<std::uint16_t*>(memory);
    half->type = named.dtype;
    half->elements = std::max(half->elements, named.elements);
    half->written = half->written || written;
  }

  // Outputs too: kernels add to some and leave parts of others as they were.
  void widen() {
    for (std::size_t h = 0; h < count_; ++h) {
      Half& half = halves_[h];
      half.wide = room(h, half.elements);
      const std::uint16_t* from = half.memory;
      if (half.type == DType::kBf16) {
        for (std::int64_t i = 0; i < half.elements; ++i) half.wide[i] = reduction::float_of_bf16(from[i]);
      } else {
        for (std::int64_t i = 0; i < half.elements; ++i) half.wide[i] = reduction::float_of_fp16(from[i]);
      }
    }
  }

  void round() const {
    for (std::size_t h = 0; h < count_; ++h) {
      const Half& half = halves_[h];
      if (!half.written) continue;
      if (half.type == DType::kBf16) {
        for (std::int64_t i = 0; i < half.elements; ++i) half.memory[i] = reduction::bf16_of_float(half.wide[i]);
      } else {
        for (std::int64_t i = 0; i < half.elements; ++i) half.memory[i] = reduction::fp16_of_float(half.wide[i]);
      }
    }
  }

  /// Where the operand lies in fp32: at its own place, if it does not have 16 bits.
  std::byte* wide(std::byte* memory) {
    const Half* half = find(memory);
    return half == nullptr ? memory : reinterpret_cast<std::byte*>(half->wide);
  }

 private:
  Half* find(const std::byte* memory) {
    for (std::size_t h = 0; h < count_; ++h) {
      if (reinterpret_cast<const std::byte*>(halves_[h].memory) == memory) return &halves_[h];
    }
    return nullptr;
  }

  std::array<Half, kMostHalves> halves_;
  std::size_t count_ = 0;
};

}  // namespace

void widened(const KernelArguments& a) {
  Halves halves;
  for (std::size_t i = 0; i < a.in.size(); ++i) halves.add(a, a.in[i], a.op->in[i], false);
  for (std::size_t i = 0; i < a.out.size(); ++i) halves.add(a, a.out[i], a.op->out[i], true);
  halves.widen();
  KernelArguments wide = a;
  for (std::byte*& operand : wide.in) operand = halves.wide(operand);
  for (std::byte*& operand : wide.out) operand = halves.wide(operand);
  kernel_of(*a.op, DType::kFp32)(wide);
  halves.round();
}

}  // namespace trivium::runtime::cpu
