// Checkpoints of LoRA: adapters go on bit by bit, begin beside saved weights, and can be added to these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/whole.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

program::Job adapted(int pipeline, int data, int zero_stage) {
  program::Plan plan;
  plan.pipeline = pipeline;
  plan.data = data;
  plan.zero_stage = zero_stage;
  program::Job job = small_job(plan);
  job.training.lora = {.rank = 2, .alpha = 4};
  return job;
}

/// Four experts, two for a token, on so many ranks.
program::Job adapted_mixture(int tensor, int data, int expert, int zero_stage) {
  program::Job job = adapted(1, data, zero_stage);
  job.plan.tensor = tensor, job.plan.expert = expert;
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  return job;
}

program::Job whole_model() {
  program::Job job = adapted(1, 1, 0);
  job.training.lora = {};
  return job;
}

/// Four steps, whose checkpoints go into `folder`. Expects that two steps, and two more resumed from these, are the
/// same.
Toy train_whole_and_in_halves(const program::Job& job, const std::filesystem::path& folder) {
  const Folder halves;
  Toy all = train(job, folder, 4);
  train(job, halves.path(), 4, false, 2);
  const Toy rest = train(job, halves.path(), 4, true);
  EXPECT_EQ(first_difference(rest.whole, all.whole), "");
  EXPECT_EQ(rest.losses.size(), 2U);
  EXPECT_EQ(rest.losses.back(), all.losses.back());
  return all;
}

TEST(AdapterCheckpoints, GoOnBitByBit) {
  for (const program::Job& job : {adapted(1, 1, 0), adapted(2, 1, 0), adapted(1, 2, 3)}) {
    SCOPED_TRACE(program::summary(job.plan));
    const Folder straight;
    train_whole_and_in_halves(job, straight.path());
  }
}

TEST(AdapterCheckpoints, SavedShardedAreLoadedInAPipeline) {
  const Folder folder;
  const Toy saved = train(adapted(1, 2, 3), folder.path(), 2);
  bool agree = true;
  const Whole there = loaded(verified_program(adapted(2, 1, 0)), folder.path() / folder_name(2), agree);
  EXPECT_EQ(first_difference(there, saved.whole), "");
  EXPECT_TRUE(agree);
}

TEST(AdapterCheckpoints, OfExpertsGoOnBitByBitAndAreLoadedInOtherSplits) {
  for (const program::Job& job : {adapted_mixture(1, 2, 2, 1), adapted_mixture(2, 2, 2, 3)}) {
    SCOPED_TRACE(program::summary(job.plan));
    const Folder straight;
    const Toy all = train_whole_and_in_halves(job, straight.path());
    for (const program::Job& other : {adapted_mixture(1, 1, 1, 0), adapted_mixture(2, 2, 4, 0),
                                      adapted_mixture(1, 4, 2, 3), adapted_mixture(2, 1, 1, 0)}) {
      program::Job there = other;
      if (there.plan.expert > there.plan.data) there.plan.expert_tensor = 1;  // tensor ranks have experts of their own
      bool agree = true;
      const Whole loaded_there = loaded(verified_program(there), straight.path() / folder_name(4), agree);
      EXPECT_EQ(first_difference(loaded_there, all.whole), "") << program::summary(there.plan);
      EXPECT_TRUE(agree);
    }
  }
}

TEST(AdapterCheckpoints, BeginBesideTheWeightsOfACheckpointWithoutAdapters) {
  const Folder folder;
  const Toy before = train(whole_model(), folder.path(), 2);
  const Toy after = train(adapted(1, 1, 0), folder.path(), 4, true);
  ASSERT_EQ(after.losses.size(), 2U);
  const std::string weight = "value of h.0.attn.c_attn.weight";
  EXPECT_EQ(after.whole.at(weight), before.whole.at(weight));
  EXPECT_FALSE(after.whole.contains("first moment of h.0.attn.c_attn.weight"));
  EXPECT_THAT(after.whole.at("value of h.0.attn.c_attn.lora_b"), ::testing::Contains(::testing::Ne(0.0)));
}

TEST(AdapterCheckpoints, OfOtherAdaptersAreRefused) {
  const Folder folder;
  train(adapted(1, 1, 0), folder.path(), 2);
  for (const std::int64_t rank : {0, 4}) {
    program::Job other = adapted(1, 1, 0);
    other.training.lora.rank = rank;
    if (rank == 0) other.training.lora = {};
    try {
      train(other, folder.path(), 4, true);
      FAIL() << rank;
    } catch (const base::Failure& failure) {
      EXPECT_THAT(failure.what(), ::testing::HasSubstr("it holds adapters of --lora-rank 2"));
    }
  }
}

TEST(MergedAdapters, AddTheirProductToTheWeight) {
  // A (2,1) = 1, 2; B (1,3) = 3, 4, 5; half of A B = 1.5, 2, 2.5 | 3, 4, 5, on weights of 1
  WholeTensors tensors;
  tensors["h.0.attn.c_proj.weight"] = {2, 3, {1, 1, 1, 1, 1, 1}};
  tensors["h.0.attn.c_proj.lora_a"] = {2, 1, {1, 2}};
  tensors["h.0.attn.c_proj.lora_b"] = {1, 3, {3, 4, 5}};
  merge_adapters(tensors, 0.5);
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors.begin()->second.values, (std::vector<float>{2.5, 3, 3.5, 4, 5, 6}));
}

TEST(MergedAdapters, OfOtherShapesThanTheWeightAreRefused) {
  const WholeTensor weight{4, 3, std::vector<float>(12, 1)};
  const auto of = [](std::int64_t rows, std::int64_t columns) {
    return WholeTensor{rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns), 1)};
  };
  for (const auto& [first, second] : std::vector<std::pair<WholeTensor, WholeTensor>>{{of(4, 0), of(2, 3)},
                                                                                      {of(4, 2), of(1, 3)},
                                                                                      {of(4, 2), of(3, 3)},
                                                                                      {of(3, 1), of(1, 3)},
                                                                                      {of(4, 1), of(1, 2)},
                                                                                      {of(4, 1), of(3, 3)}}) {
    WholeTensors tensors{
        {"h.0.attn.c_proj.weight", weight}, {"h.0.attn.c_proj.lora_a", first}, {"h.0.attn.c_proj.lora_b", second}};
    EXPECT_THROW(merge_adapters(tensors, 1), base::Failure) << first.columns << " " << second.rows;
  }
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
