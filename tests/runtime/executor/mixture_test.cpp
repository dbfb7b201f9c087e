// Mixtures of experts spread over ranks equal their unsplit run: capacity and balance are counted per sample.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

/// Four experts of a gated or a plain MLP in the given layers, with less room than tokens choose.
program::Job mixture_job(const program::Plan& plan, int top_k, int every, bool gated) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.linear_bias = false;
  if (gated) job.model.activation = models::Activation::kSwiglu;
  job.model.experts = models::Experts{.count = 4, .top_k = top_k, .every = every, .capacity_factor = 0.75};
  job.model.experts->balance_loss = 0.1;
  return job;
}

program::Plan plan_of(int expert, int data) {
  program::Plan plan;
  plan.data = data;
  plan.expert = expert;
  return plan;
}

TEST(ExpertParallel, SwitchAndMixtralEqualTheUnsplitRun) {
  for (const auto& [top_k, every, gated] : {std::tuple{1, 2, false}, std::tuple{2, 1, true}}) {
    const Trained unsplit = run(mixture_job({}, top_k, every, gated), 2);
    for (const auto& [expert, data] : {std::pair{1, 2}, std::pair{2, 2}, std::pair{4, 4}, std::pair{2, 4}}) {
      expect_equivalent(unsplit, mixture_job(plan_of(expert, data), top_k, every, gated));
    }
  }
}

TEST(ExpertParallel, TogetherWithEverythingElseItEqualsTheUnsplitRun) {
  const Trained unsplit = run(mixture_job({}, 2, 2, true), 2);
  for (const auto& [expert, data, tensor, pipeline, sequence_parallel, zero] :
       std::vector<std::tuple<int, int, int, int, bool, int>>{{1, 1, 2, 1, false, 0},
                                                              {1, 1, 2, 1, true, 0},
                                                              {2, 2, 2, 1, false, 0},
                                                              {2, 2, 2, 2, true, 1},
                                                              {2, 4, 1, 2, false, 1},
                                                              {2, 2, 1, 4, false, 0},
                                                              {4, 4, 1, 1, false, 1},
                                                              {2, 2, 1, 1, false, 2},
                                                              {2, 4, 1, 2, false, 2},
                                                              {2, 2, 2, 2, true, 2}}) {
    program::Plan plan = plan_of(expert, data);
    plan.tensor = tensor;
    plan.pipeline = pipeline;
    plan.sequence_parallel = sequence_parallel;
    plan.zero_stage = zero;
    expect_equivalent(unsplit, mixture_job(plan, 2, 2, true));
  }
}

// Experts' matrices have their gradients in the first half of a split backward, the router in the second.
TEST(ExpertParallel, SplitBackwardsChangeNothing) {
  const Trained unsplit = run(mixture_job({}, 2, 2, true), 2);
  for (const auto& [expert, data, tensor, pipeline, zero] :
       std::vector<std::tuple<int, int, int, int, int>>{{1, 1, 1, 2, 0},
                                                        {1, 1, 2, 2, 0},
                                                        {2, 2, 1, 2, 0},
                                                        {2, 2, 2, 2, 1},
                                                        {2, 2, 1, 4, 0},
                                                        {1, 2, 2, 2, 3},
                                                        {2, 4, 1, 2, 2}}) {
    program::Plan plan = plan_of(expert, data);
    plan.tensor = tensor;
    plan.pipeline = pipeline;
    plan.zero_stage = zero;
    plan.sequence_parallel = tensor > 1;
    plan.schedule = program::Schedule::kZeroBubble;
    plan.overlap.gradient_reduction = expert > 1;
    expect_equivalent(unsplit, mixture_job(plan, 2, 2, true));
  }
}

// Experts that every replica holds are sharded as everything else is.
TEST(ExpertParallel, ExpertsOfAllReplicasAreShardedWithEverythingElse) {
  const Trained unsplit = run(mixture_job({}, 2, 2, true), 2);
  for (const int zero : {2, 3}) {
    for (const int tensor : {1, 2}) {
      program::Plan plan = plan_of(1, 2);
      plan.tensor = tensor;
      plan.zero_stage = zero;
      plan.overlap.parameter_gather = true;
      expect_equivalent(unsplit, mixture_job(plan, 2, 2, true));
    }
  }
}

