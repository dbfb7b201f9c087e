// Bytes of checkpoints, by hand.
#include "simulator/studies/checkpoint_size.h"

#include <gtest/gtest.h>

#include "models/load.h"

namespace trivium::simulator {
namespace {

using program::DType;
using program::Moments;

program::Job gpt2() {
  program::Job job;
  job.model = models::load_model("gpt2-124m");  // 124,439,808 parameters
  job.plan.precision = DType::kBf16;
  return job;
}

TEST(CheckpointSize, IsParametersMomentsAndTheCopyOfSixteenBits) {
  program::Job job = gpt2();
  EXPECT_EQ(checkpoint_size(job).value(), 124'439'808.0 * (2 + 4 + 4 + 4));
  job.plan.moment_dtype = Moments::kBf16;
  EXPECT_EQ(checkpoint_size(job).value(), 124'439'808.0 * (2 + 4 + 2 + 2));
  job = gpt2();
  job.plan.precision = DType::kFp32;
  EXPECT_EQ(checkpoint_size(job).value(), 124'439'808.0 * 12);
}

// Of each of 12 layers the matrices (768 · 2,304 + 768² + 2 · 768 · 3,072) and biases (2,304 + 768 + 3,072 + 768) have
// one moment.
TEST(CheckpointSize, WithMuonLayersHaveOneMoment) {
  program::Job job = gpt2();
  job.training.optimizer.kind = program::Update::kMuon;
  const double layers = 12.0 * (768 * 2304 + 768 * 768 + 2 * 768 * 3072 + 2304 + 768 + 3072 + 768);
  EXPECT_EQ(checkpoint_size(job).value(), 124'439'808.0 * 14 - layers * 4);
}

// Of rank 8 a layer has 8 (768 + 2,304) of qkv, 8 (768 + 768) of the projection, 8 (768 + 3,072) of each product of the
// MLP. Adapters have the optimizer's state, as all parameters have without.
TEST(CheckpointSize, OfAdaptersIsThatOfTheFrozenParametersAndTheirOwn) {
  program::Job job = gpt2();
  job.training.lora = {.rank = 8, .alpha = 16};
  const double adapters = 12.0 * 8 * (768 + 2304 + 768 + 768 + 2 * (768 + 3072));
  EXPECT_EQ(checkpoint_size(job).value(), 124'439'808.0 * 2 + adapters * 14);
}

// All experts' adapters are kept, not those alone that a token meets.
TEST(CheckpointSize, OfAdaptersCountsThoseOfEveryExpert) {
  program::Job job = gpt2();
  job.model = models::load_model("mixtral-8x7b");
  const double whole = checkpoint_size(job).value();
  const auto parameters = static_cast<double>(models::count_parameters(job.model).total);
  job.training.lora = {.rank = 8, .qkv = false, .projection = false, .fc2 = false};
  const double adapters = 32.0 * 8 * 8 * (4096 + 2 * 14336);
  EXPECT_EQ(checkpoint_size(job).value(), parameters * 2 + adapters * (whole / parameters));
}

}  // namespace
}  // namespace trivium::simulator
