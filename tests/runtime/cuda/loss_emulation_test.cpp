// The loss over whole rows, whose maximum and sums the device takes in one pass.
#include "runtime/cpu/kernels.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/host_emulations.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;

/// What the two ops of the forward come to, in one order of turns or on the CPU.
struct Sums {
  std::vector<float> highest, sums;

  Sums(const std::vector<float>& logits, const std::vector<std::int32_t>& labels, std::int64_t columns,
       std::int64_t valid, const std::function<void(const KernelArguments&)>& run)
      : highest(labels.size(), -7.0F), sums(2 * labels.size(), -7.0F) {
    const auto bytes = [](const auto& of) { return reinterpret_cast<std::byte*>(const_cast<float*>(of.data())); };
    program::Op op;
    op.m = static_cast<std::int64_t>(labels.size()), op.n = columns;
    KernelArguments a;
    a.op = &op, a.vocabulary = valid;
    op.kind = OpKind::kLossMax;
    a.in[0] = bytes(logits), a.out[0] = bytes(highest);
    run(a);
    op.kind = OpKind::kLossSums;
    a.in[1] = bytes(highest), a.out[0] = bytes(sums);
    a.in[2] = reinterpret_cast<std::byte*>(const_cast<std::int32_t*>(labels.data()));
    run(a);
  }
};

// Rows of several packs a thread and of less than one, with padding and of odd lengths; logits of fp32's whole range in
// a row, whose sum follows its maximum more than once.
TEST(LossEmulation, TakesWholeRowsInOnePass) {
  for (const auto& [columns, valid] : {std::pair{5000, 4990}, {5001, 5001}, {40, 37}, {3, 3}}) {
    for (const double scale : {1.0, 60.0}) {
      const std::int64_t tokens = 5;
      std::vector<float> logits;
      for (const double x : uniform(tokens * columns, 1)) logits.push_back(static_cast<float>(scale * x));
      for (int i = 0; i < columns; ++i) logits[static_cast<std::size_t>(i)] = static_cast<float>(scale * i / columns);
      std::vector<std::int32_t> labels;
      for (const double x : indices(tokens, 2, static_cast<unsigned>(valid))) {
        labels.push_back(static_cast<std::int32_t>(x));
      }
      const Sums cpu(logits, labels, columns, valid,
                     [](const KernelArguments& a) { cpu::find_kernel(a.op->kind, DType::kFp32)(a); });
      for (const Turns turns : {Turns::kAscending, Turns::kDescending, Turns::kShuffled}) {
        const Sums emulated(logits, labels, columns, valid,
                            [&](const KernelArguments& a) { run_emulation(a, DType::kFp32, turns); });
        EXPECT_EQ(emulated.highest, cpu.highest) << columns;
        for (std::size_t i = 0; i < cpu.sums.size(); ++i) {
          EXPECT_NEAR(emulated.sums[i], cpu.sums[i], 3e-6 * std::abs(cpu.sums[i])) << columns << " columns, " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