TEST(ExpertParallel, RecomputationAndLargerMicroBatchesChangeNothing) {
  program::Plan larger;
  larger.micro_batch = 2;
  const Trained unsplit = run(mixture_job(larger, 1, 2, false), 2);
  for (const auto recompute : {program::Recompute::kSelective, program::Recompute::kFull}) {
    program::Plan plan = plan_of(2, 2);
    plan.micro_batch = 2;
    plan.recompute = recompute;
    expect_equivalent(unsplit, mixture_job(plan, 1, 2, false));
  }
}

// Tensor ranks that hold experts of their own, whole, belong to the expert group: alone, with replicas, with holders of
// the same experts, over four of them, over stages and over context ranks.
TEST(ExpertParallel, TensorRanksHoldWholeExperts) {
  for (const auto& [top_k, every, gated] : {std::tuple{1, 2, false}, std::tuple{2, 1, true}}) {
    const Trained unsplit = run(mixture_job({}, top_k, every, gated), 2);
    for (const auto& [expert, data, tensor, pipeline, context, zero] :
         std::vector<std::tuple<int, int, int, int, int, int>>{{2, 1, 2, 1, 1, 0},
                                                               {4, 2, 2, 1, 1, 0},
                                                               {4, 1, 4, 1, 1, 0},
                                                               {2, 2, 2, 1, 1, 1},
                                                               {2, 4, 2, 1, 1, 2},
                                                               {4, 2, 2, 2, 1, 1},
                                                               {4, 4, 2, 1, 1, 3},
                                                               {2, 1, 2, 1, 2, 0},
                                                               {4, 2, 2, 1, 2, 3}}) {
      for (const bool sequence_parallel : {false, true}) {
        program::Plan plan = plan_of(expert, data);
        plan.expert_tensor = 1;
        plan.tensor = tensor;
        plan.pipeline = pipeline;
        plan.context = context;
        if (context > 1) plan.attention = program::Attention::kFlash;
        plan.sequence_parallel = plan.overlap.tensor = sequence_parallel;
        plan.zero_stage = zero;
        plan.overlap.parameter_gather = plan.overlap.gradient_reduction = zero == 3;
        expect_equivalent(unsplit, mixture_job(plan, top_k, every, gated));
      }
    }
  }
}

// 16 tokens' choices, 4 experts, capacity 0.75: room for 3 with one choice and for 6 with two, of which every context
// rank has a part that is rounded up; what its own tokens do not find there lies with the others.
TEST(ExpertParallel, ContextRanksRouteWholeSamples) {
  for (const auto& [top_k, every, gated] : {std::tuple{1, 2, false}, std::tuple{2, 1, true}}) {
    const Trained unsplit = run(mixture_job({}, top_k, every, gated), 2);
    for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
      for (const auto& [expert, data, tensor, context, zero] :
           std::vector<std::tuple<int, int, int, int, int>>{{1, 1, 1, 2, 0},
                                                            {1, 1, 1, 4, 0},
                                                            {1, 1, 2, 2, 0},
                                                            {1, 2, 1, 2, 2},
                                                            {2, 2, 1, 2, 0},
                                                            {2, 2, 2, 2, 1},
                                                            {2, 4, 1, 2, 2},
                                                            {1, 2, 1, 2, 3}}) {
        program::Plan plan = plan_of(expert, data);
        plan.tensor = tensor;
        plan.sequence_parallel = tensor > 1;
        plan.context = context;
        plan.context_method = method;
        plan.attention = program::Attention::kFlash;
        plan.zero_stage = zero;
        expect_equivalent(unsplit, mixture_job(plan, top_k, every, gated));
      }
    }
  }
}

