// Going on from a checkpoint is as if nothing had happened.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/pieces.h"
#include "runtime/cpu/backend.h"
#include "tests/runtime/checkpoint/training.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::checkpoint {
namespace {

using support::split_plan;

Toy whole_run(const program::Job& job, std::int64_t steps) {
  const Folder folder;
  return train(job, folder.path(), steps);
}

std::vector<double> last(const std::vector<double>& losses, std::size_t count) {
  return {losses.end() - static_cast<std::ptrdiff_t>(count), losses.end()};
}

TEST(Resume, LossesAndStateAreBitwiseThoseOfTheUninterruptedRun) {
  for (const program::Plan& plan : {split_plan(1, 1, 1, 0), split_plan(2, 2, 1, 0), split_plan(1, 1, 2, 3)}) {
    SCOPED_TRACE(program::summary(plan));
    const program::Job job = small_job(plan);
    const Toy straight = whole_run(job, 6);
    const Folder folder;
    train(job, folder.path(), 6, false, 3);
    const Toy rest = train(job, folder.path(), 6, true);
    EXPECT_EQ(rest.losses, last(straight.losses, 3));
    EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
  }
}

// Moments are saved as they are kept, and go on so under another plan.
TEST(Resume, KeepsTheBitsOfNarrowMoments) {
  for (const program::DType precision : {program::DType::kFp64, program::DType::kBf16}) {
    program::Job job = small_job(split_plan(1, 1, 2, 1));
    job.plan.precision = precision;
    job.plan.moment_dtype = program::Moments::kBf16;
    const Toy straight = whole_run(job, 6);
    for (const int zero_stage : {1, 0}) {
      const Folder folder;
      train(job, folder.path(), 6, false, 3);
      const Opened opened = open(newest_or_throw(folder.path()), true);
      for (const auto& [name, tensor] : opened.tensors.of(State::kSecondMoment)) {
        for (const StoredTensor::Part& part : tensor.parts) EXPECT_EQ(part.number, Number::kBf16) << name;
      }
      program::Job other = job;
      other.plan.zero_stage = zero_stage;
      const Toy rest = train(other, folder.path(), 6, true);
      EXPECT_EQ(rest.losses, last(straight.losses, 3));
      EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
    }
  }
}

// A shard of the momenta, and whole ones after it.
TEST(Resume, GoesOnWithMuonWhoseStateIsShared) {
  program::Job job = small_job(split_plan(1, 2, 2, 1));
  job.training.optimizer.kind = program::Update::kMuon;
  const Toy straight = whole_run(job, 6);
  for (const int zero_stage : {1, 0}) {
    const Folder folder;
    train(job, folder.path(), 6, false, 3);
    program::Job other = job;
    other.plan.zero_stage = zero_stage;
    const Toy rest = train(other, folder.path(), 6, true);
    EXPECT_EQ(rest.losses, last(straight.losses, 3)) << zero_stage;
    EXPECT_EQ(first_difference(rest.whole, straight.whole), "") << zero_stage;
  }
}

// Matrices have a momentum and no second moment; the other optimizer could not go on with it.
TEST(Resume, GoesOnWithMuon) {
  for (const program::DType precision : {program::DType::kFp64, program::DType::kBf16}) {
    program::Job job = small_job(split_plan(2, 2, 2, 0));
    job.plan.precision = precision;
    job.training.optimizer.kind = program::Update::kMuon;
    const Toy straight = whole_run(job, 6);
    const Folder folder;
    train(job, folder.path(), 6, false, 3);
    const Toy rest = train(job, folder.path(), 6, true);
    EXPECT_EQ(rest.losses, last(straight.losses, 3));
    EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
    const Opened opened = open(newest_or_throw(folder.path()), true);
    EXPECT_TRUE(opened.tensors.of(State::kFirstMoment).contains("h.0.attn.c_attn.weight"));
    EXPECT_FALSE(opened.tensors.of(State::kSecondMoment).contains("h.0.attn.c_attn.weight"));
    EXPECT_TRUE(opened.tensors.of(State::kSecondMoment).contains("h.0.ln_1.weight"));
    program::Job other = job;
    other.training.optimizer.kind = program::Update::kAdamW;
    EXPECT_NE(cannot_continue(opened.description, other, opened.description.corpus_tokens), "");
    other = job;
    other.training.documents = {{4}, {1}};
    const std::string no = cannot_continue(opened.description, other, opened.description.corpus_tokens);
    EXPECT_NE(no.find("--document-lengths"), std::string::npos) << no;
  }
}

// What binds no weight may change on the way, and is said; what does is named with its values.
TEST(Resume, SaysWhichMemberOfTheModelChanged) {
  program::Job job = small_job(split_plan(1, 1, 1, 0));
  job.model.positions = models::Positions::kRotary;
  const Folder folder;
  train(job, folder.path(), 2, false, 1);
  const Description saved = open(newest_or_throw(folder.path()), true).description;
  program::Job other = job;
  other.model.name = "renamed";
  other.model.max_sequence *= 2;
  EXPECT_EQ(cannot_continue(saved, other, saved.corpus_tokens), "");
  const std::vector<std::string> changed = changed_members(saved, other);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0],
            fmt::format("max_sequence was {}, is now {}", job.model.max_sequence, 2 * job.model.max_sequence));
  EXPECT_EQ(train(other, folder.path(), 2, true).losses.size(), 1U);  // goes on
  other.model.hidden *= 2;
  const std::string no = cannot_continue(saved, other, saved.corpus_tokens);
  EXPECT_NE(no.find(fmt::format("hidden was {}, is now {}", job.model.hidden, 2 * job.model.hidden)), std::string::npos)
      << no;
  other = job;
  other.model.positions = models::Positions::kLearned;  // a table of positions is a weight
  EXPECT_NE(cannot_continue(saved, other, saved.corpus_tokens), "");
}

