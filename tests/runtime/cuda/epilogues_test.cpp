// Products and GELU in one: which pairs a program has, and that training with them comes to the same.
#include "runtime/cuda/epilogues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "simulator/predict/prepare.h"
#include "tests/program/jobs.h"
#include "tests/runtime/cuda/host_emulation_backend.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::Op;
using program::OpKind;

program::Job half_job(DType precision = DType::kBf16) {
  program::Job job = program::tiny_job(2);
  job.plan.precision = precision;
  return job;
}

int pairs_of(const program::Job& job) { return Epilogues(program::lowered(job)).pairs(); }

// Two layers: one pair each in the forward body and in the backward; recomputed, the backward body has a layer's
// forward as well.
TEST(Epilogues, AreFoundForwardAndBackward) {
  EXPECT_EQ(pairs_of(half_job()), 4);
  EXPECT_EQ(pairs_of(half_job(DType::kFp16)), 4);
  program::Job job = half_job();
  job.plan.recompute = program::Recompute::kFull;
  EXPECT_EQ(pairs_of(job), 6);
  job = half_job();
  job.plan.pipeline = 2;
  job.plan.schedule = program::Schedule::kZeroBubble;
  EXPECT_EQ(pairs_of(job), 4);
  job = half_job();
  job.plan.tensor = 2;
  EXPECT_EQ(pairs_of(job), 4);
  job = half_job();  // a layer's slot is copied away and back as it is
  job.plan.offload.activations = program::Storage::kHost;
  EXPECT_EQ(pairs_of(job), 4);
}

TEST(Epilogues, AreLeftWhereTypeCurveOrWidthDoesNotFit) {
  EXPECT_EQ(pairs_of(half_job(DType::kFp32)), 0);
  program::Job job = half_job();
  job.model = program::tiny_llama(2);
  EXPECT_EQ(pairs_of(job), 0) << "SwiGLU";
  job = half_job();
  job.model.activation = models::Activation::kRelu;
  EXPECT_EQ(pairs_of(job), 0) << "ReLU";
  job = half_job();
  job.model.ffn_hidden = 100;
  EXPECT_EQ(pairs_of(job), 0) << "rows that are no multiple of 8";
  job = half_job();
  job.model.linear_bias = false;
  EXPECT_EQ(pairs_of(job), 0) << "no bias";
}

/// The program's op of a kind in the first layer of the backward body.
Op& backward_op(program::Program& program, OpKind kind, int nth = 0) {
  for (Op& op : program.bodies[static_cast<std::size_t>(program.kinds.front().backward)].ops) {
    if (op.kind == kind && nth-- == 0) return op;
  }
  throw std::logic_error("no such op");
}

program::Buffer& buffer_of(program::Program& program, int id) {
  return program.kinds.front().buffers[static_cast<std::size_t>(id)];
}

/// Pairs after `spoil(program, product, activation)` of the backward body's first layer; 4 without.
template <class Spoil>
int pairs_after(const Spoil& spoil) {
  program::Program program = program::lowered(half_job());
  Op& activation = backward_op(program, OpKind::kActivationBackward);
  auto& ops = program.bodies[static_cast<std::size_t>(program.kinds.front().backward)].ops;
  const auto product =
      std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.out[0] == activation.in[2]; });
  spoil(program, *product, activation);
  return Epilogues(program).pairs();
}

// The product is put off until the activation's turn: not where its input, or what the activation writes, lies where
// the other is used meanwhile. Only this pair is lost: its activation still knows that the bias is in.
TEST(Epilogues, AreLeftWhereMemoryIsUsedTwice) {
  EXPECT_EQ(pairs_after([](auto&, Op&, Op&) {}), 4);
  const auto lay_over = [](program::Program& program, int what, int where) {
    buffer_of(program, what).space = buffer_of(program, where).space;
    buffer_of(program, what).offset = buffer_of(program, where).offset;
  };
  EXPECT_EQ(pairs_after([&](auto& program, Op& product, Op& activation) {
              lay_over(program, activation.out[0], product.in[0]);
            }),
            3);
  EXPECT_EQ(
      pairs_after([&](auto& program, Op&, Op& activation) { lay_over(program, activation.out[0], activation.in[0]); }),
      3);
  EXPECT_EQ(pairs_after([](auto&, Op& product, Op& activation) {
              Op& between = *(&product + 1);  // the weight gradient of the same product
              ASSERT_LT(&between, &activation);
              between.out[1] = product.in[0];
            }),
            3);
}

