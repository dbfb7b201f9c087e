// Trainings with dropout on the host emulation of the CUDA kernels: the masks are the CPU's, so the losses are.
#include <gtest/gtest.h>

#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "tests/program/jobs.h"
#include "tests/runtime/cuda/host_emulation_backend.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;

/// Losses and gradient norms of two steps on one rank; on a core where `backend` is null.
std::vector<double> train(const program::Job& job, Backend* backend) {
  const auto program = program::verified(testing::ordered_program(job));
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

// fp32 sums in another order; another mask changes a loss by more than a ten thousandth. Learned positions and unfused
// attention, then rotary ones and attention row by row.
TEST(DroppedTrainingEmulation, FollowsTheCpu) {
  for (const bool flash : {false, true}) {
    program::Job job = testing::toy_job({}, 1);
    job.model.layers = 1;
    job.plan.precision = DType::kFp32;
    if (flash) job.model.positions = models::Positions::kRotary, job.plan.attention = program::Attention::kFlash;
    const double whole = train(job, nullptr).front();
    job.training.dropout = 0.3;
    const std::vector<double> wanted = train(job, nullptr);
    HostEmulationBackend emulated;
    const std::vector<double> got = train(job, &emulated);
    ASSERT_EQ(wanted.size(), 4U);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5 * wanted[i]) << "figure " << i;
    EXPECT_GT(std::abs(wanted.front() - whole), 1e-4 * whole);
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