program::Job delayed_job(const program::Plan& plan) {
  program::Job job = small_job(plan);
  job.plan.fp8 = program::Fp8::kDelayed;
  return job;
}

// Scales come from the steps before the checkpoint, also while the batch grows.
TEST(Resume, GoesOnWithTheHistoryOfDelayedScaling) {
  for (const program::Plan& plan : {split_plan(1, 1, 1, 0), split_plan(2, 2, 1, 0), split_plan(1, 1, 2, 3)}) {
    SCOPED_TRACE(program::summary(plan));
    program::Job job = delayed_job(plan);
    job.plan.precision = program::DType::kBf16;
    const BatchRamp ramp{4, 4, 3};  // 4, 4, 4, then 8 samples
    for (const std::int64_t saved : {2, 3}) {
      const Folder whole, folder;
      const Toy straight = train(job, whole.path(), 6, false, 0, 0, 0, ramp);
      train(job, folder.path(), 6, false, saved, 0, 0, ramp);
      const Toy rest = train(job, folder.path(), 6, true, 0, 0, 0, ramp);
      EXPECT_EQ(rest.losses, last(straight.losses, static_cast<std::size_t>(6 - saved)));
      EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
    }
  }
}

// One history of a tensor, whoever holds parts of it: but for the order of sums a split casts what one rank casts.
// Other scales than those of one rank would show: numbers that they lose are 1e-5 of a loss (as `current` does here).
TEST(Resume, SplitsOfDelayedScalingGoOnAsOneRankDoes) {
  program::Job unsplit = delayed_job(split_plan(1, 1, 1, 0));
  unsplit.model.linear_bias = false;
  unsplit.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
  const Toy straight = whole_run(unsplit, 6);
  std::vector<program::Plan> plans{split_plan(2, 1, 1, 0), split_plan(1, 2, 1, 0), split_plan(1, 1, 2, 1),
                                   split_plan(2, 1, 2, 3), split_plan(1, 1, 2, 0), split_plan(1, 1, 1, 0),
                                   split_plan(1, 1, 1, 0)};
  plans[0].sequence_parallel = true;
  plans[4].expert = 2;
  plans[5].context = 2, plans[5].attention = program::Attention::kFlash;
  plans[6].micro_batch = 4;
  for (const program::Plan& plan : plans) {
    SCOPED_TRACE(program::summary(plan));
    const Folder folder;
    train(unsplit, folder.path(), 6, false, 2);
    program::Job split = unsplit;
    split.plan = plan;
    split.plan.precision = unsplit.plan.precision, split.plan.fp8 = unsplit.plan.fp8;
    const Toy rest = train(split, folder.path(), 6, true);
    const std::vector<double> expected = last(straight.losses, 4);
    ASSERT_EQ(rest.losses.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(rest.losses[i], expected[i], 1e-8 * expected[i]);
  }
}

// A checkpoint of another recipe has no history: the next step scales as `current` does, those after it by what it
// left.
TEST(Resume, DelayedScalingBeginsAnewWhereThereIsNoHistory) {
  program::Job current = small_job(split_plan(1, 1, 2, 1));
  current.plan.fp8 = program::Fp8::kCurrent;
  const Toy straight = whole_run(current, 6);
  const Folder folder;
  train(current, folder.path(), 6, false, 3);
  program::Job delayed = current;
  delayed.plan.fp8 = program::Fp8::kDelayed;
  const Toy rest = train(delayed, folder.path(), 6, true);
  ASSERT_EQ(rest.losses.size(), 3U);
  EXPECT_EQ(rest.losses[0], straight.losses[3]);
  EXPECT_NE(rest.losses[2], straight.losses[5]);
  EXPECT_NEAR(rest.losses[2], straight.losses[5], 1e-2);
}

// Masks are a function of the step and of places in the batch: none is drawn twice or left out, under another plan
// either.
TEST(Resume, GoesOnWithTheMasksOfTheUninterruptedRun) {
  program::Job job = small_job(split_plan(1, 1, 1, 0));
  job.training.dropout = 0.2;
  const Toy straight = whole_run(job, 6);
  job.plan.pipeline = 2;
  const Folder folder;
  train(job, folder.path(), 6, false, 3);
  job.plan.pipeline = 1;
  job.plan.recompute = program::Recompute::kFull;
  const Toy rest = train(job, folder.path(), 6, true);
  EXPECT_EQ(rest.losses, last(straight.losses, 3));
  EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
}

// The loss scale, with what it counts, and what compression has not sent yet are part of it: they change in these
// steps.
TEST(Resume, CarriesTheLossScaleAndWhatIsNotSent) {
  program::Job scaled = small_job(split_plan(1, 2, 2, 1));
  scaled.plan.precision = program::DType::kFp16;
  scaled.training.loss_scaling = {.initial = 0x1.0p40, .interval = 2, .backoff = 0x1.0p-12};
  program::Job compressed = small_job(split_plan(2, 1, 2, 0));
  compressed.plan.precision = program::DType::kBf16;
  compressed.plan.compression = program::Compression::kTopK;
  compressed.plan.top_k_share = 0.1;
  for (const program::Job& job : {scaled, compressed}) {
    SCOPED_TRACE(program::summary(job.plan));
    const Toy straight = whole_run(job, 8);
    const Folder folder;
    train(job, folder.path(), 8, false, 5);
    const Toy rest = train(job, folder.path(), 8, true);
    EXPECT_EQ(rest.losses, last(straight.losses, 3));
    EXPECT_EQ(rest.scales, last(straight.scales, 3));
    EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
    EXPECT_NE(straight.losses.back(), straight.losses.front());
  }
}

// When the batch grows the state moves into another Program, in memory. A run that ends there and goes on from its
// checkpoint begins with that Program, so nothing moves: losses and state are the same bit by bit. Master copies,
// moments and the loss scale in 16 bits; also what compression has not sent; shards of parameters, also in parts.
TEST(Resume, AtTheStepInWhichTheBatchGrowsEqualsMovingThere) {
  std::vector<program::Job> jobs(4, small_job(split_plan(1, 2, 2, 1)));
  jobs[0].plan.precision = program::DType::kFp16;
  jobs[0].training.loss_scaling = {.initial = 0x1.0p40, .interval = 2, .backoff = 0x1.0p-12};
  jobs[1] = small_job(split_plan(2, 1, 2, 0));
  jobs[1].plan.precision = program::DType::kBf16;
  jobs[1].plan.compression = program::Compression::kTopK;
  jobs[1].plan.top_k_share = 0.1;
  jobs[2] = small_job(split_plan(1, 1, 4, 3));
  jobs[2].plan.precision = program::DType::kFp16;
  jobs[2].plan.offload.optimizer = program::Storage::kHost;
  jobs[2].training.loss_scaling.initial = 1024;
  jobs[3] = small_job(split_plan(1, 2, 2, 3));
  jobs[3].plan.stack = "deepspeed-zero3";
  const BatchRamp ramp{4, 4, 3};  // 4, 4, 4, then 8 samples
  for (const program::Job& job : jobs) {
    SCOPED_TRACE(program::summary(job.plan));
    const Folder whole, folder;
    const Toy straight = train(job, whole.path(), 7, false, 0, 0, 0, ramp);
    train(job, folder.path(), 7, false, 3, 0, 0, ramp);
    const Toy rest = train(job, folder.path(), 7, true, 0, 0, 0, ramp);
    ASSERT_EQ(rest.losses.size(), 4u);
    EXPECT_EQ(rest.losses, last(straight.losses, 4));
    EXPECT_EQ(rest.scales, last(straight.scales, 4));
    EXPECT_EQ(first_difference(rest.whole, straight.whole), "");
    EXPECT_NE(straight.losses[3], straight.losses[0]);
  }
}

// Four replicas become two, and eight: what they have not sent is still there.
TEST(Resume, AnotherNumberOfReplicasKeepsTheSumOfWhatIsNotSent) {
  program::Job job = small_job(split_plan(1, 1, 4, 0));
  job.plan.compression = program::Compression::kTopK;
  job.plan.top_k_share = 0.1;
  const Folder folder;
  train(job, folder.path(), 3);
  const Opened opened = open(newest_or_throw(folder.path()), true);
  const auto unsent = [&](const program::Plan& plan) {
    program::Job other = job;
    other.plan.pipeline = plan.pipeline, other.plan.tensor = plan.tensor, other.plan.data = plan.data;
    const program::Program program = verified_program(other);
    std::map<std::string, double> sums;  // of every tensor's elements, over ranks
    cpu::CpuBackend core;
    for (int rank = 0; rank < program.mesh.size(); ++rank) {
      const Arenas arenas(program, program.role_of(rank), core);
      fill(opened.tensors, program, rank, arenas);
      for (const Piece& piece : saved_pieces(program, rank, arenas)) {
        if (piece.state != State::kResidual) continue;
        for (std::int64_t e = 0; e < piece.box.elements(); ++e) {
          const std::int64_t at = e / piece.box.columns * piece.stride + e % piece.box.columns;
          sums[piece.name] += reinterpret_cast<const double*>(piece.first)[at];
        }
      }
    }
    return sums;
  };
  const auto before = unsent(split_plan(1, 1, 4, 0));
  double most = 0;
  for (const auto& [name, sum] : before) most = std::max(most, std::abs(sum));
  EXPECT_GT(most, 0);
  for (const program::Plan& plan : {split_plan(2, 1, 2, 0), split_plan(1, 2, 2, 0), split_plan(1, 1, 8, 0)}) {
    const auto after = unsent(plan);
    ASSERT_EQ(after.size(), before.size());
    for (const auto& [name, sum] : before) EXPECT_NEAR(after.at(name), sum, 1e-12) << name;
  }
}

// Pipelines and the sharded optimizer compute the same bits, so a run may move between them and none is lost.
TEST(Resume, MovingToAnotherPlanGoesOnWithTheSameLosses) {
  const program::Job unsplit = small_job(split_plan(1, 1, 1, 0));
  const Toy straight = whole_run(unsplit, 6);
  const Folder folder;
  train(unsplit, folder.path(), 6, false, 2);
  train(small_job(split_plan(1, 4, 1, 0)), folder.path(), 6, true, 4);
  const Toy rest = train(small_job(split_plan(1, 2, 1, 0)), folder.path(), 6, true);
  EXPECT_EQ(rest.losses, last(straight.losses, 2));
  const Folder other;
  train(unsplit, other.path(), 6, false, 2);
  const Toy tensor = train(small_job(split_plan(4, 1, 2, 1)), other.path(), 6, true);
  const std::vector<double> expected = last(straight.losses, 4);
  ASSERT_EQ(tensor.losses.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(tensor.losses[i], expected[i], 1e-11 * expected[i]);
}

TEST(Resume, AFinishedRunHasNothingLeftToDo) {
  const program::Job job = small_job(split_plan(1, 1, 2, 1));
  const Folder folder;
  train(job, folder.path(), 2);
  EXPECT_EQ(train(job, folder.path(), 2, true).losses.size(), 0u);
}

TEST(Resume, OldCheckpointsMakeRoom) {
  const Folder folder;
  train(small_job(split_plan(1, 1, 1, 0)), folder.path(), 6, false, 0, 1, 2);
  std::vector<std::string> names;
  for (const auto& path : list(folder.path()).whole) names.push_back(path.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000006", "step-00000005"}));
}

std::string refusal(const program::Job& job, const std::filesystem::path& folder, bool resume) {
  try {
    train(job, folder, 4, resume);
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Resume, AnotherTrainingIsRefusedByName) {
  const program::Job job = small_job(split_plan(1, 1, 1, 0));
  const Folder folder;
  train(job, folder.path(), 1);
  program::Job other = job;
  other.training.seed = 99;
  EXPECT_NE(refusal(other, folder.path(), true).find("--seed 1234, now 99"), std::string::npos);
  other = job;
  other.training.global_batch = 4;
  EXPECT_NE(refusal(other, folder.path(), true).find("--global-batch 8, now 4"), std::string::npos);
  other = job;
  other.model.layers = 2;
  EXPECT_NE(refusal(other, folder.path(), true).find("another model"), std::string::npos);
  EXPECT_NE(refusal(job, folder.path(), false).find("already holds step-00000001; go on with --resume"),
            std::string::npos);
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
