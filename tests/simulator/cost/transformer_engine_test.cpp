#include "simulator/cost/transformer_engine.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "program/ir/op_kinds.h"
#include "program/plan/plan.h"
#include "simulator/cost/issue.h"

namespace trivium::simulator {
namespace {

using program::Op;
using program::OpKind;

const program::StackTraits& bridge() { return *program::find_stack("megatron-bridge"); }
const program::StackTraits& ours() { return *program::find_stack("trivium"); }

Op made(OpKind kind, std::initializer_list<int> in, std::initializer_list<int> out) {
  Op op;
  op.kind = kind;
  op.dtype = program::DType::kBf16;
  op.layer = 0;
  op.m = 1024, op.n = 512;
  std::copy(in.begin(), in.end(), op.in.begin());
  std::copy(out.begin(), out.end(), op.out.begin());
  return op;
}

Op collective(OpKind kind, int from, int to, program::Pass pass = program::Pass::kForward) {
  Op op = made(kind, {from}, {to});
  op.group = program::Group::kTensor;
  op.pass = pass;
  op.elements = 1024 * 512;
  program::fill_work(op);
  return op;
}

Op cast(int from, int to, program::Fp8 fp8) {
  Op op = made(OpKind::kQuantize, {from}, {to});
  op.fp8 = fp8;
  program::fill_work(op);
  return op;
}

Op of_experts(OpKind kind, bool leaves) {
  Op op = made(kind, {}, {});
  op.experts = 4;
  op.elements = leaves ? 1 : 0;
  program::fill_work(op);
  return op;
}

// 4 · 1,024 · 512 numbers: 28 B each where they leave the experts (40 backward), 1.8 times as long as their bytes take,
// in place of the 4 (2) counted at .5; nothing where a product adds its bias itself. In captured iterations as their
// bytes take.
TEST(LooseExperts, AddBiasesOfWhatLeavesThemKernelByKernel) {
  constexpr double kNumbers = 4.0 * 1024 * 512;
  EXPECT_DOUBLE_EQ(loose_expert_bytes(of_experts(OpKind::kExpertBias, true), bridge(), 0.5), kNumbers * (1.8 * 28 - 2));
  EXPECT_DOUBLE_EQ(loose_expert_bytes(of_experts(OpKind::kExpertBiasBackward, true), bridge(), 0.5),
                   kNumbers * (1.8 * 40 - 1));
  EXPECT_DOUBLE_EQ(loose_expert_bytes(of_experts(OpKind::kExpertBias, false), bridge(), 0.5), -kNumbers * 2);
  EXPECT_EQ(loose_expert_bytes(of_experts(OpKind::kExpertBias, true), ours(), 0.5), 0);
  const program::StackTraits& captured = *program::find_stack("megatron-bridge-graphs");
  EXPECT_DOUBLE_EQ(loose_expert_bytes(of_experts(OpKind::kExpertBias, true), captured, 0.5), kNumbers * (28 - 2));
  EXPECT_EQ(kernels_of(of_experts(OpKind::kExpertBias, true), bridge()), 1 + 4 * 2);
  EXPECT_EQ(kernels_of(of_experts(OpKind::kExpertBias, true), ours()), 1);
}

// Gate and up, 2 · 1,024 · 512 numbers, cut and joined before the activation reads them.
TEST(LooseExperts, CutClampedActivationsKernelByKernel) {
  Op op = made(OpKind::kActivation, {}, {});
  op.k = static_cast<int>(models::Activation::kClampedSwiglu);
  EXPECT_DOUBLE_EQ(loose_expert_bytes(op, bridge(), 1), 1.8 * 8 * 2 * 1024 * 512);
  op.kind = OpKind::kActivationBackward;
  EXPECT_DOUBLE_EQ(loose_expert_bytes(op, bridge(), 1), 1.8 * 10 * 2 * 1024 * 512);
  op.k = static_cast<int>(models::Activation::kSwiglu);
  EXPECT_EQ(loose_expert_bytes(op, bridge(), 1), 0);
}

// What casts alone read: each of four ranks casts its quarter, and a byte a number is gathered, of gradients with
// scales by block both ways, of nvfp4 half a byte and a scale of 16.
TEST(Executed, CastsBeforeItGathers) {
  const auto executed = [](program::Fp8 fp8, program::Pass pass) {
    const std::vector<Op> ops = {collective(OpKind::kAllGather, 0, 1, pass), cast(1, 2, fp8)};
    const auto done = as_executed(ops, bridge(), 4);
    EXPECT_EQ((*done)[1].m, 256);
    EXPECT_DOUBLE_EQ((*done)[1].bytes, ops[1].bytes / 4);
    return (*done)[0].bytes / ops[0].bytes;
  };
  EXPECT_DOUBLE_EQ(executed(program::Fp8::kCurrent, program::Pass::kForward), 0.5);
  EXPECT_DOUBLE_EQ(executed(program::Fp8::kDelayed, program::Pass::kBackward), 0.5);
  EXPECT_DOUBLE_EQ(executed(program::Fp8::kMxfp8, program::Pass::kBackward), 1.03125);
  EXPECT_DOUBLE_EQ(executed(program::Fp8::kNvfp4, program::Pass::kForward), 0.28125);
}

TEST(Executed, GathersWideWhatAProductReadsWide) {
  const std::vector<Op> ops = {collective(OpKind::kAllGather, 0, 1), cast(1, 2, program::Fp8::kCurrent),
                               made(OpKind::kMatmul, {1}, {3})};
  EXPECT_FALSE(as_executed(ops, bridge(), 4));
  const std::vector<Op> casts = {collective(OpKind::kAllGather, 0, 1), cast(1, 2, program::Fp8::kCurrent)};
  EXPECT_FALSE(as_executed(casts, ours(), 4));
  EXPECT_FALSE(as_executed(casts, bridge(), 1));
}

// A mixture's router and its rows: nothing is gathered for them, and what comes back belongs to the rank's own tokens.
TEST(Executed, RoutesTokensWhereTheyAre) {
  Op route = made(OpKind::kRoute, {2}, {3});
  route.experts = 8;
  Op router = made(OpKind::kMatmul, {1}, {2});
  router.n = 8;
  const std::vector<Op> ops = {collective(OpKind::kAllGather, 0, 1),
                               router,
                               route,
                               made(OpKind::kDispatch, {1}, {4}),
                               made(OpKind::kCombine, {4}, {5}),
                               collective(OpKind::kReduceScatter, 5, 6)};
  const auto done = as_executed(ops, bridge(), 4);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->front().elements, 0);
  EXPECT_EQ(done->back().elements, 0);
  // A shared expert reads all tokens and adds sums of its own.
  std::vector<Op> shared = ops;
  shared.insert(shared.begin() + 1, made(OpKind::kMatmul, {1}, {7}));
  shared.insert(shared.end() - 1, made(OpKind::kAdd, {7, 5}, {5}));
  EXPECT_FALSE(as_executed(shared, bridge(), 4));
}

// Two experts a rank, whose 2 · 1,024 rows arrive by rank: dispatch reads and writes them once more.
TEST(Executed, SortsRowsThatArriveByRank) {
  Op exchange = made(OpKind::kAllToAll, {4}, {5});
  exchange.group = program::Group::kExpert;
  Op product = made(OpKind::kExpertMatmul, {5}, {6});
  product.experts = 2;
  std::vector<Op> ops = {made(OpKind::kDispatch, {1}, {4}), exchange, product};
  const auto done = as_executed(ops, bridge(), 1);
  ASSERT_TRUE(done);
  EXPECT_DOUBLE_EQ(done->front().bytes - ops.front().bytes, 4.0 * 2 * 1024 * 512);
  ops.back().experts = 1;  // one expert has them in order
  EXPECT_FALSE(as_executed(ops, bridge(), 1));
}

// 8 experts on four ranks, two a token: of the 28 pairs of experts 15 leave a rank out, so it goes to 4 (1 - 15/28) =
// 13/7 ranks instead of twice to one. 2 · 1,024 rows arrive, of 1,024 tokens; sums are written 13/7
// times instead of once, 2 B a number.
TEST(Executed, SendsATokenOnceToARankWithDeepEp) {
  Op route = made(OpKind::kRoute, {1}, {2});
  route.experts = 8, route.k = 2;
  Op exchange = made(OpKind::kAllToAll, {4}, {5});
  exchange.group = program::Group::kExpert;
  exchange.bytes = 700;
  Op product = made(OpKind::kExpertMatmul, {5}, {6});
  product.experts = 2;
  const std::vector<Op> ops = {route, made(OpKind::kDispatch, {1}, {4}), exchange, product,
                               made(OpKind::kCombine, {6}, {7})};
  const auto done = as_executed(ops, *program::find_stack("megatron-bridge-flex"), 1);
  ASSERT_TRUE(done);
  EXPECT_DOUBLE_EQ((*done)[1].bytes, ops[1].bytes);
  EXPECT_DOUBLE_EQ((*done)[2].bytes, 650);
  EXPECT_NEAR((*done)[4].bytes - ops[4].bytes, 2.0 * 1024 * 512 * 6 / 7, 1e-6);
  EXPECT_EQ((*done)[2].experts, 8);
  EXPECT_EQ((*done)[2].k, 2);
  // A plan says so to any stack, and otherwise to this one.
  program::Plan plan;
  plan.stack = "trivium";
  EXPECT_FALSE(as_executed(ops, program::stack_of(plan), 1));
  plan.expert_dispatch = program::ExpertDispatch::kDeepEp;
  const auto asked = as_executed(ops, program::stack_of(plan), 1);
  ASSERT_TRUE(asked);
  EXPECT_DOUBLE_EQ((*asked)[2].bytes, 650);
  plan.stack = "megatron-bridge-flex";
  plan.expert_dispatch = program::ExpertDispatch::kAllToAll;
  const auto sorted = as_executed(ops, program::stack_of(plan), 1);
  ASSERT_TRUE(sorted);
  EXPECT_DOUBLE_EQ((*sorted)[2].bytes, 700);
}

// Heads of 48 that turn and 80 that do not, values of 64: keys and values are made in one kernel (8 (80 + 64) and the
// shared 48 read, 8 (128 + 64) written), queries turned in place; attention has no layouts of its own.
TEST(Executed, MakesHeadsOfLatentsInOneKernel) {
  const auto of_heads = [](OpKind kind) {
    Op op = made(kind, {1}, {2});
    op.heads = op.kv_heads = 8, op.head_dim = 128, op.value_dim = 64, op.k = 48, op.flash = true;
    program::fill_work(op);
    return op;
  };
  const std::vector<Op> ops = {of_heads(OpKind::kLatentHeads), of_heads(OpKind::kRotary), of_heads(OpKind::kAttention)};
  const auto done = as_executed(ops, bridge(), 1, {.amplitude = 1.3});
  ASSERT_TRUE(done);
  EXPECT_DOUBLE_EQ((*done)[0].bytes, 2.0 * 1024 * (8 * 144 + 48 + 8 * 192));
  EXPECT_DOUBLE_EQ((*done)[1].bytes, 4.0 * 1024 * 8 * 48);
  EXPECT_EQ((*done)[2].bytes, 0);
  EXPECT_FALSE(as_executed(ops, *program::find_stack("megatron-core"), 1));
}

// torchao casts what is gathered where a tensor has one scale; rows that are scaled one by one are gathered wide.
TEST(Executed, GathersTensorsOfOneScaleInEightBits) {
  const program::StackTraits& torchtitan = *program::find_stack("torchtitan-fsdp2");
  const std::vector<Op> ops = {collective(OpKind::kAllGather, 0, 1), cast(1, 2, program::Fp8::kCurrent)};
  const auto done = as_executed(ops, torchtitan, 4);
  ASSERT_TRUE(done);
  EXPECT_DOUBLE_EQ((*done)[0].bytes, ops[0].bytes / 2);
  EXPECT_DOUBLE_EQ((*done)[1].bytes, ops[1].bytes / 4);
  const std::vector<Op> rows = {collective(OpKind::kAllGather, 0, 1), cast(1, 2, program::Fp8::kBlock)};
  EXPECT_FALSE(as_executed(rows, torchtitan, 4));
}

// 1,000 numbers of a bucket of 1,024 x 512 come as codes; what was cast of a weight is transposed, whatever came
// before.
TEST(Executed, GathersParametersAsCodes) {
  Op gather = made(OpKind::kAllGather, {1}, {1});
  gather.group = program::Group::kData;
  gather.bucket = 0;
  gather.elements = 1024 * 512;
  gather.k = 1000;
  program::fill_work(gather);
  Op weight = cast(1, 2, program::Fp8::kCurrent);
  weight.operand = program::Fp8Operand::kWeight;
  const std::vector<Op> ops = {gather, weight, cast(3, 4, program::Fp8::kCurrent)};
  EXPECT_FALSE(as_executed(ops, ours(), 1));
  const auto done = as_executed(ops, ours(), 1, {.gathers_codes = true});
  ASSERT_TRUE(done);
  EXPECT_DOUBLE_EQ(ops[0].bytes - (*done)[0].bytes, 1000);
  EXPECT_DOUBLE_EQ((*done)[1].bytes, 2.0 * 1024 * 512);
  EXPECT_EQ((*done)[1].fp8, program::Fp8::kDelayed);
  EXPECT_DOUBLE_EQ((*done)[2].bytes, ops[2].bytes);
  EXPECT_EQ((*done)[2].fp8, program::Fp8::kCurrent);
}

TEST(Executed, TurnsHeadsKernelByKernelWhereSinesHaveAnAmplitude) {
  Op rotary = made(OpKind::kRotary, {1}, {1});
  rotary.heads = 8, rotary.kv_heads = 2, rotary.head_dim = 64;
  const std::vector<Op> ops = {rotary};
  EXPECT_FALSE(as_executed(ops, bridge(), 1));
  EXPECT_DOUBLE_EQ(as_executed(ops, bridge(), 1, {.amplitude = 1.3})->front().bytes, 1.8 * 24 * 1024 * 10 * 64);
  const program::StackTraits& captured = *program::find_stack("megatron-bridge-graphs");
  EXPECT_DOUBLE_EQ(as_executed(ops, captured, 1, {.amplitude = 1.3})->front().bytes, 24.0 * 1024 * 10 * 64);
}

}  // namespace
}  // namespace trivium::simulator