// Room for 3 or 6 of 16 tokens in each of four experts: a tensor rank of two has 2 or 3 rows of an expert, one of four
// 1 or 2, so that some lie empty.
TEST(ExpertParallel, TensorRanksShareTheRows) {
  for (const auto& [top_k, every, gated] : {std::tuple{1, 2, false}, std::tuple{2, 1, true}}) {
    program::Plan larger;
    larger.micro_batch = 2;
    const Trained unsplit = run(mixture_job(larger, top_k, every, gated), 2);
    for (const bool sequence_parallel : {false, true}) {
      for (const auto& [expert, tensor, context, overlap] :
           std::vector<std::tuple<int, int, int, bool>>{{1, 2, 1, false},
                                                        {2, 2, 1, true},
                                                        {4, 2, 1, false},
                                                        {2, 4, 1, false},
                                                        {1, 2, 2, true},
                                                        {2, 2, 2, false}}) {
        for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
          if (context == 1 && method == program::ContextMethod::kAllToAll) continue;
          program::Plan plan = plan_of(expert, expert);
          plan.micro_batch = 2;
          plan.tensor = tensor;
          plan.sequence_parallel = sequence_parallel;
          plan.overlap.tensor = overlap;
          plan.context = context;
          plan.context_method = method;
          if (context > 1) plan.attention = program::Attention::kFlash;
          expect_equivalent(unsplit, mixture_job(plan, top_k, every, gated));
        }
      }
    }
  }
}

// Experts that have room for all, for many and for few of those that choose them: no row, some or many lie with other
// context ranks than their tokens.
TEST(ExpertParallel, RowsOfContextRanksSpillAsTheyMust) {
  for (const double capacity_factor : {0.25, 0.5, 1.0, 1.5, 4.0}) {
    const auto job_of = [&](const program::Plan& plan) {
      program::Job job = mixture_job(plan, 2, 1, true);
      job.model.experts->capacity_factor = capacity_factor;
      return job;
    };
    const Trained unsplit = run(job_of({}), 2);
    for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
      for (const auto& [expert, tensor, context] : {std::tuple{1, 1, 4}, {2, 1, 2}, {2, 2, 2}, {1, 2, 4}}) {
        if (tensor * context > 4 && method == program::ContextMethod::kAllToAll) continue;  // of four heads
        program::Plan plan = plan_of(expert, expert);
        plan.tensor = tensor;
        plan.sequence_parallel = tensor > 1 && expert > 1;
        plan.context = context;
        plan.context_method = method;
        plan.attention = program::Attention::kFlash;
        expect_equivalent(unsplit, job_of(plan));
      }
    }
  }
}

