// Whole trainings on a GPU against the CPU backend: the same program, the same samples.
#include <gtest/gtest.h>

#include <cmath>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "program/verify/verify.h"
#include "runtime/cuda/loader.h"
#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "simulator/predict/prepare.h"
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

program::VerifiedProgram program_of(const program::Job& job) {
  const hardware::Cluster cluster = hardware::load_cluster("h200");
  return simulator::prepare(job, cluster, {.fits = false}).value_or_throw().verified();
}

/// Of ten steps; on a core where `device` is null.
std::vector<double> losses(const program::Job& job, Backend* device, bool replay = false) {
  const program::VerifiedProgram program = program_of(job);
  const auto corpus = testing::toy_corpus(20000, static_cast<std::int32_t>(job.model.vocab));
  const auto alone = std::move(inproc::make_communicators(1).front());
  TrainOptions options;
  options.steps = 10;
  options.timeline_steps = 0;
  options.replay = replay;
  const TrainResult result = device != nullptr ? train_rank(program, *alone, *corpus, *device, options)
                                               : train_rank(program, *alone, *corpus, options);
  EXPECT_EQ(result.refused, "");
  std::vector<double> all;
  for (const program::StepRecord& step : result.steps) all.push_back(step.loss);
  return all;
}

/// Why the GPU that is here runs no such job, or "".
std::string refusal_of(const program::Job& job) {
  const program::VerifiedProgram program = program_of(job);
  for (const program::Body& body : program->bodies) {
    for (const program::Op& op : body.ops) {
      if (program::is_communication(op.kind)) continue;
      if (std::string why = cuda::gpu().refusal(program, op); !why.empty()) return why;
    }
  }
  return "";
}

void expect_losses(const program::Job& job, double tolerance, Backend& device = cuda::gpu()) {
  program::Job on_cores = job;
  on_cores.plan.precision = DType::kFp32;
  const std::vector<double> wanted = losses(on_cores, nullptr), got = losses(job, &device);
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

/// Of two matrices of experts a token, with as many rows an expert as its share of the tokens.
program::Job mixture_of(program::Job job) {
  job.model.linear_bias = job.model.qkv_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .capacity_factor = 1};
  return job;
}

/// Both cast to 8 bits by the same scales; the CPU sums what codes stand for in fp32.
void expect_losses_in_8_bits(program::Fp8 recipe) {
  const program::Job dense = job_of(DType::kBf16, program::Attention::kFlash, false);
  for (program::Job job : {dense, job_of(DType::kBf16, program::Attention::kFlash, true), mixture_of(dense)}) {
    job.plan.fp8 = recipe;
    if (const std::string no = refusal_of(job); !no.empty()) GTEST_SKIP() << no;
    expect_losses(job, 2e-2);
  }
}

TEST(GpuTraining, FollowsTheCpuInFp8) { expect_losses_in_8_bits(program::Fp8::kCurrent); }
TEST(GpuTraining, FollowsTheCpuInFp8WithBlocks) { expect_losses_in_8_bits(program::Fp8::kBlock); }
TEST(GpuTraining, FollowsTheCpuInMxfp8) { expect_losses_in_8_bits(program::Fp8::kMxfp8); }
TEST(GpuTraining, FollowsTheCpuInFp8WithDelayedScaling) { expect_losses_in_8_bits(program::Fp8::kDelayed); }

// What is recorded in the first step, which finds its own largest numbers, is not replayed in those after it.
TEST(GpuTraining, IsTheSameReplayedWithDelayedScaling) {
  program::Job job = job_of(DType::kBf16, program::Attention::kFlash, false);
  job.plan.fp8 = program::Fp8::kDelayed;
  if (const std::string no = refusal_of(job); !no.empty()) GTEST_SKIP() << no;
  EXPECT_EQ(losses(job, &cuda::gpu()), losses(job, &cuda::gpu(), true));
}

TEST(GpuTraining, FollowsTheCpuInFp16) {
  for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
    expect_losses(job_of(DType::kFp16, attention, false), 2e-2);
  }
}

// Masks are the CPU's: drawn from the same counters.
TEST(GpuTraining, FollowsTheCpuWithDropout) {
  for (const DType precision : {DType::kFp32, DType::kBf16}) {
    for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
      program::Job job = job_of(precision, attention, false);
      job.training.dropout = 0.2;
      expect_losses(job, precision == DType::kFp32 ? 1e-4 : 2e-2);
    }
  }
}

// No sum on the device depends on who comes first.
TEST(GpuTraining, IsTheSameEveryTime) {
  const program::Job job = job_of(DType::kBf16, program::Attention::kFlash, false);
  EXPECT_EQ(losses(job, &cuda::gpu()), losses(job, &cuda::gpu()));
}

// A graph is the same kernels on the same operands.
TEST(GpuTraining, IsTheSameReplayed) {
  for (const DType precision : {DType::kFp32, DType::kBf16}) {
    const program::Job job = job_of(precision, program::Attention::kFlash, false);
    EXPECT_EQ(losses(job, &cuda::gpu()), losses(job, &cuda::gpu(), true));
  }
}

TEST(GpuTraining, FollowsTheCpuWithProductsAndGeluInOne) {
  const auto device = cuda::open_device(0, {.epilogues = true}).value_or_throw();
  for (const auto recompute : {program::Recompute::kNone, program::Recompute::kFull}) {
    program::Job job = job_of(DType::kBf16, program::Attention::kFlash, false);
    job.plan.recompute = recompute;
    expect_losses(job, 2e-2, *device);
    job.plan.precision = DType::kFp16;
    expect_losses(job, 2e-2, *device);
  }
}

// Kernels of one lane run one after the other, all of them within the step.
TEST(GpuTraining, TimesOpsByTheirKernels) {
  const auto opened = cuda::open_device(0, {.kernel_records = true});
  if (!opened) GTEST_SKIP() << opened.error().message;
  Backend* const device = opened.value().get();
  const program::Job job = job_of(DType::kBf16, program::Attention::kFlash, false);
  const program::VerifiedProgram program = program_of(job);
  const auto corpus = testing::toy_corpus(20000, static_cast<std::int32_t>(job.model.vocab));
  const auto alone = std::move(inproc::make_communicators(1).front());
  TrainOptions options;
  options.steps = 3;
  options.timeline_steps = 1;
  const TrainResult result = train_rank(program, *alone, *corpus, *device, options);
  ASSERT_FALSE(result.timeline.events.empty());
  constexpr std::int64_t kClockTick = 1'000'000;  // a microsecond: that of the device's clock, generously
  std::int64_t before = 0;
  std::string_view last_kind;
  const program::Role& role = program->roles.front();
  for (const program::Event& event : result.timeline.events) {
    const auto& ops = program->body_of(role.tasks[static_cast<std::size_t>(event.task)]).ops;
    const std::string_view kind = name_of(ops[static_cast<std::size_t>(event.op)].kind);
    EXPECT_GE(event.end_ps, event.start_ps) << kind;  // the same where all is in the next op's kernel
    EXPECT_GE(event.start_ps, before - kClockTick) << kind << " overlaps " << last_kind << ", of one lane";
    before = event.end_ps, last_kind = kind;
  }
  const auto last = static_cast<double>(before) * 1e-12;
  EXPECT_LT(last, result.steps.back().seconds);
}

}  // namespace
}  // namespace trivium::runtime
