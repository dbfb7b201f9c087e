// Lanes that run in parallel and sleep at random moments give the same bits as a sequential run: the lanes'
// dependencies in the Program are sufficient, and the executor passes them to the backend.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "runtime/executor/collect.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/executor/replay.h"
#include "runtime/executor/training_schedule.h"
#include "runtime/inproc/threads.h"
#include "simulator/schedule/engine.h"
#include "tests/runtime/executor/asynchronous_backend.h"
#include "tests/runtime/executor/harness.h"
#include "tests/support/split_plan.h"

namespace trivium::runtime::testing {
namespace {

using support::split_plan;

constexpr int kSteps = 2;

/// `replayed`, where given: segments are replayed, and it receives how many pieces of work of all ranks were.
Trained run_asynchronously(const program::Job& job, std::atomic<int>* replayed = nullptr) {
  hardware::Cluster cluster = hardware::load_cluster("generic-cpu");
  cluster.groups.front().node.devices = job.plan.ranks();
  const program::Program program =
      simulator::order(std::get<program::Program>(program::lower(job)), cluster).value_or_throw();
  const auto corpus = toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  const auto ranks = static_cast<std::size_t>(job.plan.ranks());
  std::vector<std::vector<std::unique_ptr<Communicator>>> ends(ranks);
  for (int lane = 0; lane < program::kLanes + 1; ++lane) {
    auto communicators = inproc::make_communicators(job.plan.ranks());
    for (std::size_t r = 0; r < ranks; ++r) ends[r].push_back(std::move(communicators[r]));
  }
  Trained result;
  Collection parameters, moments;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (auto& end : ends) {
      threads.emplace_back([&, lanes = &end] {
        AsynchronousBackend backend;
        AsynchronousCommunicator communicator(backend, std::move(*lanes));
        try {
          RankExecutor executor(program, communicator, *corpus, backend);
          if (replayed != nullptr) executor.replay_segments();
          for (int step = 0; step < kSteps; ++step) {
            const StepValues values{
                step, learning_rate({}, job.training.optimizer, job.training.global_batch, step, kSteps),
                1.0 / static_cast<double>(program.job.training.global_batch * job.training.sequence)};
            const auto outcome = executor.step(values, nullptr);
            if (executor.rank() != 0) continue;
            result.losses.push_back(outcome.loss);
            result.norms.push_back(outcome.grad_norm);
          }
          if (replayed != nullptr) *replayed += backend.replayed();
          const std::array spaces{program::Space::kParameter, program::Space::kGradient, program::Space::kOptimizer};
          const Arenas kept = executor.arenas_on_host(spaces);
          parameters.add(program, executor.rank(), kept, Quantity::kValue);
          moments.add(program, executor.rank(), kept, Quantity::kFirstMoment);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception(), communicator.abort("a rank failed");
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
  result.parameters = parameters.tensors();
  result.first_moments = moments.tensors();
  result.replicas_agree = parameters.replicas_agree();
  return result;
}

Trained run_in_turn(const program::Job& job) {
  Trained in_turn = run(job, kSteps);
  in_turn.gradients.clear();
  in_turn.second_moments.clear();
  return in_turn;
}

void expect_same_bits(const std::string& name, const program::Job& job) {
  const Trained in_turn = run_in_turn(job);
  const Trained beside = run_asynchronously(job);
  std::string where;
  EXPECT_TRUE(bitwise_equal(in_turn, beside, where)) << name << ": " << where;
  EXPECT_TRUE(beside.replicas_agree) << name;
}

void expect_same_bits(const std::string& name, const program::Plan& plan) { expect_same_bits(name, toy_job(plan)); }

TEST(AsynchronousLanes, KeepTheBitsOfPipelines) {
  expect_same_bits("1f1b", split_plan(1, 4, 1));
  program::Plan interleaved = split_plan(1, 2, 1);
  interleaved.virtual_stages = 2;
  interleaved.schedule = program::Schedule::kInterleaved;
  expect_same_bits("interleaved", interleaved);
  program::Plan zero_bubble = split_plan(1, 2, 1);
  zero_bubble.schedule = program::Schedule::kZeroBubble;
  expect_same_bits("zero bubble", zero_bubble);
}

TEST(AsynchronousLanes, KeepTheBitsOfTransfersInParts) {
  program::Plan plan = split_plan(2, 2, 1);
  plan.scatter_gather = program::ScatterGather::kOn;
  expect_same_bits("parts", plan);
}

TEST(AsynchronousLanes, KeepTheBitsOfOverlappedTensorCollectives) {
  program::Plan plan = split_plan(2, 2, 1);
  plan.overlap.tensor = true;
  expect_same_bits("tensor", plan);
  plan.sequence_parallel = true;
  plan.recompute = program::Recompute::kFull;
  expect_same_bits("sequence parallel", plan);
}

TEST(AsynchronousLanes, KeepTheBitsOfExchangesBesideOtherPasses) {
  for (const int pipeline : {1, 2}) {
    program::Plan plan = split_plan(1, pipeline, 2);
    plan.expert = 2;
    plan.virtual_stages = pipeline;
    plan.schedule = program::usual_schedule(pipeline);
    plan.overlap.expert = true;
    program::Job job = toy_job(plan);
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true, .imbalance = 2, .shared_hidden = 32};
    expect_same_bits("exchanges of " + std::to_string(pipeline), job);
  }
}

TEST(AsynchronousLanes, KeepTheBitsOfShardedState) {
  for (int stage = 0; stage <= 3; ++stage) {
    program::Plan plan = split_plan(1, 1, 2);
    plan.zero_stage = stage;
    plan.overlap.gradient_reduction = true;
    plan.overlap.parameter_gather = stage > 0;
    expect_same_bits("ZeRO " + std::to_string(stage), plan);
  }
}

// Shards in four runs; parameters of experts in slots of their own, gathered along with their layer's.
TEST(AsynchronousLanes, KeepTheBitsOfShardedExpertsAndOfBucketsInParts) {
  program::Plan parts = split_plan(1, 1, 2);
  parts.zero_stage = 3;
  parts.stack = "deepspeed-zero3";
  parts.overlap.gradient_reduction = true;
  expect_same_bits("parts", parts);
  for (const int context : {1, 2}) {
    program::Plan plan = split_plan(1, 1, 4 / context);
    plan.expert = 2;
    plan.context = context;
    plan.attention = program::Attention::kFlash;
    plan.zero_stage = 3;
    plan.overlap.gradient_reduction = plan.overlap.parameter_gather = true;
    program::Job job = toy_job(plan);
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 0.75};
    expect_same_bits("experts", job);
  }
}

// Key heads of two ranks each: their gradients are summed on the lane of reductions, during the backward.
TEST(AsynchronousLanes, KeepTheBitsOfSharedKeyHeads) {
  for (const int stage : {0, 3}) {
    program::Plan plan = split_plan(4, 1, 2);
    plan.zero_stage = stage;
    plan.overlap.gradient_reduction = true;
    program::Job job = toy_job(plan);
    job.model.kv_heads = 2;
    expect_same_bits("ZeRO " + std::to_string(stage), job);
  }
}

TEST(AsynchronousLanes, KeepTheBitsOfRingsAndHeadExchanges) {
  program::Plan plan = split_plan(1, 1, 1);
  plan.context = 2;
  plan.attention = program::Attention::kFlash;
  expect_same_bits("ring", plan);
  plan.context_method = program::ContextMethod::kAllToAll;
  expect_same_bits("all-to-all", plan);
}

// fp8 delayed: the first step finds its own largest numbers, and what is recorded of it is not replayed in those after
// it. The rate is high, so that numbers outgrow the steps before and saturate.
TEST(AsynchronousLanes, KeepTheBitsOfScalesFromTheStepsBefore) {
  for (const int tensor : {1, 2}) {
    program::Job job = toy_job(split_plan(tensor, 1, 2));
    job.plan.fp8 = program::Fp8::kDelayed;
    job.training.optimizer.learning_rate = 3;
    job.training.optimizer.warmup_steps = 0;
    const Trained in_turn = run_in_turn(job);
    std::atomic<int> replayed = 0;
    const Trained again = run_asynchronously(job, &replayed);
    std::string where;
    EXPECT_TRUE(bitwise_equal(in_turn, again, where)) << where;
    EXPECT_GT(replayed, 0);
  }
}

/// `pieces`: how many launches of recorded work the ranks come to.
void expect_same_bits_replayed(const std::string& name, const program::Plan& plan, int pieces) {
  const program::Job job = toy_job(plan);
  const Trained in_turn = run_in_turn(job);
  std::atomic<int> replayed = 0;
  const Trained again = run_asynchronously(job, &replayed);
  std::string where;
  EXPECT_TRUE(bitwise_equal(in_turn, again, where)) << name << ": " << where;
  EXPECT_EQ(replayed, pieces) << name;
}

// One rank: 8 micro-batches in one frame, forward and backward of 10 segments each (embedding, 8 layers, head). The
// first micro-batch of the two steps is issued, the other 15 are replayed: 15 * 20.
TEST(ReplayedSegments, KeepTheBitsOfOneRank) {
  expect_same_bits_replayed("one rank", split_plan(1, 1, 1), 300);
  program::Plan plan = split_plan(1, 1, 1);
  plan.recompute = program::Recompute::kFull;
  expect_same_bits_replayed("recomputed", plan, 300);
}

// Two stages under 1F1B: 5 segments each. The first has two frames in flight and the second one; 16 passes of each kind
// less one a frame: 5 * 2 * (14 + 15). Four replicas of 2 micro-batches: 4 passes less one, 20 segments, 4 ranks.
TEST(ReplayedSegments, KeepTheBitsOfStagesAndReplicas) {
  expect_same_bits_replayed("1f1b", split_plan(1, 2, 1), 290);
  program::Plan sharded = split_plan(1, 1, 4);
  sharded.zero_stage = 3;
  sharded.overlap.gradient_reduction = sharded.overlap.parameter_gather = true;
  expect_same_bits_replayed("ZeRO 3", sharded, 240);
}

// Collectives are inside all layers and both ends, but for the embedding's backward: each of two ranks replays its 16
// uses less one. The summary says why the others are not.
TEST(ReplayedSegments, LeaveOutWhatCommunicates) {
  program::Plan plan = split_plan(2, 1, 1);
  expect_same_bits_replayed("tensor", plan, 30);
  const program::Program program = ordered_program(toy_job(plan));
  const Replays replays(program, program.roles.front());
  EXPECT_EQ(replays.segments(), 20);
  EXPECT_EQ(replays.left_out(), 19);
  EXPECT_EQ(replays.summary(), "1 of 20 segments of the passes; the others hold all_reduce (19)");
}

// An event each would be two a kernel. A rank alone waits for nobody: a segment's ops have one stamp more than ops.
TEST(Stamps, AreSharedByNeighbours) {
  const program::Program program = ordered_program(toy_job({}, 2));
  const auto corpus = toy_corpus(4000, 61);
  AsynchronousBackend backend;
  std::vector<std::unique_ptr<Communicator>> ends;
  for (int lane = 0; lane < program::kLanes + 1; ++lane)
    ends.push_back(std::move(inproc::make_communicators(1).front()));
  AsynchronousCommunicator communicator(backend, std::move(ends));
  RankExecutor executor(program, communicator, *corpus, backend);
  std::vector<program::Event> events;
  executor.step({.step = 0, .learning_rate = 1e-3, .loss_weight = 1e-3}, &events);
  const std::size_t segments = program.roles.front().order.size();
  ASSERT_GT(events.size(), 3 * segments);
  EXPECT_EQ(static_cast<std::size_t>(backend.stamps()), events.size() + segments);
  executor.step({.step = 1, .learning_rate = 1e-3, .loss_weight = 1e-3}, nullptr);
  EXPECT_EQ(static_cast<std::size_t>(backend.stamps()), events.size() + segments) << "none where nobody asks for times";
}

// For memory that the host cannot write, only what is drawn is staged on the host: parameters of 16 bits and their
// copies, not the moments, which are zero already. The values are those that a core writes in place.
TEST(FirstValues, BringParametersAndTheirCopiesAlone) {
  program::Job job = toy_job({}, 2);
  job.plan.precision = program::DType::kBf16;
  const program::Program program = ordered_program(job);
  const auto corpus = toy_corpus(4000, 61);
  AsynchronousBackend device;
  cpu::CpuBackend cores;
  std::vector<std::unique_ptr<Communicator>> ends;
  for (int lane = 0; lane < program::kLanes + 1; ++lane)
    ends.push_back(std::move(inproc::make_communicators(1).front()));
  AsynchronousCommunicator communicator(device, std::move(ends));
  const auto alone = inproc::make_communicators(1);
  const RankExecutor beside(program, communicator, *corpus, device), in_place(program, *alone.front(), *corpus, cores);
  std::int64_t elements = 0;
  for (const program::Chunk& chunk : program.roles.front().chunks) {
    for (const program::Parameter& p : program.kinds[static_cast<std::size_t>(chunk.kind)].parameters)
      elements += p.local_rows * p.local_columns;
  }
  EXPECT_EQ(device.uploaded(), elements * (2 + 4));
  // Who has other values for them, as a batch that grows, asks for none.
  const RankExecutor empty(program, communicator, *corpus, device, RankExecutor::Start::kEmpty);
  EXPECT_EQ(device.uploaded(), elements * (2 + 4));
  const std::array spaces{program::Space::kParameter, program::Space::kOptimizer};
  const Arenas got = beside.arenas_on_host(spaces), wanted = in_place.arenas_on_host(spaces);
  for (const program::Space space : spaces) {
    const auto bytes = static_cast<std::size_t>(program.roles.front().bytes[static_cast<std::size_t>(space)]);
    EXPECT_EQ(std::memcmp(got.space(space), wanted.space(space), bytes), 0) << static_cast<int>(space);
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
