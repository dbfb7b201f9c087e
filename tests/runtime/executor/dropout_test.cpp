// What is dropped where: masks of different places have nothing to do with each other, those of one place are the same
// under every plan, and losses that are only measured drop nothing.
#include "runtime/executor/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/cpu/dropping.h"
#include "runtime/executor/replay.h"
#include "runtime/executor/train.h"
#include "tests/program/jobs.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

using program::DropoutSite;

constexpr double kProbability = 0.25;

program::Job dropped_job(const program::Plan& plan) {
  program::Job job = toy_job(plan);
  job.training.dropout = kProbability;
  return job;
}

std::vector<std::uint8_t> mask_of(const Dropout& d, std::int64_t head, std::int64_t sample, std::int64_t position) {
  std::vector<std::uint8_t> keep(1 << 16);
  cpu::draw_row(d, head, sample, position, 0, static_cast<std::int64_t>(keep.size()), keep.data());
  return keep;
}

double share_that_agrees(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  double agree = 0;
  for (std::size_t i = 0; i < a.size(); ++i) agree += a[i] == b[i] ? 1 : 0;
  return agree / static_cast<double>(a.size());
}

/// Tasks and ops of a pass on a rank, by kind.
struct Found {
  const program::Task* task;
  const program::Op* op;
};
std::vector<Found> ops_of(const program::Program& program, int rank, program::TaskKind pass, program::OpKind kind) {
  std::vector<Found> found;
  for (const program::Task& task : program.role_of(rank).tasks) {
    if (task.kind != pass) continue;
    for (const program::Op& op : program.body_of(task).ops) {
      if (op.kind == kind) found.push_back({&task, &op});
    }
  }
  return found;
}

// Two independent masks of p = 1/4 agree in 1/16 + 9/16 = 5/8 of their elements, give or take sqrt(15/64 / 65536) =
// 0.0019; five of those are the bound.
TEST(Masks, OfDifferentPlacesAreIndependent) {
  const program::Job job = dropped_job({});
  const program::Program program = ordered_program(job);
  const auto attention = ops_of(program, 0, program::TaskKind::kForward, program::OpKind::kAttention);
  const auto residual = ops_of(program, 0, program::TaskKind::kForward, program::OpKind::kBiasResidual);
  const auto position = ops_of(program, 0, program::TaskKind::kForward, program::OpKind::kPosition);
  ASSERT_EQ(attention.size(), 64u);  // eight micro-batches of eight layers
  ASSERT_EQ(residual.size(), 128u);
  const auto dropout = [&](const Found& f, std::int64_t step) { return dropout_of(program, {}, *f.task, *f.op, step); };
  const auto base = mask_of(dropout(attention[0], 5), 0, 0, 0);
  program::Program reseeded = ordered_program(job);
  reseeded.settings.seed += 1;
  const std::vector<std::pair<const char*, std::vector<std::uint8_t>>> others{
      {"step", mask_of(dropout(attention[0], 6), 0, 0, 0)},
      {"layer", mask_of(dropout(attention[1], 5), 0, 0, 0)},
      {"site, attention's residual", mask_of(dropout(residual[0], 5), 0, 0, 0)},
      {"site, the MLP's residual", mask_of(dropout(residual[1], 5), 0, 0, 0)},
      {"site, embedding", mask_of(dropout(position[0], 5), 0, 0, 0)},
      {"sample of another micro-batch", mask_of(dropout(attention[8], 5), 0, 0, 0)},
      {"sample of the micro-batch", mask_of(dropout(attention[0], 5), 0, 1, 0)},
      {"head", mask_of(dropout(attention[0], 5), 1, 0, 0)},
      {"position", mask_of(dropout(attention[0], 5), 0, 0, 1)},
      {"seed", mask_of(dropout_of(reseeded, {}, *attention[0].task, *attention[0].op, 5), 0, 0, 0)}};
  EXPECT_EQ(base, mask_of(dropout(attention[0], 5), 0, 0, 0));
  for (const auto& [what, mask] : others) EXPECT_NEAR(share_that_agrees(base, mask), 0.625, 0.0095) << what;
  EXPECT_NEAR(share_that_agrees(others[2].second, others[3].second), 0.625, 0.0095) << "two residuals of a layer";
}

