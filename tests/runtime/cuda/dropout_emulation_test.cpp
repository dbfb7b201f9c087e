// Trainings with dropout on the host emulation of the CUDA kernels: the masks are the CPU's, so the losses are.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "runtime/cuda/kernels/flash_tiles.h"
#include "runtime/executor/train.h"
#include "runtime/inproc/threads.h"
#include "tests/program/jobs.h"
#include "tests/runtime/cuda/host_emulation_backend.h"
#include "tests/runtime/cuda/host_threads.h"
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

/// A mask whose draws are counted.
struct CountedDropout : Dropout {
  int* draws = nullptr;
};
PhiloxWords dropout_words(const CountedDropout& d, std::int64_t head, std::int64_t sample, std::int64_t position,
                          std::int64_t quad) {
  ++*d.draws;
  return runtime::dropout_words(d, head, sample, position, quad);
}

// 16 rows by 64 columns of a warp's tile, with queries down and with keys down: every element has the factor that it
// has alone, and all four words of each draw are used.
TEST(AttentionDraws, ServeFourKeysEach) {
  CountedDropout d;
  d.threshold = 1U << 30, d.scale = 4.0 / 3, d.key = 0x0123456789abcdefULL, d.step = 3, d.first_sample = 8;
  int draws = 0, dropped = 0;
  d.draws = &draws;
  constexpr std::int64_t kHead = 5, kSample = 2, kQuery = 48, kKey = 64;
  for (const bool keys_down : {false, true}) {
    draws = dropped = 0;
    HostBlock& block = HostBlock::of(kWarp);
    const auto body = [&](int thread) {
      HostThread t(block, thread, 0, 1);
      float c[8][4];
      for (auto& row : c) std::fill(std::begin(row), std::end(row), 1.0F);
      if (keys_down) {
        column_factors<64>(t, d, kHead, kSample, kQuery, kKey, c);
      } else {
        drop_rows<64>(t, d, kHead, kSample, kQuery, kKey, c);
      }
      for (int n = 0; n < 8; ++n) {
        for (int i = 0; i < 4; ++i) {
          const int down = thread / 4 + i / 2 * 8, across = n * 8 + thread % 4 * 2 + i % 2;
          const float alone =
              score_factor(d, kHead, kSample, kQuery + (keys_down ? across : down), kKey + (keys_down ? down : across));
          EXPECT_EQ(c[n][i], alone) << "row " << down << ", column " << across;
          dropped += alone == 0 ? 1 : 0;
        }
      }
    };
    block.run(body, 0, Turns::kShuffled);
    EXPECT_EQ(draws, 16 * 64 / 4);
    EXPECT_GT(dropped, 16 * 64 / 8);
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
