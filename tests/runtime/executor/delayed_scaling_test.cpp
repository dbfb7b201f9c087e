// Scales of fp8 delayed over several steps, by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "program/ir/fp8_layout.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/inproc/threads.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

using program::AmaxHistory;
using program::Fp8;

int buffer_of(const program::ChunkTemplate& kind, std::string_view name) {
  const auto at =
      std::find_if(kind.buffers.begin(), kind.buffers.end(), [&](const program::Buffer& b) { return b.name == name; });
  return static_cast<int>(at - kind.buffers.begin());
}

/// One rank of a toy whose window is of two steps.
class DelayedRun {
 public:
  explicit DelayedRun(std::int64_t micro_batch) : program_(two_steps(micro_batch)) {}

  const program::ChunkTemplate& kind() const { return program_.kinds[0]; }
  const program::Parameter& weight() const {
    const auto& all = kind().parameters;
    return *std::find_if(all.begin(), all.end(), [](const auto& p) { return p.name == "h.{}.mlp.c_fc.weight"; });
  }
  std::byte* at(int buffer) { return executor_.arenas().address(0, buffer, 0); }

  /// A step before which the weight's largest number is made `largest`. The scale of its cast.
  float step(float largest) {
    auto* const values = reinterpret_cast<double*>(at(weight().value));
    const std::int64_t count = weight().local_rows * weight().local_columns;
    for (std::int64_t i = 0; i < count; ++i) values[i] = i % 2 == 0 ? 0.01 : -0.01;
    values[7] = -largest;
    const StepValues now{.step = steps_++, .learning_rate = 1e-3, .loss_weight = 1.0 / (8 * 16)};
    executor_.step(now, nullptr);
    const program::Fp8Layout layout = program::fp8_layout(Fp8::kDelayed, program::Fp8Operand::kWeight, false, 1,
                                                          weight().local_rows, weight().local_columns);
    float scale = 0;
    std::memcpy(&scale, at(buffer_of(kind(), weight().name + " in 8 bits, forward")) + layout.scales_begin(),
                sizeof scale);
    executor_.evaluate(*corpus_, 0, now);  // leaves no trace
    return scale;
  }

  float history(std::int64_t row, program::Fp8Operand operand) {
    const auto site = weight().first_site + static_cast<std::int64_t>(operand);
    return reinterpret_cast<const float*>(at(kind().history))[row * kind().sites + site];
  }

 private:
  static program::Program two_steps(std::int64_t micro_batch) {
    program::Job job = toy_job({});
    job.model.layers = 2;
    job.plan.fp8 = Fp8::kDelayed, job.plan.micro_batch = static_cast<int>(micro_batch);
    program::Program program = ordered_program(job);
    for (program::Body& body : program.bodies) {
      for (program::Op& op : body.ops) {
        if (op.kind == program::OpKind::kRecordLargest) op.k = 2;
      }
    }
    return program;
  }

  program::Program program_;
  std::unique_ptr<data::Corpus> corpus_ = toy_corpus(4000, 61);
  std::vector<std::unique_ptr<Communicator>> communicators_ = inproc::make_communicators(1);
  RankExecutor executor_{program_, *communicators_.front(), *corpus_};
  std::int64_t steps_ = 0;
};

// The smallest powers of two that bring a number below 448: of 3 and of 2 it is 2^-7 (3.5), of 100 it is 2^-2 (112).
// Step 0 knows its own largest number alone; step 1 that of step 0, beyond which it saturates; step 4 has forgotten the
// 100 of step 1.
TEST(DelayedTraining, ScalesByTheLargestNumberOfTheWindow) {
  DelayedRun run(2);
  const float largest[] = {3, 100, 2, 2, 2}, scale[] = {0x1p-7F, 0x1p-7F, 0x1p-2F, 0x1p-2F, 0x1p-7F};
  const float of_window[] = {3, 100, 100, 2, 2};  // after the step
  for (int step = 0; step < 5; ++step) {
    SCOPED_TRACE(step);
    EXPECT_EQ(run.step(largest[step]), scale[step]);
    EXPECT_EQ(run.history(AmaxHistory::kFirstStep + step % 2, program::Fp8Operand::kWeight), largest[step]);
    EXPECT_EQ(run.history(AmaxHistory::kOfWindow, program::Fp8Operand::kWeight), of_window[step]);
    for (const auto operand : {program::Fp8Operand::kInput, program::Fp8Operand::kGradient}) {
      EXPECT_GT(run.history(AmaxHistory::kOfWindow, operand), 0);
    }
  }
}

// A step's largest number is that of all its micro-batches: the same in eight as in one, but for the scales of the
// first.
TEST(DelayedTraining, AStepIsAllItsMicroBatches) {
  DelayedRun eight(1), one(8);
  for (DelayedRun* run : {&eight, &one}) run->step(1);
  for (const auto operand : {program::Fp8Operand::kInput, program::Fp8Operand::kGradient}) {
    const float wanted = one.history(AmaxHistory::kOfWindow, operand);
    EXPECT_NEAR(eight.history(AmaxHistory::kOfWindow, operand), wanted, 1e-3F * wanted);
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
