// Saved under any plan, loaded under any other: the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/pieces.h"
#include "runtime/cpu/backend.h"
#include "tests/runtime/checkpoint/training.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::checkpoint {
namespace {

using support::split_plan;

constexpr std::int64_t kSteps = 2;  // so that moments are not zero

std::vector<program::Plan> dense_plans() {
  std::vector<program::Plan> plans;
  plans.push_back(split_plan(1, 1, 1, 0));
  plans.push_back(split_plan(2, 1, 1, 0));  // 61 words: the vocabulary is padded
  plans.push_back(split_plan(4, 1, 1, 0));
  plans.back().sequence_parallel = true;
  plans.push_back(split_plan(1, 4, 1, 0));
  plans.push_back(split_plan(1, 2, 1, 0));
  plans.back().virtual_stages = 2;
  plans.back().schedule = program::Schedule::kInterleaved;
  plans.push_back(split_plan(1, 2, 2, 0));
  plans.back().stage_layers = {1, 3};
  plans.push_back(split_plan(1, 2, 1, 0));
  plans.back().schedule = program::Schedule::kZeroBubble;
  plans.push_back(split_plan(1, 2, 1, 0));
  plans.back().virtual_stages = 2;
  plans.back().schedule = program::Schedule::kZbv;  // both copies of the embedding on one rank
  plans.push_back(split_plan(1, 1, 4, 1));
  plans.push_back(split_plan(1, 1, 4, 1));
  plans.back().overlap.parameter_gather = true;  // whole parameters are stale between steps
  plans.push_back(split_plan(2, 1, 2, 2));
  plans.push_back(split_plan(1, 2, 4, 3));
  plans.push_back(split_plan(2, 1, 4, 3));
  plans.back().shard_group = 2;
  plans.push_back(split_plan(1, 1, 2, 1));
  plans.back().context = 2;
  plans.back().attention = program::Attention::kFlash;
  plans.push_back(split_plan(1, 1, 2, 3));
  plans.back().bucket_bytes = 100'000;
  plans.push_back(split_plan(1, 2, 4, 3));
  plans.back().stack = "deepspeed-zero3";  // shards of four runs
  plans.push_back(split_plan(1, 1, 2, 1));
  plans.back().offload.optimizer = program::Storage::kHost;
  plans.push_back(split_plan(1, 2, 1, 0));
  plans.back().offload.optimizer = program::Storage::kDisk;
  plans.push_back(split_plan(1, 2, 2, 3));
  plans.back().offload.parameters = program::Storage::kHost;
  plans.push_back(split_plan(1, 1, 1, 3));
  plans.back().offload = {program::Storage::kHost, program::Storage::kNone, program::Storage::kDisk};
  plans.push_back(split_plan(1, 2, 2, 1));
  plans.back().replica_micro_batch = {3, 1};
  return plans;
}

/// Trains under every plan and loads what it left under every plan.
void expect_all_pairs_equal(const std::vector<program::Job>& jobs) {
  std::vector<program::Program> programs;
  for (const program::Job& job : jobs) programs.push_back(verified_program(job));
  int pairs = 0;
  for (const program::Job& job : jobs) {
    const Folder folder;
    const Toy toy = train(job, folder.path(), kSteps);
    for (const program::Program& program : programs) {
      SCOPED_TRACE(fmt::format("saved under {}, loaded under {}", program::summary(job.plan),
                               program::summary(program.job.plan)));
      bool replicas_agree = false;
      const Whole again = loaded(program, folder.path() / folder_name(kSteps), replicas_agree);
      EXPECT_EQ(first_difference(toy.whole, again), "");
      EXPECT_TRUE(replicas_agree);
      ++pairs;
    }
  }
  fmt::print("{} pairs of plans\n", pairs);
}

TEST(Resharding, EveryPairOfPlansHoldsTheSameBits) {
  std::vector<program::Job> jobs;
  for (const program::Plan& plan : dense_plans()) jobs.push_back(small_job(plan));
  expect_all_pairs_equal(jobs);
}

TEST(Resharding, UntiedAndLlamaStyleModelsHoldTheSameBits) {
  std::vector<program::Job> jobs;
  for (const program::Plan& plan :
       {split_plan(1, 1, 1, 0), split_plan(2, 2, 1, 0), split_plan(1, 1, 4, 3), split_plan(2, 1, 2, 1),
        split_plan(4, 1, 1, 0), split_plan(4, 1, 2, 3)}) {  // tensor 4: key heads are held twice
    program::Job job = small_job(plan);
    job.model.tied_embeddings = false;
    job.model.kv_heads = 2;
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kSwiglu;
    job.model.linear_bias = job.model.qkv_bias = false;
    jobs.push_back(job);
  }
  expect_all_pairs_equal(jobs);
}

TEST(Resharding, ExpertsHoldTheSameBits) {
  std::vector<program::Job> jobs;
  const auto add = [&](program::Plan plan, int expert) {
    plan.expert = expert;
    program::Job job = small_job(plan);
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 1.25, .balance_loss = 0};
    jobs.push_back(job);
  };
  add(split_plan(1, 1, 1, 0), 1);
  add(split_plan(2, 1, 2, 0), 2);
  add(split_plan(1, 2, 2, 1), 2);
  add(split_plan(1, 1, 4, 1), 2);
  add(split_plan(1, 1, 4, 0), 4);
  add(split_plan(1, 1, 4, 3), 2);
  add(split_plan(2, 1, 2, 3), 2);
  program::Plan context = split_plan(1, 1, 2, 1);
  context.context = 2;
  context.attention = program::Attention::kFlash;
  add(context, 2);
  for (program::Plan whole : {split_plan(2, 1, 2, 0), split_plan(2, 1, 2, 3), split_plan(2, 2, 1, 1)}) {
    whole.expert_tensor = 1;
    add(whole, 2 * whole.data);
  }
  program::Plan parts = split_plan(4, 1, 2, 1);
  parts.expert_tensor = 2;
  add(parts, 4);
  expect_all_pairs_equal(jobs);
}

// 2 key heads over 4 ranks: 2 of 4 save them. h x (4 query + 2 · 2 key heads) of 8, each number once in the folder.
TEST(Resharding, KeyHeadsThatRanksShareAreSavedOnce) {
  program::Job job = small_job(split_plan(4, 1, 1, 0));
  job.model.kv_heads = 2;
  const program::Program program = verified_program(job);
  cpu::CpuBackend core;
  std::int64_t saved = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const Arenas arenas(program, program.role_of(rank), core);
    for (const Piece& piece : saved_pieces(program, rank, arenas)) {
      if (piece.state == State::kValue && piece.name == "h.0.attn.c_attn.weight") saved += piece.box.elements();
    }
  }
  EXPECT_EQ(saved, job.model.hidden * (job.model.heads + 2 * job.model.kv_heads) * job.model.head_dim);
}

// A mutation that must be caught: one bit of one moment.
TEST(Resharding, TheComparisonSeesOneBit) {
  const Folder folder;
  const Toy toy = train(small_job(split_plan(1, 1, 1, 0)), folder.path(), 1);
  Whole spoiled = toy.whole;
  auto& values = spoiled.at("second moment of ln_f.weight");
  values.back() = std::nextafter(values.back(), 1.0);
  EXPECT_EQ(first_difference(toy.whole, spoiled), "second moment of ln_f.weight");
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