// Another lane that waits for the product, or for an op after it, may then write what the product reads.
TEST(Epilogues, AreLeftWhereAnotherLaneCountsOnTheProduct) {
  program::Program program = program::lowered(half_job());
  auto& ops = program.bodies[static_cast<std::size_t>(program.kinds.front().backward)].ops;
  const auto activation =
      std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kActivationBackward; });
  ops.back().lane = program::Lane::kTensor;
  ops.back().after[0] = static_cast<std::int32_t>(activation - ops.begin()) - 1;
  EXPECT_EQ(Epilogues(program).pairs(), 3);
  ops.back().after[0] += 1;
  EXPECT_EQ(Epilogues(program).pairs(), 4);
}

// A reader of the kept input that expects it without the bias: no pair of that layer, in no body.
TEST(Epilogues, AreLeftWhereSomebodyElseReadsTheKeptInput) {
  EXPECT_EQ(pairs_after([](auto&, Op& product, Op& activation) { (&product + 1)->in[0] = activation.in[0]; }), 2);
}

/// Losses and gradient norms of two steps on one rank; on a core where `backend` is null.
std::vector<double> train_fused(const program::Job& job, Backend* backend) {
  const hardware::Cluster cluster = hardware::load_cluster("h200");
  const auto program = simulator::prepare(job, cluster, {.fits = false}).value_or_throw().verified();
  const auto corpus = testing::toy_corpus(2000, static_cast<std::int32_t>(job.model.vocab));
  const auto alone = std::move(inproc::make_communicators(1).front());
  TrainOptions options;
  options.steps = 2;
  options.timeline_steps = 0;
  const TrainResult result = backend != nullptr ? train_rank(program, *alone, *corpus, *backend, options)
                                                : train_rank(program, *alone, *corpus, options);
  EXPECT_EQ(result.refused, "");
  std::vector<double> figures;
  for (const program::StepRecord& step : result.steps) figures.insert(figures.end(), {step.loss, step.grad_norm});
  return figures;
}

void expect_near(const std::vector<double>& wanted, const std::vector<double>& got, double tolerance) {
  ASSERT_EQ(wanted.size(), 4U);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance * wanted[i]) << "figure " << i;
}

// fp16 rounds to 11 bits. Two layers, two micro-batches, two steps: 16 pairs.
TEST(Epilogues, TrainAsWithoutThemFusedOrWithoutAnAlgorithm) {
  program::Plan recomputed, together, offloaded;
  recomputed.recompute = together.recompute = program::Recompute::kFull;
  together.recompute_group = 2;
  offloaded.offload.activations = program::Storage::kHost;
  for (const program::Plan& plan : {program::Plan{}, recomputed, together, offloaded}) {
    program::Job job = half_job(DType::kFp16);
    job.training.global_batch = 2;
    job.training.loss_scaling.initial = 1024;
    job.plan.recompute = plan.recompute;
    job.plan.recompute_group = plan.recompute_group;
    job.plan.offload = plan.offload;
    const std::vector<double> wanted = train_fused(job, nullptr);
    HostEmulationBackend apart;
    expect_near(wanted, train_fused(job, &apart), 2e-3);
    EXPECT_EQ(apart.fused(), 0);
    for (const Fusing fusing : {Fusing::kOn, Fusing::kWithoutAlgorithm}) {
      HostEmulationBackend fused(fusing);
      expect_near(wanted, train_fused(job, &fused), 2e-3);
      EXPECT_EQ(fused.fused(), plan.recompute == program::Recompute::kFull ? 24 : 16);
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