TEST(Masks, AreNumberedBySeedLayerAndSite) {
  const std::uint64_t key = dropout_key(1, 0, DropoutSite::kEmbedding);
  // Sites lie 2^24 apart, so that each has room for its heads.
  EXPECT_EQ(dropout_key(1, 0, DropoutSite::kAttention) - key, std::uint64_t{1} << 24);
  EXPECT_EQ(dropout_key(1, 5, DropoutSite::kMlpResidual) - key, std::uint64_t{5 * 4 + 3} << 24);
}

// Attention of heads 2 and 3 of layer 4, sample 6 of the step, wherever a plan puts it.
TEST(Masks, OfOnePlaceAreThoseOfEveryPlan) {
  program::Plan plan;
  const program::Program alone = ordered_program(dropped_job(plan));
  plan.tensor = 2, plan.pipeline = 2, plan.data = 2;
  const program::Program split = ordered_program(dropped_job(plan));
  const auto whole = ops_of(alone, 0, program::TaskKind::kForward, program::OpKind::kAttention);
  // Micro-batch 6 of one replica is the fourth of the first of two; layer 4 is the second stage's first.
  const program::Coordinates at{.tensor = 1, .pipeline = 1};
  const auto parts = ops_of(split, split.mesh.rank(at), program::TaskKind::kForward, program::OpKind::kAttention);
  const Found& one = whole[6 * 8 + 4];
  const Found& other = parts[3 * 4];
  ASSERT_EQ(one.task->micro_batch, 6);
  ASSERT_EQ(other.task->micro_batch, 3);
  const Dropout a = dropout_of(alone, {}, *one.task, *one.op, 9), b = dropout_of(split, at, *other.task, *other.op, 9);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.first_sample, b.first_sample);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.first_head, 0);
  EXPECT_EQ(b.first_head, 2);
  EXPECT_EQ(mask_of(a, 3, 0, 7), mask_of(b, 1, 0, 7));
}

TEST(Masks, ChangeTheLoss) {
  const Trained with = run(dropped_job({}), 1), without = run(toy_job({}), 1);
  EXPECT_GT(std::abs(with.losses[0] - without.losses[0]), 1e-6);
}

// Nothing is learnt at a rate of 0, so every validation sees the first parameters.
TEST(Validation, DropsNothing) {
  program::Job job = toy_job({});
  job.training.optimizer.learning_rate = job.training.optimizer.min_learning_rate = 0;
  const auto corpus = toy_corpus(4000, 61), other = toy_corpus(1000, 61);
  TrainOptions options;
  options.steps = 2;
  options.validation = other.get();
  options.validate_every = 1;
  const TrainResult plain = train_in_threads(program::verified(ordered_program(job)), *corpus, options);
  job.training.dropout = kProbability;
  const TrainResult dropped = train_in_threads(program::verified(ordered_program(job)), *corpus, options);
  ASSERT_EQ(dropped.refused, "");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(*dropped.steps[i].validation_loss, *plain.steps[i].validation_loss);
    EXPECT_NE(dropped.steps[i].loss, plain.steps[i].loss);
  }
}

// A mask is another one in every step and micro-batch, so that nothing that draws one is the same work every time.
TEST(Replays, LeaveSegmentsWithDropoutOut) {
  const program::Program program = ordered_program(dropped_job({}));
  EXPECT_THAT(Replays(program, program.roles[0]).summary(), ::testing::HasSubstr("dropout (18)"));
  const program::Program plain = ordered_program(toy_job({}));
  EXPECT_THAT(Replays(plain, plain.roles[0]).summary(), ::testing::Not(::testing::HasSubstr("dropout")));
}

}  // namespace
}  // namespace trivium::runtime::testing
