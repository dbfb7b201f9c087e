// Sequences split over ranks, by ring attention and by all-to-all over heads, equal their unsplit run.
#include <gtest/gtest.h>

#include "program/lower/lower.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::ContextMethod;

constexpr ContextMethod kMethods[] = {ContextMethod::kRing, ContextMethod::kAllToAll};

/// Twelve heads' worth of ways to split: 12 heads of 4, `kv_heads` of them keys, 24 tokens; learned or rotary
/// positions.
program::Job context_job(const program::Plan& plan, std::int64_t kv_heads, bool rotary) {
  program::Job job = toy_job(plan, 4);
  job.model.layers = 2;
  job.model.heads = 12;
  job.model.kv_heads = kv_heads;
  job.model.head_dim = 4;
  job.model.max_sequence = job.training.sequence = 24;
  if (rotary) job.model.positions = models::Positions::kRotary;
  return job;
}

program::Plan plan_of(int context, ContextMethod method) {
  program::Plan plan;
  plan.context = context;
  plan.context_method = method;
  plan.attention = program::Attention::kFlash;
  return plan;
}

TEST(ContextParallel, TwoThreeAndFourRanksEqualOne) {
  for (const bool rotary : {false, true}) {
    const Trained unsplit = run(context_job({}, 12, rotary));
    for (const ContextMethod method : kMethods) {
      for (const int context : {2, 3, 4}) expect_equivalent(unsplit, context_job(plan_of(context, method), 12, rotary));
    }
  }
}

// Key heads that are split, that are shared by two ranks each, and one for all.
TEST(ContextParallel, GroupedKeysEqualTheUnsplitRun) {
  for (const int kv_heads : {4, 2, 1}) {
    const Trained unsplit = run(context_job({}, kv_heads, true), 2);
    for (const ContextMethod method : kMethods) {
      for (const int context : {2, 4})
        expect_equivalent(unsplit, context_job(plan_of(context, method), kv_heads, true));
    }
  }
}

TEST(ContextParallel, TogetherWithTensorPipelineAndDataItEqualsTheUnsplitRun) {
  const Trained unsplit = run(context_job({}, 4, false), 2);
  for (const ContextMethod method : kMethods) {
    for (const auto& [tensor, pipeline, data, sequence_parallel, zero] :
         std::vector<std::tuple<int, int, int, bool, int>>{{2, 1, 1, false, 0},
                                                           {2, 1, 1, true, 0},
                                                           {1, 2, 1, false, 0},
                                                           {1, 1, 2, false, 0},
                                                           {1, 1, 2, false, 1},
                                                           {2, 2, 1, true, 1}}) {
      program::Plan plan = plan_of(2, method);
      plan.tensor = tensor;
      plan.pipeline = pipeline;
      plan.data = data;
      plan.sequence_parallel = sequence_parallel;
      plan.zero_stage = zero;
      if (pipeline > 1 && data == 1) plan.schedule = program::Schedule::kZeroBubble;
      expect_equivalent(unsplit, context_job(plan, 4, false));
    }
  }
}

