// Lanes that run beside each other and sleep at odd moments end with the bits of a run in turn: what the Program says
// lanes wait for is enough, and the executor says it to the backend.
#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <thread>

#include "hardware_profiles/load.h"
#include "program/lower.h"
#include "runtime/executor/collect.h"
#include "runtime/executor/course.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/inproc/threads.h"
#include "simulator/engine/engine.h"
#include "tests/runtime/executor/asynchronous_backend.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

constexpr int kSteps = 2;

Trained run_asynchronously(const program::Job& job) {
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
          for (int step = 0; step < kSteps; ++step) {
            const StepValues values{
                step, learning_rate({}, job.training.optimizer, job.training.global_batch, step, kSteps),
                1.0 / static_cast<double>(program.job.training.global_batch * job.training.sequence)};
            const auto outcome = executor.step(values, nullptr);
            if (executor.rank() != 0) continue;
            result.losses.push_back(outcome.loss);
            result.norms.push_back(outcome.grad_norm);
          }
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

void expect_same_bits(const std::string& name, const program::Plan& plan) {
  const program::Job job = toy_job(plan);
  Trained in_turn = run(job, kSteps);
  in_turn.gradients.clear();
  in_turn.second_moments.clear();
  const Trained beside = run_asynchronously(job);
  std::string where;
  EXPECT_TRUE(bitwise_equal(in_turn, beside, where)) << name << ": " << where;
  EXPECT_TRUE(beside.replicas_agree) << name;
}

program::Plan split(int tensor, int pipeline, int data) {
  program::Plan plan;
  plan.tensor = tensor, plan.pipeline = pipeline, plan.data = data;
  return plan;
}

TEST(AsynchronousLanes, KeepTheBitsOfPipelines) {
  expect_same_bits("1f1b", split(1, 4, 1));
  program::Plan interleaved = split(1, 2, 1);
  interleaved.virtual_stages = 2;
  interleaved.schedule = program::Schedule::kInterleaved;
  expect_same_bits("interleaved", interleaved);
  program::Plan zero_bubble = split(1, 2, 1);
  zero_bubble.schedule = program::Schedule::kZeroBubble;
  expect_same_bits("zero bubble", zero_bubble);
}

TEST(AsynchronousLanes, KeepTheBitsOfTransfersInParts) {
  program::Plan plan = split(2, 2, 1);
  plan.scatter_gather = program::ScatterGather::kOn;
  expect_same_bits("parts", plan);
}

TEST(AsynchronousLanes, KeepTheBitsOfOverlappedTensorCollectives) {
  program::Plan plan = split(2, 2, 1);
  plan.overlap.tensor = true;
  expect_same_bits("tensor", plan);
  plan.sequence_parallel = true;
  plan.recompute = program::Recompute::kFull;
  expect_same_bits("sequence parallel", plan);
}

TEST(AsynchronousLanes, KeepTheBitsOfShardedState) {
  for (int stage = 0; stage <= 3; ++stage) {
    program::Plan plan = split(1, 1, 2);
    plan.zero_stage = stage;
    plan.overlap.gradient_reduction = true;
    plan.overlap.parameter_gather = stage > 0;
    expect_same_bits("ZeRO " + std::to_string(stage), plan);
  }
}

TEST(AsynchronousLanes, KeepTheBitsOfRingsAndHeadExchanges) {
  program::Plan plan = split(1, 1, 1);
  plan.context = 2;
  plan.attention = program::Attention::kFlash;
  expect_same_bits("ring", plan);
  plan.context_method = program::ContextMethod::kAllToAll;
  expect_same_bits("all-to-all", plan);
}

}  // namespace
}  // namespace trivium::runtime::testing