TEST(ExpertParallel, ContextRanksRecomputeAndSplitTheirBackwards) {
  program::Plan larger;
  larger.micro_batch = 2;
  const Trained unsplit = run(mixture_job(larger, 2, 2, true), 2);
  for (const auto recompute : {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
    for (const auto schedule : {program::Schedule::k1f1b, program::Schedule::kZeroBubble}) {
      program::Plan plan = plan_of(2, 2);
      plan.micro_batch = 2;
      plan.context = plan.pipeline = 2;
      plan.attention = program::Attention::kFlash;
      plan.recompute = recompute;
      plan.schedule = schedule;
      expect_equivalent(unsplit, mixture_job(plan, 2, 2, true));
    }
  }
}

// Two holders of the same experts, four, and one alone whose experts stay whole while everything else is sharded.
TEST(ExpertParallel, SpreadExpertsAreShardedAmongTheirHolders) {
  const Trained unsplit = run(mixture_job({}, 2, 2, true), 2);
  for (const auto& [expert, data, tensor, pipeline, context, gathers] :
       std::vector<std::tuple<int, int, int, int, int, bool>>{{2, 4, 1, 1, 1, false},
                                                              {2, 4, 1, 1, 1, true},
                                                              {2, 8, 1, 1, 1, true},
                                                              {2, 2, 1, 1, 1, false},
                                                              {4, 4, 2, 1, 1, true},
                                                              {2, 4, 1, 2, 1, true},
                                                              {2, 2, 2, 1, 2, true},
                                                              {2, 4, 2, 1, 1, false}}) {
    program::Plan plan = plan_of(expert, data);
    plan.tensor = tensor;
    plan.pipeline = pipeline;
    plan.context = context;
    plan.sequence_parallel = tensor > 1;
    if (context > 1) plan.attention = program::Attention::kFlash;
    plan.zero_stage = 3;
    plan.overlap.parameter_gather = plan.overlap.gradient_reduction = gathers;
    expect_equivalent(unsplit, mixture_job(plan, 2, 2, true));
  }
}

// Without capacity the balance of four experts is E sum f P = 1 where choices are even; at first they nearly are.
TEST(ExpertParallel, BalanceLossOfFreshRoutersIsNearOneALayer) {
  program::Job job = mixture_job({}, 1, 1, false);
  job.model.experts->balance_loss = 0;
  const Trained without = run(job, 1);
  job.model.experts->balance_loss = 1;
  const Trained with = run(job, 1);
  EXPECT_NEAR(with.losses[0] - without.losses[0], 4.0, 0.2);
}

TEST(Mutation, SkippedReductionsOfARouterAreSeen) {
  const Trained unsplit = run(mixture_job({}, 1, 2, false), 2);
  program::Plan plan;
  plan.tensor = 2;
  const auto skip = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.group == program::Group::kTensor && op.lane == program::Lane::kData) op.elements = 0;
      }
    }
  };
  std::string where;
  EXPECT_GT(difference(unsplit, run(mixture_job(plan, 1, 2, false), 2, skip), where), kTolerance) << where;
}

// Rows of the other tensor rank that are not gathered miss in the experts.
TEST(Mutation, RowsThatTensorRanksKeepToThemselvesAreSeen) {
  const Trained unsplit = run(mixture_job({}, 1, 2, false), 2);
  program::Plan plan;
  plan.tensor = 2;
  const auto skip = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.group == program::Group::kTensor && op.kind == program::OpKind::kAllGather) op.elements = 0;
      }
    }
  };
  std::string where;
  EXPECT_GT(difference(unsplit, run(mixture_job(plan, 1, 2, false), 2, skip), where), kTolerance) << where;
}

TEST(Mutation, SkippedGathersOfExpertsAreSeen) {
  const Trained unsplit = run(mixture_job({}, 1, 2, false), 2);
  program::Plan plan = plan_of(2, 4);
  plan.zero_stage = 3;
  const auto skip = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.group == program::Group::kExpertData && op.kind == program::OpKind::kAllGather) op.elements = 0;
      }
    }
  };
  std::string where;
  EXPECT_GT(difference(unsplit, run(mixture_job(plan, 1, 2, false), 2, skip), where), kTolerance) << where;
}

TEST(Mutation, ExpertsReducedLikeReplicasAreSeen) {
  const Trained unsplit = run(mixture_job({}, 1, 2, false), 2);
  const auto mix_up = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.group == program::Group::kExpertData) op.group = program::Group::kData;
      }
    }
  };
  std::string where;
  EXPECT_GT(difference(unsplit, run(mixture_job(plan_of(2, 4), 1, 2, false), 2, mix_up), where), kTolerance) << where;
}

// Rows that came from other context ranks and are not placed miss in the experts.
TEST(Mutation, SpilledRowsThatAreNotPlacedAreSeen) {
  const Trained unsplit = run(mixture_job({}, 1, 2, false), 2);
  program::Plan plan;
  plan.context = 2;
  plan.context_method = program::ContextMethod::kAllToAll;
  plan.attention = program::Attention::kFlash;
  const auto skip = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.kind == program::OpKind::kPlaceRows) op.parts = 0;  // none came
      }
    }
  };
  std::string where;
  EXPECT_GT(difference(unsplit, run(mixture_job(plan, 1, 2, false), 2, skip), where), kTolerance) << where;
}

}  // namespace
}  // namespace trivium::runtime::testing
