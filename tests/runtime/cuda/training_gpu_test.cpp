// Whole trainings on a GPU against the CPU backend: the same program, the same samples.
#include <gtest/gtest.h>

#include <cmath>

#include "hardware_profiles/load.h"
#include "program/lower.h"
#include "program/verify.h"
#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "simulator/engine/engine.h"
#include "tests/runtime/cuda/gpu_here.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime {
namespace {

using program::DType;

/// Two layers of two heads of 64, so that bf16 takes the fused attention.
program::Job job_of(DType precision, program::Attention attention, bool llama) {
  program::Job job = testing::toy_job({});
  models::Model& model = job.model;
  model.layers = 2, model.hidden = 128, model.heads = 2, model.kv_heads = llama ? 1 : 2, model.head_dim = 64;
  model.ffn_hidden = 256, model.max_sequence = 96;
  if (llama) {
    model.norm = models::Norm::kRmsNorm;
    model.positions = models::Positions::kRotary;
    model.activation = models::Activation::kSwiglu;
    model.linear_bias = model.qkv_bias = false;
  }
  job.training.sequence = 96;
  job.training.global_batch = 4;
  job.training.optimizer.learning_rate = 1e-3;
  job.plan.micro_batch = 2;
  job.plan.precision = precision;
  job.plan.attention = attention;
  return job;
}

program::Program program_of(const program::Job& job) {
  auto lowered = std::get<program::Program>(program::lower(job));
  return simulator::order(std::move(lowered), hardware::load_cluster("h200")).value_or_throw();
}

std::vector<double> losses(const program::Job& job, bool on_gpu) {
  const program::Program program = program_of(job);
  const auto corpus = testing::toy_corpus(20000, static_cast<std::int32_t>(job.model.vocab));
  const auto alone = std::move(inproc::make_communicators(1).front());
  TrainOptions options;
  options.steps = 10;
  options.timeline_steps = 0;
  const TrainResult result = on_gpu ? train_rank(program, *alone, *corpus, cuda::gpu(), options)
                                    : train_rank(program, *alone, *corpus, options);
  EXPECT_EQ(result.refused, "");
  std::vector<double> all;
  for (const program::StepRecord& step : result.steps) all.push_back(step.loss);
  return all;
}

void expect_losses(const program::Job& job, double tolerance) {
  program::Job on_cores = job;
  on_cores.plan.precision = DType::kFp32;
  const std::vector<double> wanted = losses(on_cores, false), got = losses(job, true);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance * wanted[i]) << "step " << i;
}

TEST(GpuTraining, FollowsTheCpuInFp32) {
  for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
    for (const bool llama : {false, true}) expect_losses(job_of(DType::kFp32, attention, llama), 1e-4);
  }
}

TEST(GpuTraining, FollowsTheCpuInBf16) {
  for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
    for (const bool llama : {false, true}) expect_losses(job_of(DType::kBf16, attention, llama), 2e-2);
  }
}

TEST(GpuTraining, FollowsTheCpuInFp16) {
  for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
    expect_losses(job_of(DType::kFp16, attention, false), 2e-2);
  }
}

// No sum on the device depends on who comes first.
TEST(GpuTraining, IsTheSameEveryTime) {
  const program::Job job = job_of(DType::kBf16, program::Attention::kFlash, false);
  EXPECT_EQ(losses(job, true), losses(job, true));
}

}  // namespace
}  // namespace trivium::runtime
