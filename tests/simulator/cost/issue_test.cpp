#include "simulator/cost/issue.h"

#include <gtest/gtest.h>

#include <vector>

#include "program/ir/op_kinds.h"
#include "simulator/cost/compute_cost.h"
#include "tests/simulator/cost/example_devices.h"

namespace trivium::simulator {
namespace {

using program::OpKind;

const program::StackTraits& megatron() { return *program::find_stack("megatron"); }

program::Op norm(std::int64_t tokens, std::int64_t hidden) {
  program::Op op;
  op.kind = OpKind::kNorm;
  op.dtype = program::DType::kFp16;
  op.m = tokens, op.n = hidden;
  program::fill_work(op);
  return op;
}

// (1 + 1)^(1/3) = 1.25992; 3, 4 -> (27 + 64)^(1/3) = 4.49794.
TEST(Combine, IsAMeanThatNeverFallsBelowEither) {
  EXPECT_NEAR(combine(base::Seconds(1), base::Seconds(1), 3).value(), 1.25992, 1e-5);
  EXPECT_NEAR(combine(base::Seconds(3), base::Seconds(4), 3).value(), 4.49794, 1e-5);
  EXPECT_NEAR(combine(base::Seconds(3), base::Seconds(4), 2).value(), 5, 1e-12);
  EXPECT_EQ(combine(base::Seconds(0), base::Seconds(2), 3).value(), 2);
  EXPECT_EQ(combine(base::Seconds(0), base::Seconds(0), 3).value(), 0);
}

// A norm is 2 kernels of 41 us; its traffic of 4 · 64 · 64 B takes nanoseconds.
TEST(Issue, IsTheFloorOfSmallKernels) {
  hardware::Device device = a100();
  device.kernel_issue = base::Seconds(41e-6);
  EXPECT_NEAR(compute_cost(norm(64, 64), device, megatron()).value(), 82e-6, 1e-9);
}

TEST(Issue, CostsMoreWithoutFusedKernels) {
  program::Op op = norm(64, 64);
  op.kind = OpKind::kActivation;
  EXPECT_EQ(kernels_of(op, megatron()), 2);
  EXPECT_EQ(kernels_of(op, *program::find_stack("fsdp")), 3);
}

// Of 16 experts: 4 launches each forward (a cast, two scales put in order, a product), 7 backward in two ops, at .75.
// 30 us each, in addition to the op's own kernels.
TEST(Issue, CountsEveryExpertWhereTheirProductsRunOneByOne) {
  const program::StackTraits& bridge = *program::find_stack("megatron-bridge");
  hardware::Device device = a100();
  device.kernel_issue = base::Seconds(0);
  const auto host = [&](OpKind kind, program::Pass pass, program::Fp8 fp8, const program::StackTraits& stack) {
    program::Op op;
    op.kind = kind;
    op.pass = pass;
    op.fp8 = fp8;
    op.experts = 16;
    return issue_cost(op, device, stack).value();
  };
  const auto forward = program::Pass::kForward, backward = program::Pass::kBackward;
  EXPECT_NEAR(host(OpKind::kExpertMatmul, forward, program::Fp8::kMxfp8, bridge), 16 * 4 * 30e-6, 1e-12);
  EXPECT_NEAR(host(OpKind::kExpertMatmulDgrad, backward, program::Fp8::kMxfp8, bridge), 16 * 4 * .75 * 30e-6, 1e-12);
  EXPECT_NEAR(host(OpKind::kExpertMatmulWgrad, backward, program::Fp8::kMxfp8, bridge), 16 * 3 * .75 * 30e-6, 1e-12);
  EXPECT_NEAR(host(OpKind::kExpertMatmul, forward, program::Fp8::kCurrent, bridge), 16 * 3 * 30e-6, 1e-12);
  EXPECT_NEAR(host(OpKind::kExpertMatmul, forward, program::Fp8::kNone, bridge), 16 * 30e-6, 1e-12);
  EXPECT_EQ(host(OpKind::kExpertMatmul, forward, program::Fp8::kMxfp8, *program::find_stack("torchtitan-fsdp2")), 0);
}

// An exchange beside another pass takes Megatron-Core's host .4 ms more; captured, a tenth of that. On the stream of
// the kernels, and by our own runtime, nothing more.
TEST(Issue, CountsExchangesBesideAnotherPass) {
  hardware::Device device = a100();
  device.kernel_issue = base::Seconds(0);
  program::Op op;
  op.kind = OpKind::kAllToAll;
  op.dtype = program::DType::kBf16;
  op.lane = program::Lane::kExpert;
  const auto host = [&](const char* stack) { return issue_cost(op, device, *program::find_stack(stack)).value(); };
  EXPECT_NEAR(host("megatron-bridge"), 4e-4, 1e-12);
  EXPECT_NEAR(host("megatron-bridge-graphs"), 4e-5, 1e-12);
  EXPECT_EQ(host("trivium"), 0);
  op.lane = program::Lane::kCompute;
  EXPECT_EQ(host("megatron-bridge"), 0);
}

// Two heads of one sample are no block of four: softmax runs kernel by kernel, 8 + 9 kernels forward. 2048^2 scores of
// two heads move 32 B each more.
TEST(Issue, CostsMoreWhereTheFusedSoftmaxDoesNotApply) {
  program::Op op = norm(2048, 0);
  op.kind = OpKind::kAttention;
  op.sequence = 2048, op.heads = op.kv_heads = 2, op.head_dim = 64;
  EXPECT_TRUE(softmax_falls_back(op, megatron()));
  EXPECT_EQ(kernels_of(op, megatron()), 17);
  EXPECT_DOUBLE_EQ(unfused_softmax_bytes(op, megatron()), 32.0 * 2 * 2048 * 2048);
  EXPECT_FALSE(softmax_falls_back(op, *program::find_stack("trivium")));
  op.m = 2 * 2048;  // two samples
  EXPECT_FALSE(softmax_falls_back(op, megatron()));
  EXPECT_EQ(kernels_of(op, megatron()), 8);
  EXPECT_EQ(unfused_softmax_bytes(op, megatron()), 0);
}

// A product of 2048 x 8192 x 8192 (about 1.2 ms) lets the host issue the norm after it: together
// (1.2^3 + .164^3)^(1/3) ms, .1 % above the device's time, where kernel by kernel the norm alone would cost 82 us.
TEST(Segment, LetsTheHostRunAheadOfLongKernels) {
  hardware::Device device = a100();
  device.kernel_issue = base::Seconds(41e-6);
  program::Op product = norm(2048, 8192);
  product.kind = OpKind::kMatmul;
  product.k = 8192;
  program::fill_work(product);
  const std::vector<program::Op> ops{product, norm(64, 64)};
  const auto costs = segment_costs(ops, device, megatron());
  const double alone = (device_cost(ops[0], device, megatron()) + device_cost(ops[1], device, megatron())).value();
  const double together = (costs[0] + costs[1]).value();
  EXPECT_NEAR(together / alone, 1.001, 0.0005);
  EXPECT_LT(together, (compute_cost(ops[0], device, megatron()) + compute_cost(ops[1], device, megatron())).value());
}

// Host 2 kernels of 41 us and 2 for the collective: 164 us. Device: the norm's traffic, nanoseconds, and 200 us of
// collective. Together (200^3 + 164^3)^(1/3) = 231.6 us: the host issues while the collective runs.
TEST(Segment, LetsTheHostRunAheadOfCollectivesOfTheSameStream) {
  hardware::Device device = a100();
  device.kernel_issue = base::Seconds(41e-6);
  program::Op reduce = norm(64, 64);
  reduce.kind = OpKind::kAllReduce;
  std::vector<program::Op> ops{norm(64, 64), reduce};
  const std::vector<base::Seconds> given{base::Seconds(0), base::Seconds(200e-6)};
  const auto costs = segment_costs(ops, device, megatron(), given);
  EXPECT_EQ(costs[1], given[1]);
  EXPECT_NEAR((costs[0] + costs[1]).value(), 231.6e-6, 0.2e-6);
  // So it does on the tensor group's lane in a forward, whose products need what is gathered there.
  ops[1].lane = program::Lane::kTensor;
  EXPECT_NEAR(segment_costs(ops, device, megatron(), given)[0].value(), 31.6e-6, 0.2e-6);
  // In a backward, where weight gradients overlap it, and with experts it overlaps the host's work: of the 164 us,
  // three quarters count, and all of it.
  for (program::Op& op : ops) op.pass = program::Pass::kBackward;
  EXPECT_NEAR(segment_costs(ops, device, megatron(), given)[0].value(), 123e-6, 0.1e-6);
  for (program::Op& op : ops) op.pass = program::Pass::kForward;
  ops[1].lane = program::Lane::kExpert;
  EXPECT_NEAR(segment_costs(ops, device, megatron(), given)[0].value(), 164e-6, 0.1e-6);
}

// The loss waits for its sums: 12 kernels of 10 us add to 10 B · 2048 · 6400 logits at .77 · 2039 GB/s = 83.5 us.
TEST(Segment, AddsTheIssueOfOpsThatSynchronise) {
  hardware::Device device = a100();
  device.kernel_issue = base::Seconds(10e-6);
  program::Op sums = norm(2048, 6400);
  sums.kind = OpKind::kLossSums;
  sums.dtype = program::DType::kFp32;
  program::fill_work(sums);
  EXPECT_NEAR(compute_cost(sums, device, megatron()).value(), 203.5e-6, 0.1e-6);
  const std::vector<program::Op> ops{sums};
  EXPECT_NEAR(segment_costs(ops, device, megatron())[0].value(), 203.5e-6, 0.1e-6);
}

}  // namespace
}  // namespace trivium::simulator