TEST(ContextParallel, RecomputationAndLargerMicroBatchesChangeNothing) {
  program::Plan larger;
  larger.micro_batch = 2;
  const Trained unsplit = run(context_job(larger, 12, true), 2);
  for (const ContextMethod method : kMethods) {
    for (const auto recompute :
         {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
      program::Plan plan = plan_of(2, method);
      plan.micro_batch = 2;
      plan.recompute = recompute;
      expect_equivalent(unsplit, context_job(plan, 12, true));
    }
  }
}

// Rings whose ranks are several context ranks that exchange heads. Keys are split, shared by two and by all.
TEST(ContextParallel, RingsOfRanksThatExchangeHeadsEqualTheUnsplitRun) {
  for (const std::int64_t kv_heads : {12, 4, 1}) {
    for (const bool rotary : {false, true}) {
      const Trained unsplit = run(context_job({}, kv_heads, rotary), 2);
      for (const auto& [context, heads] : {std::pair{4, 2}, {6, 2}, {6, 3}}) {
        program::Plan plan = plan_of(context, ContextMethod::kRing);
        plan.context_heads = heads;
        program::Job job = context_job(plan, kv_heads, rotary);
        if (kv_heads == 4 && heads == 3) {
          EXPECT_EQ(program::check(job)->rule, "context-divides-kv_heads");
          continue;
        }
        expect_equivalent(unsplit, job);
        job.plan.recompute = program::Recompute::kFull;
        expect_equivalent(unsplit, job);
        job.plan.recompute = program::Recompute::kSelective;
        expect_equivalent(unsplit, job);
      }
    }
  }
}

TEST(ContextParallel, RingsOfRanksThatExchangeHeadsEqualItTogetherWithAllElse) {
  const auto with = [](program::Job job) {
    job.model.attention_sinks = true;
    job.model.window = models::Window{.keys = 7, .full_every = 2};
    job.training.dropout = 0.1;
    return job;
  };
  const Trained plain = run(context_job({}, 4, true), 2), all = run(with(context_job({}, 4, true)), 2);
  ASSERT_EQ(all.refused, "");
  for (const auto& [tensor, pipeline, data, zero] :
       std::vector<std::tuple<int, int, int, int>>{{1, 1, 1, 0}, {2, 1, 1, 0}, {1, 2, 1, 0}, {1, 1, 2, 3}}) {
    program::Plan plan = plan_of(4, ContextMethod::kRing);
    plan.context_heads = 2;
    plan.tensor = tensor;
    plan.sequence_parallel = tensor > 1;
    plan.pipeline = pipeline;
    plan.data = data;
    plan.zero_stage = zero;
    expect_equivalent(plain, context_job(plan, 4, true));
    expect_equivalent(all, with(context_job(plan, 4, true)));
  }
}

TEST(ContextParallel, HeadsAreExchangedByRanksOfARingAlone) {
  const auto rule = [](int context, int heads, ContextMethod method) {
    program::Plan plan = plan_of(context, method);
    plan.context_heads = heads;
    const auto no = program::check(context_job(plan, 12, true));
    return no ? no->rule : "";
  };
  EXPECT_EQ(rule(4, 2, ContextMethod::kRing), "");
  for (const auto& [context, heads] : {std::pair{1, 2}, {4, 4}, {4, 3}}) {
    EXPECT_EQ(rule(context, heads, ContextMethod::kRing), "context_heads-divides-context") << context << " " << heads;
  }
  EXPECT_EQ(rule(4, 2, ContextMethod::kAllToAll), "context_heads-divides-context");
}

// Scores kept whole: a part of the heads for all tokens.
TEST(ContextParallel, UnfusedAttentionOverAPartOfTheHeadsEqualsTheUnsplitRun) {
  const Trained unsplit = run(context_job({}, 12, false), 2);
  program::Plan plan = plan_of(3, ContextMethod::kAllToAll);
  plan.attention = program::Attention::kUnfused;
  expect_equivalent(unsplit, context_job(plan, 12, false));
}

// One sample of 3,000 tokens on three devices with 1,000 tokens each.
TEST(ContextParallel, ThreeDevicesWithAThousandTokensEachEqualOneWithThreeThousand) {
  const auto job_of = [](const program::Plan& plan) {
    program::Job job = toy_job(plan, 1);
    job.model.layers = 1;
    job.model.heads = job.model.kv_heads = 3;
    job.model.head_dim = 4;
    job.model.hidden = 12;
    job.model.ffn_hidden = 24;
    job.model.max_sequence = job.training.sequence = 3000;
    return job;
  };
  program::Plan alone;
  alone.attention = program::Attention::kFlash;
  const Trained unsplit = run(job_of(alone), 1);
  for (const ContextMethod method : kMethods) {
    const program::Job job = job_of(plan_of(3, method));
    const auto lowered = std::get<program::Program>(program::lower(job));
    for (const program::Op& op : lowered.bodies[static_cast<std::size_t>(lowered.kinds[0].forward)].ops) {
      if (op.kind == program::OpKind::kNorm) {
        EXPECT_EQ(op.m, 1000);
      }
    }
    expect_equivalent(unsplit, job);
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
