// Products in 8 bits, lowered: what is cast, when, and what of it is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "program/ir/alignment.h"
#include "program/ir/fp8_layout.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

Job fp8_job(Fp8 recipe, int layers = 2) {
  Job job = tiny_job(layers);
  job.plan.precision = DType::kBf16;
  job.plan.fp8 = recipe;
  return job;
}

std::int64_t bytes_of(const Program& program, Space space) {
  return program.kinds[0].bytes[static_cast<std::size_t>(space)];
}

std::ptrdiff_t casts(const Program& program, int body, Fp8Operand operand) {
  const auto& ops = program.bodies[static_cast<std::size_t>(body)].ops;
  return std::count_if(ops.begin(), ops.end(),
                       [&](const Op& op) { return op.kind == OpKind::kQuantize && op.operand == operand; });
}

TEST(Fp8, WithoutItNothingIsCastAndTheFirstForwardIsLikeTheOthers) {
  const Program program = lowered(fp8_job(Fp8::kNone));
  EXPECT_EQ(program.kinds[0].forward_first, -1);
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops) EXPECT_TRUE(op.kind != OpKind::kQuantize && op.fp8 == Fp8::kNone);
  }
}

// Four products a layer: the input of each forward, the gradient of each backward, the weights once a step.
TEST(Fp8, WeightsAreCastInAStepsFirstForwardAlone) {
  const Program program = lowered(fp8_job(Fp8::kCurrent));
  const ChunkTemplate& kind = program.kinds[0];
  EXPECT_EQ(casts(program, kind.forward, Fp8Operand::kWeight), 0);
  EXPECT_EQ(casts(program, kind.forward_first, Fp8Operand::kWeight), 4 * 2);
  EXPECT_EQ(casts(program, kind.backward, Fp8Operand::kWeight), 0);
  for (const int body : {kind.forward, kind.forward_first}) {
    EXPECT_EQ(casts(program, body, Fp8Operand::kInput), 4 * 2);
  }
  EXPECT_EQ(casts(program, kind.backward, Fp8Operand::kInput), 0);  // the forward kept them
  EXPECT_EQ(casts(program, kind.backward, Fp8Operand::kGradient), 4 * 2);
  for (const Task& task : program.roles[0].tasks) {
    if (task.kind != TaskKind::kForward) continue;
    EXPECT_EQ(task.body, task.micro_batch == 0 ? kind.forward_first : kind.forward);
  }
}

// A bucket's gather says how many of its numbers are codes where parameters travel so: 12 h^2 a layer, and none of an
// embedding; of two layers in one bucket both.
TEST(Fp8, GathersSayHowManyNumbersAreOfMatricesInEightBits) {
  Job job = fp8_job(Fp8::kCurrent);
  job.plan.data = 2, job.plan.zero_stage = 1;
  const std::int64_t of_layer = 12 * job.model.hidden * job.model.hidden;
  const auto numbers = [](const Program& program) {
    std::vector<std::int64_t> found;
    for (const int body : program.kinds[0].gather) {
      for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) found.push_back(op.k);
    }
    return found;
  };
  EXPECT_THAT(numbers(lowered(job)), testing::ElementsAre(0, of_layer, of_layer, 0));
  job.plan.bucket_bytes = 1 << 20;
  EXPECT_THAT(numbers(lowered(job)), testing::ElementsAre(2 * of_layer));
  job.plan.fp8 = Fp8::kNone;
  EXPECT_THAT(numbers(lowered(job)), testing::ElementsAre(0));
}

TEST(Fp8, ParametersAreGatheredInEightBitsWhereAPlanOrItsStackSaysSo) {
  const auto settings = [](Fp8 recipe, Fp8Gather gather, const char* stack, int zero_stage = 1) {
    Job job = fp8_job(recipe);
    job.plan.data = 2, job.plan.zero_stage = zero_stage;
    job.plan.fp8_parameter_gather = gather;
    job.plan.stack = stack;
    const Settings s = lowered(job).settings;
    return std::pair{s.spared_of_cast, s.gathers_in_8_bits};
  };
  using Kept = std::pair<std::int64_t, bool>;
  const Kept narrow{2, true}, memory_alone{2, false}, wide{0, false};
  for (const Fp8 recipe : {Fp8::kDelayed, Fp8::kCurrent, Fp8::kBlock}) {
    EXPECT_EQ(settings(recipe, Fp8Gather::kOn, "megatron-core"), narrow);
    EXPECT_EQ(settings(recipe, Fp8Gather::kStack, "megatron-core"), wide);
    EXPECT_EQ(settings(recipe, Fp8Gather::kOff, "megatron-bridge"), wide);
    EXPECT_EQ(settings(recipe, Fp8Gather::kStack, "megatron-bridge"), recipe == Fp8::kBlock ? wide : narrow);
  }
  EXPECT_EQ(settings(Fp8::kMxfp8, Fp8Gather::kOn, "megatron-core"), memory_alone);
  EXPECT_EQ(settings(Fp8::kNone, Fp8Gather::kStack, "megatron-bridge"), wide);
  EXPECT_FALSE(settings(Fp8::kCurrent, Fp8Gather::kStack, "megatron-bridge", 3).second);
}

