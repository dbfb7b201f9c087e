// Gradients on their way between replicas: in fp16, or the largest of them. Operands to kernels.
#pragma once

#include <algorithm>

#include "program/ir/op_views.h"
#include "runtime/cuda/kernels/largest.h"
#include "runtime/cuda/operation.h"
#include "runtime/cuda/ops_rows.h"

namespace trivium::runtime::cuda {

template <class Launcher>
void send_largest(Launcher& l, const KernelArguments& a) {
  constexpr std::int64_t kMostBlocks = 264, kFewest = 4096;  // two a multiprocessor; elements that are worth a block
  const std::int64_t count = a.op->elements, blocks = std::min(kMostBlocks, (count + kFewest - 1) / kFewest);
  const std::int64_t digits_bytes = blocks * kDigits * static_cast<std::int64_t>(sizeof(std::int64_t));
  std::byte* scratch = l.scratch(static_cast<std::int64_t>(sizeof(Threshold)) + digits_bytes);
  auto* threshold = reinterpret_cast<Threshold*>(scratch);
  auto* digits = reinterpret_cast<std::int64_t*>(scratch + sizeof(Threshold));
  auto* partial = reinterpret_cast<Above*>(digits);  // the digits are counted by then
  float* residual = output<float>(a, 1);
  run_elements(l, AddResidual{input<float>(a, 0), residual, count}, count);
  l.run(BeginThreshold{threshold, program::elements_sent(*a.op)}, 1, kWarp);
  for (int shift = kSizeBits - kDigitBits; shift >= 0; shift -= kDigitBits) {
    l.run(CountDigits{residual, count, threshold, digits, shift}, blocks, kElementThreads, kReduceBytes);
    l.run(ChooseDigit{digits, blocks, threshold, shift}, 1, kWarp, kReduceBytes);
  }
  const Runs runs{count, blocks};
  l.run(CountAbove{residual, runs, threshold, partial}, blocks, kElementThreads, kReduceBytes);
  l.run(SendLargest{residual, runs, threshold, partial, output<Sent>(a, 0), static_cast<std::uint32_t>(a.op->n)},
        blocks, kElementThreads, SendLargest::shared_bytes(kElementThreads));
}

template <class Launcher>
void compress(Launcher& l, const KernelArguments& a) {
  if (program::elements_sent(*a.op) > 0) return send_largest(l, a);
  run_elements(l, Compress{input<float>(a, 0), output<std::uint16_t>(a, 0), a.op->elements}, a.op->elements);
}

/// Members in their order, as sums of whole buckets are.
template <class Launcher>
void decompress(Launcher& l, const KernelArguments& a) {
  if (program::elements_sent(*a.op) == 0) {
    return run_elements(l, Decompress{input<std::uint16_t>(a, 0), output<float>(a, 0), a.op->elements}, a.op->elements);
  }
  l.zero(a.out[0], a.op->elements * static_cast<std::int64_t>(sizeof(float)));
  for (int member = 0; member < a.op->parts; ++member) {
    run_elements(l, AddSent{input<Sent>(a, 0) + member * a.op->k, output<float>(a, 0), a.op->k}, a.op->k);
  }
}

/// The function for an op kind of this file; null for another kind.
template <class Launcher>
Operation<Launcher> wire_operation(const program::Op& op) {
  using program::OpKind;
  switch (op.kind) {
    case OpKind::kCompress:
      return compress<Launcher>;
    case OpKind::kDecompress:
      return decompress<Launcher>;
    default:
      return nullptr;
  }
}

}  // namespace trivium::runtime::cuda
