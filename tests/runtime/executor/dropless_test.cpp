// Mixtures that drop no token equal their unsplit run, however choices lean: rows are as many as chose an expert.
#include <gtest/gtest.h>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

/// Four experts, two of them for a token, with room for any choice on ranks that share them.
program::Job dropless_job(const program::Plan& plan, bool sigmoids = false) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.linear_bias = false;
  job.model.activation = models::Activation::kSwiglu;
  models::Experts e{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  e.balance_loss = 0.1;
  if (sigmoids) {
    e.scores = models::Scores::kSigmoid;
    e.correction_bias = true;
    e.scale = 2.5;
    e.groups = 2, e.top_groups = 1, e.group_best = 2;
    e.shared_hidden = 32;
    e.dense_layers = 1, e.dense_hidden = 96;
  }
  job.model.experts = e;
  return job;
}

struct Split {
  int expert, data, tensor, context, pipeline, zero;
};

void expect_equal(const Trained& unsplit, const Split& split, bool sigmoids, program::Plan plan = {}) {
  plan.expert = split.expert, plan.data = split.data, plan.tensor = split.tensor;
  plan.context = split.context, plan.pipeline = split.pipeline, plan.zero_stage = split.zero;
  if (split.context > 1) plan.attention = program::Attention::kFlash;
  for (const bool sequence_parallel : {false, true}) {
    if (sequence_parallel && split.tensor == 1) continue;
    plan.sequence_parallel = sequence_parallel;
    expect_equivalent(unsplit, dropless_job(plan, sigmoids));
  }
}

TEST(DroplessExperts, EqualTheUnsplitRunUnderEverySplit) {
  for (const bool sigmoids : {false, true}) {
    const Trained unsplit = run(dropless_job({}, sigmoids), 2);
    for (const Split& split : std::vector<Split>{{1, 2, 1, 1, 1, 0},
                                                 {2, 2, 1, 1, 1, 0},
                                                 {4, 4, 1, 1, 1, 1},
                                                 {1, 1, 2, 1, 1, 0},
                                                 {1, 1, 4, 1, 1, 0},
                                                 {2, 2, 2, 1, 2, 1},
                                                 {2, 4, 1, 1, 2, 2},
                                                 {1, 1, 1, 2, 1, 0},
                                                 {1, 1, 2, 2, 1, 0},
                                                 {2, 2, 1, 2, 1, 0},
                                                 {2, 2, 2, 2, 1, 1},
                                                 {1, 2, 2, 1, 2, 3},
                                                 {2, 2, 1, 1, 4, 0}}) {
      expect_equal(unsplit, split, sigmoids);
    }
  }
}

TEST(DroplessExperts, RecomputationSplitBackwardsAndLargerMicroBatchesChangeNothing) {
  program::Plan larger;
  larger.micro_batch = 2;
  const Trained unsplit = run(dropless_job(larger, true), 2);
  for (const auto recompute : {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
    for (const auto schedule : {program::Schedule::k1f1b, program::Schedule::kZeroBubble}) {
      program::Plan plan = larger;
      plan.recompute = recompute;
      plan.schedule = schedule;
      if (recompute != program::Recompute::kNone && schedule == program::Schedule::kZeroBubble) continue;
      expect_equal(unsplit, {2, 2, 2, 1, 2, 0}, true, plan);
    }
  }
}

// Cores exchange rows one by one, whatever carries them elsewhere: bit by bit the same.
TEST(DroplessExperts, TravelByAnyDispatchAlike) {
  const Trained unsplit = run(dropless_job({}, true), 2);
  program::Plan plan;
  plan.expert = plan.data = 2, plan.tensor = 2, plan.expert_tensor = 1;
  const Trained plain = run(dropless_job(plan, true), 2);
  for (const auto dispatch :
       {program::ExpertDispatch::kAllToAll, program::ExpertDispatch::kDeepEp, program::ExpertDispatch::kHybrid}) {
    plan.expert_dispatch = dispatch;
    expect_equivalent(unsplit, dropless_job(plan, true));
    const Trained trained = run(dropless_job(plan, true), 2);
    EXPECT_EQ(trained.losses, plain.losses) << name_of(dispatch);
  }
}

// Tensor ranks hold experts of their own, whole; with sequence parallelism each sends the rows of its own tokens.
TEST(DroplessExperts, OfTensorRanksMayBeWhole) {
  program::Plan whole;
  whole.expert_tensor = 1;
  for (const bool sigmoids : {false, true}) {
    const Trained unsplit = run(dropless_job({}, sigmoids), 2);
    for (const Split& split : std::vector<Split>{{2, 1, 2, 1, 1, 0},
                                                 {4, 2, 2, 1, 1, 0},
                                                 {4, 1, 4, 1, 1, 0},
                                                 {2, 2, 2, 1, 2, 1},
                                                 {2, 4, 2, 1, 1, 2},
                                                 {4, 2, 2, 2, 1, 1},
                                                 {2, 2, 2, 1, 1, 3},
                                                 {4, 4, 2, 1, 1, 3}}) {
      expect_equal(unsplit, split, sigmoids, whole);
    }
  }
}

TEST(DroplessExperts, WholeOnesAreRecomputedInSplitBackwardsToo) {
  program::Plan larger;
  larger.micro_batch = 2;
  const Trained unsplit = run(dropless_job(larger, true), 2);
  larger.expert_tensor = 1;
  for (const auto recompute : {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
    program::Plan plan = larger;
    plan.recompute = recompute;
    if (recompute == program::Recompute::kNone) plan.schedule = program::Schedule::kZeroBubble;
    expect_equal(unsplit, {4, 2, 2, 1, 2, 0}, true, plan);
    expect_equal(unsplit, {2, 1, 2, 2, 1, 0}, true, plan);
  }
}

// Biases, norms after branches and norms before them, tanh of the logits: what else a layer may have.
TEST(DroplessExperts, WholeOnesHaveBiasesAndNormsBehindThem) {
  for (const bool behind : {false, true}) {
    const auto job_of = [&](const program::Plan& plan) {
      program::Job job = dropless_job(plan);
      job.model.linear_bias = !behind;
      job.model.branch_norms = behind;
      return job;
    };
    const Trained unsplit = run(job_of({}), 2);
    for (const bool sequence_parallel : {false, true}) {
      program::Plan plan;
      plan.expert_tensor = 1;
      plan.expert = 4;
      plan.data = plan.tensor = 2;
      plan.sequence_parallel = sequence_parallel;
      expect_equivalent(unsplit, job_of(plan));
    }
  }
}

// One expert for a token, whose score is its weight.
TEST(DroplessExperts, OneChoiceWeighsWhatItScored) {
  const auto job_of = [](const program::Plan& plan) {
    program::Job job = dropless_job(plan);
    job.model.experts->top_k = 1;
    return job;
  };
  const Trained unsplit = run(job_of({}), 2);
  program::Plan plan;
  plan.expert = plan.data = plan.tensor = 2;
  expect_equivalent(unsplit, job_of(plan));
}

// With room for the even share alone a rank that is chosen more often says so instead of dropping.
TEST(DroplessExperts, ChoicesBeyondTheRoomAreRefusedByName) {
  program::Plan plan;
  plan.expert = plan.data = 4;
  program::Job job = dropless_job(plan);
  job.model.experts->imbalance = 1;
  try {
    run(job, 2);
    FAIL() << "the toy's choices are not even";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("experts.imbalance"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