TEST(Fp8, ParametersInEightBitsNeedProductsOfThemAndShardedState) {
  const auto rule = [](const auto& change) {
    Job job = fp8_job(Fp8::kCurrent);
    job.plan.data = 2, job.plan.zero_stage = 1;
    job.plan.fp8_parameter_gather = Fp8Gather::kOn;
    change(job);
    const auto no = check(job);
    return no ? no->rule : "";
  };
  EXPECT_EQ(rule([](Job&) {}), "");
  EXPECT_EQ(rule([](Job& j) { j.plan.zero_stage = 2; }), "");
  EXPECT_EQ(rule([](Job& j) { j.plan.fp8 = Fp8::kNone; }), "fp8_parameter_gather-needs-fp8");
  EXPECT_EQ(rule([](Job& j) { j.plan.zero_stage = 0; }), "fp8_parameter_gather-needs-zero");
  EXPECT_EQ(rule([](Job& j) { j.plan.zero_stage = 3; }), "fp8_parameter_gather-supported");
  EXPECT_EQ(rule([](Job& j) { j.training.optimizer.kind = Update::kMuon; }), "fp8_parameter_gather-supported");
  EXPECT_EQ(rule([](Job& j) { j.plan.offload.optimizer = Storage::kHost; }), "fp8_parameter_gather-supported");
}

TEST(Fp8, ParametersThatAreGatheredForAPassAreCastInIt) {
  Job job = fp8_job(Fp8::kCurrent);
  job.plan.data = 2, job.plan.zero_stage = 3;
  const Program program = lowered(job);
  EXPECT_EQ(program.kinds[0].forward_first, -1);
  EXPECT_EQ(casts(program, program.kinds[0].forward, Fp8Operand::kWeight), 4 * 2);
  EXPECT_EQ(casts(program, program.kinds[0].backward, Fp8Operand::kWeight), 4 * 2);
}

// Everything but the layers' products stays as it is: the head's three, the norms, attention.
TEST(Fp8, TheHeadAndTheRouterStayAsTheyAre) {
  Job job = fp8_job(Fp8::kBlock);
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 1};
  const Program program = lowered(job);
  for (const int body : {program.kinds[0].forward, program.kinds[0].backward}) {
    for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
      const bool expert = op.kind == OpKind::kExpertMatmul || op.kind == OpKind::kExpertMatmulDgrad ||
                          op.kind == OpKind::kExpertMatmulWgrad;
      const bool dense =
          op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulDgrad || op.kind == OpKind::kMatmulWgrad;
      const bool router = op.n == 4, head = op.layer < 0;
      if (!expert && !dense) continue;
      EXPECT_EQ(op.fp8 != Fp8::kNone, expert || (!router && !head)) << name_of(op.kind);
    }
  }
}

// Per layer, with T = 16 tokens, h = 32, ffn 128, a byte a number and 4 of a scale: without fp8 2 T (h + h + h + ffn)
// of inputs; with it the output of attention stays in 16 bits, and T (h + h + h + ffn) and four scales of 64 bytes
// aligned. Weights: 12 h^2 = 12,288 bytes twice, 8 aligned scales.
TEST(Fp8, KeepsInputsInAByteAndWeightsTwice) {
  const Program plain = lowered(fp8_job(Fp8::kNone)), low = lowered(fp8_job(Fp8::kCurrent));
  const std::int64_t t = 16, h = 32, ffn = 128, layers = 2;
  EXPECT_EQ(bytes_of(plain, Space::kFrame) - bytes_of(low, Space::kFrame),
            layers * (2 * t * (h + h + ffn) - t * (3 * h + ffn) - 4 * kAlignment));
  EXPECT_EQ(bytes_of(low, Space::kParameter),
            aligned(bytes_of(plain, Space::kParameter)) + layers * (2 * 12 * h * h + 8 * kAlignment));
}

