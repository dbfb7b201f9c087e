// How many blocks and threads ops are spread over, and what they do with numbers that no comparison is for.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "runtime/cuda/operations.h"
#include "tests/runtime/cuda/emulated_call.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;
using ::testing::ElementsAre;
using ::testing::Pair;

/// Blocks and threads of the kernels that the operation runs in fp32, in their order.
std::vector<std::pair<std::int64_t, int>> launches_of(const EmulatedCall& call, Operation<HostLauncher> operation) {
  HostLauncher launcher;
  static_cast<void>(call.run(DType::kFp32, DType::kFp32,
                             [&](const KernelArguments& a, const EmulatedCall::Sizes&) { operation(launcher, a); }));
  return launcher.launches;
}

// By the largest number of steps before one kernel reads x; without a history one finds its largest number first.
TEST(CastLaunches, ReadATensorOnceWhereStepsBeforeHaveScaledIt) {
  EmulatedCall call(OpKind::kQuantize, 256, 128, 1);
  call.op.fp8 = program::Fp8::kDelayed;
  call.with_in(0, Form::kTyped, uniform(256 * 128, 1)).with_in(1, Form::kWide, {0, 1});
  call.with_out(0, Form::kBytes, std::vector<double>(256 * 128 + 4));
  EXPECT_THAT(launches_of(call, quantize<float, HostLauncher>), ElementsAre(Pair(4, 256)));
  call.values.looks_first = true;
  EXPECT_THAT(launches_of(call, quantize<float, HostLauncher>), ElementsAre(Pair(4, 256), Pair(4, 256)));
}

// Two samples of 80 tokens and 40 experts.
EmulatedCall routing(OpKind kind) {
  constexpr std::int64_t kTokens = 160, kExperts = 40;
  EmulatedCall call(kind, kTokens, kExperts, 1);
  call.op.sequence = kTokens / 2, call.op.experts = kExperts, call.op.elements = 8;
  call.routing.balance_loss = 0.25, call.values.loss_weight = 0.5;
  if (kind == OpKind::kRouteBackward) return call.with_out(0, Form::kWide, uniform(kTokens * kExperts, 4));
  call.with_in(0, Form::kWide, uniform(kTokens * kExperts, 1));
  call.with_out(0, Form::kWide, uniform(kTokens * kExperts, 2));
  return call.with_out(1, Form::kInts, std::vector<double>(2 * kTokens)).with_out(2, Form::kPair, {0});
}

// A warp a token, eight of them a block, and a warp an expert of a sample; nothing walks a whole sample alone.
TEST(RoutingLaunches, SpreadASampleOverManyWarps) {
  const EmulatedCall forward = routing(OpKind::kRoute);
  const auto routed = forward.on_cpu(DType::kFp32);
  EmulatedCall backward = routing(OpKind::kRouteBackward);
  backward.with_in(0, Form::kWide, routed[0])
      .with_in(1, Form::kInts, routed[1])
      .with_in(2, Form::kWide, uniform(160, 3));
  EXPECT_THAT(launches_of(forward, cuda::route<HostLauncher>), ElementsAre(Pair(20, 256), Pair(80, 32), Pair(1, 96)));
  EXPECT_THAT(launches_of(backward, route_backward<float, HostLauncher>), ElementsAre(Pair(80, 32), Pair(20, 256)));
}

// Equal logits, and some that are no numbers, as after an overflow of fp16: the first expert, not one that is not
// there.
TEST(RoutingLaunches, ChooseTheFirstOfEqualsAndOfWhatIsNoNumber) {
  for (const double odd : {0.5, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EmulatedCall call = routing(OpKind::kRoute);
    std::fill(call.in[0].numbers.begin(), call.in[0].numbers.end(), 0.5);
    call.in[0].numbers[3 * 40 + 35] = odd;
    const auto chosen = call.run(DType::kFp32, DType::kFp32, [&](const KernelArguments& a, const EmulatedCall::Sizes&) {
      HostLauncher launcher;
      cuda::route(launcher, a);
    })[1];
    EXPECT_EQ(chosen[2 * 2], 0);
    EXPECT_EQ(chosen[2 * 3], 0) << odd;
  }
}

// One id for 2,500 tokens of 132 columns: five tiles are ordered and merged, then 40 chunks of 64 tokens are summed by
// eight warps a block, in two blocks of columns each. No block has the id alone.
TEST(EmbeddingLaunches, SpreadAFrequentTokenOverManyWarps) {
  constexpr std::int64_t kTokens = 2500, kColumns = 132;
  EmulatedCall back(OpKind::kEmbeddingBackward, kTokens, kColumns, 4);
  back.with_in(0, Form::kInts, std::vector<double>(kTokens, 2));
  back.with_in(1, Form::kTyped, uniform(kTokens * kColumns, 5)).with_out(0, Form::kWide, uniform(4 * kColumns, 6));
  EXPECT_THAT(launches_of(back, embedding_backward<float, HostLauncher>),
              ElementsAre(Pair(5, 256), Pair(10, 256), Pair(2 * 40 / 8, 256), Pair(2 * 40 / 8, 256)));
}

// 400 rows of 768: what reads x and dy is one kernel, in which a thread has a pack of four columns of four rows at
// once; the rest adds up what its 50 blocks found, eight columns a block.
TEST(NormLaunches, ReadEverythingOnce) {
  constexpr std::int64_t kRows = 400, kColumns = 768;
  EmulatedCall back(OpKind::kNormBackward, kRows, kColumns, 0);
  back.with_in(0, Form::kTyped, uniform(kRows * kColumns, 1)).with_in(1, Form::kTyped, uniform(kColumns, 2));
  back.with_in(2, Form::kWide, uniform(2 * kRows, 3)).with_in(3, Form::kTyped, uniform(kRows * kColumns, 4));
  back.with_out(0, Form::kTyped, uniform(kRows * kColumns, 5)).with_out(1, Form::kWide, uniform(kColumns, 6));
  back.with_out(2, Form::kWide, uniform(kColumns, 7));
  EXPECT_THAT(launches_of(back, norm_backward<float, HostLauncher>),
              ElementsAre(Pair(kRows / 8, 192), Pair(2 * kColumns / 8, 256)));
}

// Ten rows: four warps of a block have one each. Rows of 1,028, more than a warp holds, have a block each, of threads
// that hold four packs.
TEST(NormLaunches, GiveARowAWarpOrABlock) {
  const auto forward = [](std::int64_t columns) {
    EmulatedCall call(OpKind::kNorm, 10, columns, 0);
    call.with_in(0, Form::kTyped, uniform(10 * columns, 1)).with_in(1, Form::kTyped, uniform(columns, 2));
    return call.with_out(0, Form::kTyped, uniform(10 * columns, 3)).with_out(1, Form::kWide, uniform(20, 4));
  };
  EXPECT_THAT(launches_of(forward(768), cuda::norm<float, HostLauncher>), ElementsAre(Pair(3, 128)));
  EXPECT_THAT(launches_of(forward(1028), cuda::norm<float, HostLauncher>), ElementsAre(Pair(10, 96)));
}

}  // namespace
}  // namespace trivium::runtime::cuda
