#include "simulator/cost/compute_cost.h"

#include <gtest/gtest.h>

#include "program/ir/op_kinds.h"
#include "simulator/cost/gemm.h"
#include "tests/simulator/cost/example_devices.h"

namespace trivium::simulator {
namespace {

using program::Op;
using program::OpKind;

const program::StackTraits& stack(const char* name) { return *program::find_stack(name); }

Op op_of(OpKind kind, std::int64_t m, std::int64_t n, std::int64_t k = 0, program::DType type = program::DType::kFp16) {
  Op op;
  op.kind = kind;
  op.dtype = type;
  op.m = m, op.n = n, op.k = k;
  program::fill_work(op);
  return op;
}

// .7 to .76 of the peak is what well-shaped projections of a layer reach (SimuMax, A100).
TEST(ComputeCost, OfALayersProjectionLiesInTheMeasuredBand) {
  const Op op = op_of(OpKind::kMatmul, 4096, 5120, 5120);
  const double efficiency = op.flops / compute_cost(op, a100(), stack("megatron")).value() / 312e12;
  EXPECT_GT(efficiency, 0.66);
  EXPECT_LT(efficiency, 0.76);
}

// dx (m,k) = dy (m,n) w^T is the product of a forward with n and k exchanged.
TEST(ComputeCost, OfADataGradientIsThatOfTheForwardWithItsWidthsExchanged) {
  EXPECT_EQ(compute_cost(op_of(OpKind::kMatmulDgrad, 2048, 4608, 12288), a100(), stack("megatron")),
            compute_cost(op_of(OpKind::kMatmul, 2048, 12288, 4608), a100(), stack("megatron")));
}

// 50,257 words are no multiple of 8: 80-85 TFLOP/s where 50,304 run at more than twice that (vTrain, tensor 1).
TEST(ComputeCost, OfLogitsFallsOffACliffWithoutAPaddedVocabulary) {
  const Op padded = op_of(OpKind::kMatmul, 8192, 50304, 2048), unpadded = op_of(OpKind::kMatmul, 8192, 50257, 2048);
  const double rate = unpadded.flops / compute_cost(unpadded, a100(), stack("megatron")).value();
  EXPECT_GT(rate, 77e12);
  EXPECT_LT(rate, 85e12);
  EXPECT_GT(padded.flops / compute_cost(padded, a100(), stack("megatron")).value(), 2 * rate);
}

// .35 of the rate at odd sizes; a multiple of 4 lacks one halving of three: .35^(1/3) = .705; of 2: .35^(2/3) = .497.
TEST(ComputeCost, FallsWithEveryHalvingOfTheAlignment) {
  const auto time = [](std::int64_t n) {
    return compute_cost(op_of(OpKind::kMatmul, 8192, n, 8192), a100(), stack("megatron")).value();
  };
  EXPECT_NEAR(time(8192) / time(8188), 0.705, 0.001);
  EXPECT_NEAR(time(8192) / time(8190), 0.497, 0.001);
  EXPECT_NEAR(time(8192) / time(8191), 0.350, 0.001);
}

TEST(ComputeCost, HasNoAlignmentCliffInFp32) {
  const Op padded = op_of(OpKind::kMatmul, 4096, 8192, 2048, program::DType::kFp32);
  const Op unpadded = op_of(OpKind::kMatmul, 4096, 8191, 2048, program::DType::kFp32);
  EXPECT_LE(compute_cost(unpadded, a100(), stack("megatron")), compute_cost(padded, a100(), stack("megatron")));
}

// 4 B · 2048 · 12288 = 100.66 MB at .77 · 2039 = 1570.03 GB/s: 64.1 us; Megatron .86 of it, DeepSpeed ZeRO-3 1.4.
TEST(ComputeCost, OfAMemoryBoundKernelIsItsTrafficTimesTheStacksHabit) {
  const Op op = op_of(OpKind::kNorm, 2048, 12288);
  EXPECT_NEAR(compute_cost(op, a100(), stack("trivium")).value(), 64.12e-6, 0.02e-6);
  EXPECT_NEAR(compute_cost(op, a100(), stack("megatron")).value(), 0.86 * 64.12e-6, 0.02e-6);
  EXPECT_NEAR(compute_cost(op, a100(), stack("deepspeed-zero3")).value(), 1.4 * 64.12e-6, 0.03e-6);
}

// The optimizer's 23 B per parameter are no layer's traffic: 19 B · 1e9 / 1570.03 GB/s = 12.10 ms in every stack.
TEST(ComputeCost, OfTheOptimizerIsTheSameInEveryStack) {
  Op op = op_of(OpKind::kAdamW, 0, 0);
  op.elements = 1'000'000'000;
  program::fill_work(op);
  EXPECT_NEAR(compute_cost(op, a100(), stack("megatron")).value(), 12.10e-3, 0.01e-3);
  EXPECT_NEAR(compute_cost(op, a100(), stack("fsdp")).value(), 12.10e-3, 0.01e-3);
}

// A slower cluster stretches arithmetic, not memory traffic.
TEST(ComputeCost, ScalesArithmeticWithTheClustersSustainedClocks) {
  hardware::Device slow = a100();
  slow.compute_scale = 0.88;
  const Op product = op_of(OpKind::kMatmul, 4096, 8192, 8192), norm = op_of(OpKind::kNorm, 4096, 8192);
  EXPECT_NEAR(compute_cost(product, slow, stack("megatron")) / compute_cost(product, a100(), stack("megatron")),
              1 / 0.88, 1e-6);
  EXPECT_EQ(compute_cost(norm, slow, stack("megatron")), compute_cost(norm, a100(), stack("megatron")));
}

// 2 · 64 · 32 · 16 = 65,536 FLOP and 4 · (64·16 + 16·32 + 64·32) = 14,336 B:
// 1 us + 65536 · 0.1 ns + 14336 · 0.2 ns = 1 + 6.5536 + 2.8672 = 10.4208 us. The host's issue is in the overhead.
TEST(ComputeCost, OfAProfiledKindIsItsMeasuredRate) {
  hardware::Device device = core();
  device.op_rates["matmul"] = {.overhead = base::Seconds(1e-6), .seconds_per_flop = 1e-10, .seconds_per_byte = 2e-10};
  const Op op = op_of(OpKind::kMatmul, 64, 32, 16, program::DType::kFp32);
  EXPECT_NEAR(compute_cost(op, device, stack("trivium")).value(), 10.4208e-6, 1e-12);
}

/// Two samples of 100 tokens in 3 heads of 16: 2 x 3 x 2 blocks of 64 queries, the second of each with 36.
Op attention_of(bool flash, OpKind kind = OpKind::kAttention) {
  Op op;
  op.kind = kind;
  op.m = 200, op.n = 48, op.sequence = 100;
  op.heads = op.kv_heads = 3, op.head_dim = 16, op.flash = flash;
  program::fill_work(op);
  return op;
}

// Flash: 4 · 200 · 3 · 16 · 50 = 1,920,000 FLOP and (4 · 144 + 6 · 48) · 200 · 2 = 345,600 B in fp32: 2 us + 96 us +
// 103.68 us + 12 · 0.5 us = 207.68 us. Unfused: 3,840,000 FLOP and 345,600 + 9 · 2 · 200 · 100 · 3 = 1,425,600 B:
// 1 us + 38.4 us + 142.56 us = 181.96 us.
TEST(ComputeCost, OfAttentionIsTheMeasuredRateOfItsKernels) {
  hardware::Device device = core();
  device.op_rates["attention"] = {
      .overhead = base::Seconds(1e-6), .seconds_per_flop = 1e-11, .seconds_per_byte = 1e-10};
  device.op_rates["flash_attention"] = {
      .overhead = base::Seconds(2e-6), .seconds_per_flop = 5e-11, .seconds_per_byte = 3e-10, .seconds_per_block = 5e-7};
  EXPECT_NEAR(compute_cost(attention_of(true), device, stack("trivium")).value(), 207.68e-6, 1e-12);
  EXPECT_NEAR(compute_cost(attention_of(false), device, stack("trivium")).value(), 181.96e-6, 1e-12);
}

// A profile of before kernels were told apart has one rate for both: flash 1 us + 19.2 us + 34.56 us = 54.76 us.
TEST(ComputeCost, OfAttentionIsTheRateOfOtherKernelsWhereItsOwnWereNotMeasured) {
  hardware::Device device = core();
  const hardware::OpRate rate{.overhead = base::Seconds(1e-6), .seconds_per_flop = 1e-11, .seconds_per_byte = 1e-10};
  device.op_rates["attention"] = rate;
  EXPECT_NEAR(compute_cost(attention_of(true), device, stack("trivium")).value(), 54.76e-6, 1e-12);
  device.op_rates = {{"flash_attention", rate}};
  EXPECT_NEAR(compute_cost(attention_of(false), device, stack("trivium")).value(), 181.96e-6, 1e-12);
}

// Forwards say nothing of backwards.
TEST(ComputeCost, OfAttentionsBackwardIsNotThatOfItsForward) {
  hardware::Device device = core();
  const Op op = attention_of(true, OpKind::kAttentionBackward);
  const base::Seconds unmeasured = compute_cost(op, device, stack("trivium"));
  device.op_rates["flash_attention"] = {.overhead = base::Seconds(1)};
  EXPECT_EQ(compute_cost(op, device, stack("trivium")), unmeasured);
  device.op_rates["flash_attention_backward"] = {.overhead = base::Seconds(2)};
  EXPECT_EQ(compute_cost(op, device, stack("trivium")), base::Seconds(2));
}

// The same product on an unmeasured core: 65536 / (32e9 · .6) = 3.4133 us, 14336 / (5e9 · .7) = 4.096 us, 2 us
// dispatch.
TEST(ComputeCost, OfAnUnmeasuredCoreAddsArithmeticTrafficAndDispatch) {
  const Op op = op_of(OpKind::kMatmul, 64, 32, 16, program::DType::kFp32);
  EXPECT_NEAR(compute_cost(op, core(), stack("trivium")).value(), 9.5093e-6, 1e-10);
}

TEST(ComputeCost, IsFiniteAndPositiveForEveryComputeKind) {
  for (int kind = 0; kind < static_cast<int>(OpKind::kAllReduce); ++kind) {
    for (const auto& device : {a100(), core()}) {
      Op op = op_of(static_cast<OpKind>(kind), 128, 64, 64, program::DType::kFp32);
      op.heads = op.kv_heads = 4, op.head_dim = 16, op.sequence = 64, op.elements = 4096;
      if (op.kind == OpKind::kActivation || op.kind == OpKind::kActivationBackward) op.k = 0;
      if (op.kind == OpKind::kMuonStep) op.k = 5;  // iterations
      program::fill_work(op);
      const double time = compute_cost(op, device, stack("trivium")).value();
      EXPECT_TRUE(time > 0 && time < 1e-2) << program::name_of(op.kind) << " on " << device.name << ": " << time;
    }
  }
}

// 512^3 on a core: 2 * 512^3 / (.6 * 32e9) = 13.98 ms either way. Traffic: 3 * 512^2 * 4 B at 3.5 GB/s = .899 ms in
// fp32; in 16 bits 2.5 times that, as every 2 bytes are read, widened to 4 and read by the fp32 kernel.
TEST(ComputeCost, OfSixteenBitsOnACoreIsThatOfFp32AndOfTheConversion) {
  const double products = 2.0 * 512 * 512 * 512 / (0.6 * 32e9), traffic = 3.0 * 512 * 512 * 4 / 3.5e9;
  const auto seconds = [](program::DType type) {
    return compute_cost(op_of(OpKind::kMatmul, 512, 512, 512, type), core(), stack("trivium")).value();
  };
  EXPECT_NEAR(seconds(program::DType::kFp32), products + traffic + 2e-6, 1e-9);
  EXPECT_NEAR(seconds(program::DType::kBf16), products + 2.5 * traffic + 2e-6, 1e-9);
}

// Beside the products, 100,000 parameters' momentum is read, their fp32 copy read and written, the 16-bit one written:
// 14 B each at (2.039e12 · efficiency) B/s.
TEST(ComputeCost, OfMuonsStepIsThatOfItsProductsAndOfItsUpdate) {
  Op op = op_of(OpKind::kMuonStep, 128, 256, 5, program::DType::kBf16);
  const hardware::Device device = a100();
  const auto seconds = [&](std::int64_t elements) {
    op.elements = elements;
    program::fill_work(op);
    return device_cost(op, device, stack("trivium")).value();
  };
  EXPECT_GT(seconds(0), 0);
  EXPECT_NEAR(seconds(100'000) - seconds(0), 1.4e6 / (device.memory_bandwidth.value() * device.memory_efficiency),
              1e-12);
}

// A core iterates in fp32, and holds momentum and copy so: 64 x 64, one iteration, moves 4 B for each of the
// 3 · 64² elements of matrices and 8 · 64² of their squares that the op moves, and the update's 14 B of 64² parameters.
TEST(ComputeCost, OfMuonsStepInSixteenBitsOnACoreIsThatOfFp32) {
  const Op op = op_of(OpKind::kMuonStep, 64, 64, 1, program::DType::kBf16);
  Op with_elements = op;
  with_elements.elements = 64 * 64;
  program::fill_work(with_elements);
  const double moved = (4.0 * 11 + 14) * 64 * 64, products = 6.0 * 64 * 64 * 64;
  EXPECT_NEAR(compute_cost(with_elements, core(), stack("trivium")).value(),
              products / (0.6 * 32e9) + moved / 3.5e9 + 2e-6, 1e-10);
}

// Six products of experts: Megatron-Bridge runs four at a time, so one and a half rounds; a stack whose experts are one
// kernel runs all at once. 60 tiles each on 108 multiprocessors: four fill two waves and a half of the rest, six more.
TEST(ComputeCost, RunsProductsOfExpertsFourAtATime) {
  const hardware::Device device = a100();
  program::Op op;
  op.kind = program::OpKind::kExpertMatmul;
  op.dtype = program::DType::kBf16;
  op.m = 15 * 256, op.n = 4 * 128, op.k = 1024, op.experts = 6;
  program::fill_work(op);
  const auto time = [&](const char* stack) { return device_cost(op, device, *program::find_stack(stack)).value(); };
  const GemmRates rates = gemm_rates(device, op.dtype, 1);
  EXPECT_NEAR(time("megatron-bridge"), 1.5 * gemm_time({3840, 512, 1024, 4}, rates).value(), 1e-12);
  EXPECT_NEAR(time("megatron-bridge-graphs"), gemm_time({3840, 512, 1024, 6}, rates).value(), 1e-12);
  EXPECT_EQ(time("torchtitan-fsdp2"), time("megatron-bridge-graphs"));
  EXPECT_GT(time("megatron-bridge"), 1.05 * time("megatron-bridge-graphs"));
}

}  // namespace
}  // namespace trivium::simulator
