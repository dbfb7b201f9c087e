// Experts that some neighbouring tensor ranks split, while others hold other ones, equal their unsplit run.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

enum class Kind { kCapacity, kDropless, kShared };
constexpr Kind kKinds[] = {Kind::kCapacity, Kind::kDropless, Kind::kShared};

/// Four experts of a gated MLP; kShared has an MLP beside them, sigmoids and a dense first layer, too.
program::Job mixture_job(const program::Plan& plan, Kind kind, bool biased = false) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.linear_bias = biased;
  job.model.activation = models::Activation::kSwiglu;
  models::Experts e{.count = 4, .top_k = 2, .capacity_factor = 0.75};
  if (kind != Kind::kCapacity) e.dropless = true, e.imbalance = 4;
  e.balance_loss = 0.1;
  if (kind == Kind::kShared) {
    e.scores = models::Scores::kSigmoid;
    e.correction_bias = true;
    e.shared_hidden = 32, e.dense_layers = 1, e.dense_hidden = 96;
  }
  job.model.experts = e;
  if (biased) job.training.optimizer.epsilon = 1e-6;  // biases of experts that few tokens chose have tiny gradients
  return job;
}

struct Split {
  int expert, data, context, pipeline, zero;
};

program::Plan plan_of(const Split& split, bool sequence_parallel) {
  program::Plan plan;
  plan.tensor = 4, plan.expert_tensor = 2;
  plan.expert = split.expert, plan.data = split.data, plan.context = split.context;
  plan.pipeline = split.pipeline, plan.zero_stage = split.zero;
  if (split.context > 1) plan.attention = program::Attention::kFlash;
  plan.sequence_parallel = plan.overlap.tensor = sequence_parallel;
  plan.overlap.parameter_gather = plan.overlap.gradient_reduction = split.zero == 3;
  return plan;
}

// Of four tensor ranks two and two split experts: alone, over two replicas, with two and with four holders of the same
// ones, over stages and over context ranks.
TEST(ExpertTensor, SomeOfTheTensorRanksSplitExperts) {
  for (const Kind kind : kKinds) {
    const Trained unsplit = run(mixture_job({}, kind), 2);
    for (const Split& split : std::vector<Split>{{2, 1, 1, 1, 0},
                                                 {4, 2, 1, 1, 0},
                                                 {2, 2, 1, 1, 1},
                                                 {2, 2, 1, 1, 3},
                                                 {2, 4, 1, 1, 2},
                                                 {4, 4, 1, 1, 3},
                                                 {2, 1, 2, 1, 0},
                                                 {4, 2, 2, 1, 3},
                                                 {4, 2, 1, 2, 1}}) {
      for (const bool sequence_parallel : {false, true}) {
        expect_equivalent(unsplit, mixture_job(plan_of(split, sequence_parallel), kind));
      }
    }
  }
}

TEST(ExpertTensor, ContextRanksExchangeHeads) {
  for (const Kind kind : kKinds) {
    program::Plan plan = plan_of({2, 1, 2, 1, 0}, true);
    plan.context_method = program::ContextMethod::kAllToAll;
    const auto job_of = [&](const program::Plan& of) {
      program::Job job = mixture_job(of, kind);
      job.model.heads = job.model.kv_heads = 8, job.model.head_dim = 4;
      return job;
    };
    expect_equivalent(run(job_of({}), 2), job_of(plan));
  }
}

// Of eight tensor ranks two, and four, split an expert.
TEST(ExpertTensor, EveryDivisorOfTheTensorRanksMaySplitExperts) {
  for (const Kind kind : kKinds) {
    const auto job_of = [&](const program::Plan& plan) {
      program::Job job = mixture_job(plan, kind);
      job.model.heads = job.model.kv_heads = 8, job.model.head_dim = 4;
      return job;
    };
    const Trained unsplit = run(job_of({}), 2);
    for (const auto& [expert_tensor, expert, data] : {std::tuple{2, 4, 1}, {4, 2, 1}, {4, 4, 2}}) {
      for (const bool sequence_parallel : {false, true}) {
        program::Plan plan;
        plan.tensor = 8, plan.expert_tensor = expert_tensor;
        plan.expert = expert, plan.data = data;
        plan.sequence_parallel = sequence_parallel;
        expect_equivalent(unsplit, job_of(plan));
      }
    }
  }
}