// Two layers of four matrices, three operands of each: 24 sites, each with a number of this step, of the window, and of
// 1,024 steps. Nothing else lies in the optimizer's space that `current` has not.
TEST(Fp8, DelayedScalingKeepsAHistory) {
  Job job = fp8_job(Fp8::kCurrent);
  job.plan.tensor = 2, job.plan.data = 2;
  const Program current = lowered(job);
  job.plan.fp8 = Fp8::kDelayed;
  const Program delayed = lowered(job);
  EXPECT_EQ(bytes_of(delayed, Space::kOptimizer) - bytes_of(current, Space::kOptimizer), aligned(24 * 1026 * 4));
  EXPECT_EQ(delayed.roles[0].total_bytes() - current.roles[0].total_bytes(), aligned(24 * 1026 * 4));
  EXPECT_EQ(current.kinds[0].history, kNoBuffer);
  const ChunkTemplate& kind = delayed.kinds[0];
  EXPECT_EQ(kind.sites, 24);
  std::map<int, int> casts_of;  // by offset of the site
  for (const int body : {kind.forward_first, kind.backward}) {
    for (const Op& op : delayed.bodies[static_cast<std::size_t>(body)].ops) {
      if (op.kind != OpKind::kQuantize) continue;
      EXPECT_EQ(op.k, 24);
      ++casts_of[static_cast<int>(kind.buffers[static_cast<std::size_t>(op.in[1])].offset)];
    }
  }
  EXPECT_EQ(casts_of.size(), 24U);  // every site is of one tensor, which is cast once
  for (const auto& [offset, count] : casts_of) EXPECT_EQ(count, 1) << offset;
}

// After the gradient norm's ops: the maximum over tensor ranks, then over those with the same parameters.
TEST(Fp8, DelayedScalingAgreesOnTheLargestNumbersOverTheStage) {
  Job job = fp8_job(Fp8::kDelayed);
  job.plan.tensor = 2, job.plan.data = 2;
  const Program program = lowered(job);
  const Body& norm = program.bodies[static_cast<std::size_t>(program.kinds[0].norm)];
  std::vector<std::pair<OpKind, Group>> ops;
  for (const Op& op : norm.ops) {
    if (op.kind == OpKind::kGradientNorm) continue;
    ops.emplace_back(op.kind, op.group);
    if (op.kind != OpKind::kAllReduce) continue;
    EXPECT_EQ(op.reduction, Reduction::kMax);
    EXPECT_EQ(op.elements, 24);
  }
  EXPECT_THAT(ops, testing::ElementsAre(std::pair(OpKind::kAllReduce, Group::kTensor),
                                        std::pair(OpKind::kAllReduce, Group::kData),
                                        std::pair(OpKind::kRecordLargest, Group::kNone)));
}

TEST(Fp8, ScalesLieAlongWhatAProductSumsOver) {
  Op op;
  op.kind = OpKind::kMatmul;
  op.fp8 = Fp8::kMxfp8;
  op.m = 64, op.n = 96, op.k = 160;
  const Fp8Layout x = operand_layout(op, 0), w = operand_layout(op, 1);
  EXPECT_EQ(x.block_columns, 32);  // of k
  EXPECT_EQ(w.block_rows, 32);
  EXPECT_EQ(x.bytes(), 64 * 160 + 64 * 5);
  EXPECT_EQ(w.bytes(), 160 * 96 + 5 * 96);
  op.fp8 = Fp8::kBlock;
  EXPECT_EQ(operand_layout(op, 0).bytes(), 64 * 160 + 4 * 64 * 2);
  EXPECT_EQ(operand_layout(op, 1).bytes(), 160 * 96 + 4 * 2);  // 128 x 128
  op.fp8 = Fp8::kNvfp4;
  EXPECT_EQ(operand_layout(op, 0).bytes(), 64 * 160 / 2 + 64 * 10);
}

TEST(Fp8, RefusesWhatItsKernelsDoNotTake) {
  const auto refusal = [](Job job) {
    const auto no = check(job);
    return no ? no->rule : std::string();
  };
  Job job = fp8_job(Fp8::kDelayed);
  EXPECT_EQ(refusal(job), "");
  job.plan.precision = DType::kFp16;
  EXPECT_EQ(refusal(job), "fp8-beside-bf16");
  job = fp8_job(Fp8::kMxfp8);
  EXPECT_EQ(refusal(job), "");
  job.plan.tensor = 2;  // 16 columns of q on each rank
  EXPECT_EQ(refusal(job), "fp8-divides-rows");
  job.plan.fp8 = Fp8::kBlock;
  EXPECT_EQ(refusal(job), "");
  job.training.sequence = 12;
  EXPECT_EQ(refusal(job), "fp8-divides-tokens");
}

}  // namespace
}  // namespace trivium::program
