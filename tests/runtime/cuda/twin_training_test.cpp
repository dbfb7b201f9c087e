// Whole trainings with the CUDA backend's kernels, run on the host: that operands, types and memory fit together, also
// where they are split over ranks.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "hardware_profiles/load.h"
#include "program/lower.h"
#include "runtime/cpu/backend.h"
#include "runtime/cuda/kernels/launch.h"
#include "runtime/cuda/refusal.h"
#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "simulator/engine/engine.h"
#include "tests/runtime/cuda/host_twins.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;

/// The CUDA backend's kernels in memory of the host, one after the other.
class TwinBackend final : public Backend {
 public:
  std::string_view name() const override { return "twin"; }
  std::string refusal(const program::Program& program, const program::Op& op) const override {
    return refusal_of(program, op);
  }
  Memory allocate(std::int64_t bytes) override { return core_.allocate(bytes); }
  Memory allocate_on_host(std::int64_t bytes) override { return core_.allocate(bytes); }
  bool shares_host_memory() const override { return true; }
  void upload(program::Lane lane, std::byte* to, const void* from, std::int64_t bytes) override {
    core_.upload(lane, to, from, bytes);
  }
  void download(void* to, const std::byte* from, std::int64_t bytes) override { core_.download(to, from, bytes); }
  void run(const KernelArguments& a, program::Lane) override { run_twin(a, precision_of(a)); }
  void enter(program::Lane) override {}
  void mark(std::int32_t, program::Lane) override {}
  void wait(std::int32_t, program::Lane) override {}
  void finish() override {}
  void start_clock(std::int64_t shared_ns) override { core_.start_clock(shared_ns); }
  std::int32_t stamp(program::Lane lane) override { return core_.stamp(lane); }
  std::int64_t since_start_ns(std::int32_t stamp) override { return core_.since_start_ns(stamp); }

 private:
  cpu::CpuBackend core_;
};

program::Job job_of(DType precision, const program::Plan& plan) {
  program::Job job = testing::toy_job(plan, 4);
  job.model.layers = 2;
  job.plan.precision = precision;
  return job;
}

/// Losses and gradient norms of three steps.
std::vector<double> train(const program::Job& job, bool on_twins) {
  hardware::Cluster cluster = hardware::load_cluster("h200");
  cluster.groups.front().node.devices = job.plan.ranks();
  const auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) throw std::runtime_error(no->reason);
  const program::Program program =
      simulator::order(program::Program(std::get<program::Program>(lowered)), cluster).value_or_throw();
  const auto corpus = testing::toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab));
  TrainOptions options;
  options.steps = 3;
  options.timeline_steps = 0;
  TrainResult result;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    auto communicators = inproc::make_communicators(job.plan.ranks());
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators) {
      threads.emplace_back([&, end = communicator.get()] {
        try {
          TwinBackend twins;
          TrainResult mine = on_twins ? train_rank(program, *end, *corpus, twins, options)
                                      : train_rank(program, *end, *corpus, options);
          if (end->rank() == 0) result = std::move(mine);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception(), end->abort("a rank failed");
        }
      });
    }
    threads.clear();
  }
  if (failure) std::rethrow_exception(failure);
  EXPECT_EQ(result.refused, "");
  std::vector<double> figures;
  for (const program::StepRecord& step : result.steps) figures.insert(figures.end(), {step.loss, step.grad_norm});
  return figures;
}

/// One rank on a core in fp32 is the measure. The bounds: 1e-4 in fp32, 2e-2 in bf16.
void expect_training(const std::string& name, const program::Job& job) {
  program::Job alone = job;
  alone.plan = program::Plan{};
  alone.plan.precision = DType::kFp32;
  const std::vector<double> wanted = train(alone, false), got = train(job, true);
  const double tolerance = job.plan.precision == DType::kFp32 ? 1e-4 : 2e-2;
  ASSERT_EQ(got.size(), wanted.size()) << name;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], tolerance * wanted[i]) << name << ", figure " << i;
  }
}

void expect_both_types(const std::string& name, const program::Plan& plan) {
  for (const DType precision : {DType::kFp32, DType::kBf16}) expect_training(name, job_of(precision, plan));
}

TEST(TwinTraining, FollowsTheCpuOnOneRank) {
  program::Plan plan;
  expect_both_types("unfused", plan);
  plan.attention = program::Attention::kFlash;
  plan.recompute = program::Recompute::kFull;
  expect_both_types("flash, recomputed", plan);
}

TEST(TwinTraining, FollowsTheCpuWithFusedAttention) {
  program::Job job = job_of(DType::kBf16, {});
  job.model.hidden = 64, job.model.heads = 1, job.model.kv_heads = 1, job.model.head_dim = 64;
  job.plan.attention = program::Attention::kFlash;
  expect_training("fused", job);
}

TEST(TwinTraining, FollowsTheCpuAsALlama) {
  for (const DType precision : {DType::kFp32, DType::kBf16}) {
    program::Job job = job_of(precision, {});
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kSwiglu;
    job.model.kv_heads = 2;
    job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
    expect_training("llama", job);
  }
}

TEST(TwinTraining, FollowsTheCpuSplitOverRanks) {
  program::Plan tensor;
  tensor.tensor = 2, tensor.sequence_parallel = true;
  expect_both_types("tensor, sequence parallel", tensor);
  program::Plan pipeline;
  pipeline.pipeline = 2;
  expect_both_types("pipeline", pipeline);
  for (const int stage : {1, 3}) {
    program::Plan sharded;
    sharded.data = 2, sharded.zero_stage = stage;
    expect_both_types("ZeRO " + std::to_string(stage), sharded);
  }
  program::Plan ring;
  ring.context = 2, ring.attention = program::Attention::kFlash;
  expect_both_types("ring", ring);
}

TEST(TwinTraining, FollowsTheCpuWithExperts) {
  for (const DType precision : {DType::kFp32, DType::kBf16}) {
    program::Job job = job_of(precision, {});
    job.model.experts = models::Experts{};
    job.model.experts->count = 4, job.model.experts->top_k = 2, job.model.experts->every = 1;
    job.model.linear_bias = false;
    expect_training("experts", job);
  }
}

TEST(TwinTraining, FollowsTheCpuWithCompressedGradients) {
  program::Plan plan;
  plan.data = 2;
  plan.compression = program::Compression::kFp16;
  expect_training("compressed", job_of(DType::kFp32, plan));
}

}  // namespace
}  // namespace trivium::runtime::cuda