// The size of the whole tensor group is the default, bit by bit.
TEST(ExpertTensor, OfAllTensorRanksIsTheDefault) {
  program::Plan plan = plan_of({2, 2, 1, 1, 1}, true);
  plan.expert_tensor = 0;
  const Trained usual = run(mixture_job(plan, Kind::kDropless), 2);
  ASSERT_EQ(usual.refused, "");
  plan.expert_tensor = 4;
  expect_equivalent(usual, mixture_job(plan, Kind::kDropless), Asked::kBits, "expert_tensor 0");
}

// The first of the ranks that split an expert adds its second bias, and counts it in the norm.
TEST(ExpertTensor, BiasesOfExpertsAreAddedOnce) {
  for (const Kind kind : kKinds) {
    const Trained unsplit = run(mixture_job({}, kind, true), 2);
    for (const Split& split : {Split{2, 1, 1, 1, 0}, {4, 2, 1, 1, 1}, {2, 2, 1, 1, 3}}) {
      for (const bool sequence_parallel : {false, true}) {
        expect_equivalent(unsplit, mixture_job(plan_of(split, sequence_parallel), kind, true));
      }
    }
  }
}

TEST(ExpertTensor, RecomputationSplitBackwardsAndPlacementsChangeNothing) {
  program::Plan larger;
  larger.micro_batch = 2;
  for (const Kind kind : kKinds) {
    const Trained unsplit = run(mixture_job(larger, kind), 2);
    for (const auto recompute :
         {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
      program::Plan plan = plan_of({4, 2, 1, 2, 1}, true);
      plan.micro_batch = 2;
      plan.recompute = recompute;
      plan.placement = "data-pipeline-tensor-context";
      if (recompute == program::Recompute::kNone) plan.schedule = program::Schedule::kZeroBubble;
      expect_equivalent(unsplit, mixture_job(plan, kind));
    }
  }
}

TEST(ExpertTensor, OverlappedExchangesKeepTheBits) {
  for (const Kind kind : kKinds) {
    program::Plan plan = plan_of({4, 2, 1, 1, 1}, true);
    plan.overlap.gradient_reduction = true;
    const Trained apart = run(mixture_job(plan, kind), 2);
    ASSERT_EQ(apart.refused, "");
    plan.overlap.expert = true;
    expect_equivalent(apart, mixture_job(plan, kind), Asked::kBits, "without overlap.expert");
  }
}

// Whole experts' gates and values are matrices of their own, too.
TEST(ExpertTensor, MuonGathersMomentaOfTheRanksThatSplitAnExpert) {
  const auto job_of = [](const program::Plan& plan) {
    program::Job job = mixture_job(plan, Kind::kCapacity);
    job.training.optimizer.kind = program::Update::kMuon;
    return job;
  };
  const Trained unsplit = run(job_of({}), 2);
  for (const int zero : {0, 1, 3}) {
    expect_equivalent(unsplit, job_of(plan_of({2, 2, 1, 1, zero}, true)));
    program::Plan whole = plan_of({4, 2, 1, 1, zero}, true);
    whole.expert_tensor = 1;
    expect_equivalent(unsplit, job_of(whole));
  }
}

// Rows of neighbours that are not gathered miss in the experts; those of all tensor ranks are of other experts.
TEST(Mutation, RowsOfTheOthersThatSplitAnExpertAreSeenToMiss) {
  const Trained unsplit = run(mixture_job({}, Kind::kCapacity), 2);
  const auto skip = [](program::Program& program) {
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.group == program::Group::kExpertTensor && op.kind == program::OpKind::kAllGather) op.elements = 0;
      }
    }
  };
  std::string where;
  const program::Job job = mixture_job(plan_of({2, 1, 1, 1, 0}, false), Kind::kCapacity);
  EXPECT_GT(difference(unsplit, run(job, 2, skip), where), kTolerance) << where;
}

}  // namespace
}  // namespace trivium::runtime::testing
