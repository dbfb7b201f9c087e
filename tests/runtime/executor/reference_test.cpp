// The unsplit run, which every split is compared with, checked on its own by central finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hardware_profiles/load.h"
#include "program/lower/lower.h"
#include "runtime/executor/rank_executor.h"
#include "runtime/inproc/threads.h"
#include "simulator/schedule/engine.h"
#include "tests/runtime/executor/harness.h"

namespace trivium::runtime::testing {
namespace {

// One rank whose parameters can be moved by hand.
class Reference {
 public:
  explicit Reference(const program::Job& job)
      : corpus_(toy_corpus(4000, static_cast<std::int32_t>(job.model.vocab))),
        communicators_(inproc::make_communicators(1)) {
    program_ = simulator::order(std::get<program::Program>(program::lower(job)), hardware::load_cluster("generic-cpu"))
                   .value_or_throw();
  }

  // Loss of step 0 after adding `delta` to element `index` of the chunk's parameters; `gradients` of that loss.
  double loss(std::int64_t index, double delta, std::vector<double>* gradients) {
    RankExecutor executor(program_, *communicators_.front(), *corpus_);
    auto* parameters = reinterpret_cast<double*>(executor.arenas().base(0, program::Space::kParameter, 0));
    parameters[index] += delta;
    if (gradients != nullptr) {
      executor.before_optimizer([&] {
        const auto* from = reinterpret_cast<const double*>(executor.arenas().base(0, program::Space::kGradient, 0));
        gradients->assign(from,
                          from + program_.kinds[0].buckets.back().begin + program_.kinds[0].buckets.back().elements);
      });
    }
    const StepValues values{
        0, 1e-3, 1.0 / static_cast<double>(program_.job.training.global_batch * program_.job.training.sequence)};
    return executor.step(values, nullptr).loss;
  }

  const program::Program& program() const { return program_; }

 private:
  program::Program program_;
  std::unique_ptr<data::Corpus> corpus_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

// The central difference (f(x+e) - f(x-e)) / 2e errs by e^2/6 f''' + eps f / e. With e = 1e-5 and f about 4: 1e-11 from
// rounding and about 1e-10 from curvature; gradients here are 1e-4 to 1e-1, so 1e-6 of the largest is a safe mark.
// `rounding`: more, where the loss is large compared with its gradients.
void expect_gradients_of_the_loss(const program::Job& job, double rounding = 0) {
  Reference reference(job);
  std::vector<double> gradients;
  reference.loss(0, 0, &gradients);
  constexpr double kStep = 1e-5;
  for (const program::Parameter& p : reference.program().kinds[0].parameters) {
    double largest = 0;
    for (std::int64_t i = 0; i < p.local_rows * p.local_columns; ++i) {
      largest = std::max(largest, std::abs(gradients[static_cast<std::size_t>(p.offset + i)]));
    }
    ASSERT_GT(largest, 0) << p.name;
    const std::int64_t count = p.local_rows * p.local_columns;
    for (std::int64_t k = 0; k < 5; ++k) {
      const std::int64_t index = p.offset + (k * 7919 + 3) % count;
      const double numeric =
          (reference.loss(index, kStep, nullptr) - reference.loss(index, -kStep, nullptr)) / (2 * kStep);
      EXPECT_NEAR(gradients[static_cast<std::size_t>(index)], numeric, 1e-6 * largest + rounding)
          << p.name << " element " << index - p.offset;
    }
  }
}

program::Job two_layers() {
  program::Plan plan;
  plan.micro_batch = 2;
  program::Job job = toy_job(plan, 4);
  job.model.layers = 2;
  return job;
}

TEST(Reference, GradientOfEveryTensorIsTheFiniteDifferenceOfTheLoss) { expect_gradients_of_the_loss(two_layers()); }

TEST(Reference, GradientsOfParallelBlocksAreFiniteDifferences) {
  program::Job job = two_layers();
  job.model.parallel_block = true;
  for (const bool shared_norm : {true, false}) {
    SCOPED_TRACE(shared_norm ? "shared norm" : "a norm for each branch");
    job.model.shared_norm = shared_norm;
    expect_gradients_of_the_loss(job);
  }
}

// Which experts a token goes to does not change over so small a step; room is scarce, so some tokens pass by.
TEST(Reference, GradientsOfMixturesOfExpertsAreFiniteDifferences) {
  program::Job job = two_layers();
  job.model.linear_bias = false;
  for (const int top_k : {1, 2}) {
    SCOPED_TRACE(top_k);
    job.model.experts = models::Experts{.count = 4, .top_k = top_k, .every = 2, .capacity_factor = 0.75};
    job.model.experts->balance_loss = 0.5;  // enough to see in the gradients of the router
    expect_gradients_of_the_loss(job);
  }
}

TEST(Reference, GradientsOfMultiTokenPredictionAreFiniteDifferences) {
  program::Job job = two_layers();
  job.model.positions = models::Positions::kRotary;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.mtp = models::MultiToken{.depth = 2, .loss_scale = 2};
  const double loss = 12, rounding = std::numeric_limits<double>::epsilon() * loss / 1e-5;  // three times log(61)
  for (const bool tied : {true, false}) {
    SCOPED_TRACE(tied ? "tied" : "untied");
    job.model.tied_embeddings = tied;
    expect_gradients_of_the_loss(job, rounding);
  }
}

// The masks of a step are what they are, whatever the parameters: the loss is a function of these alone.
TEST(Reference, GradientsWithDropoutAreFiniteDifferences) {
  program::Job job = two_layers();
  job.training.dropout = 0.3;
  std::vector<std::pair<const char*, program::Job>> jobs(5, {"", job});
  jobs[0].first = "unfused attention";
  jobs[1].first = "flash attention";
  jobs[1].second.plan.attention = program::Attention::kFlash;
  jobs[2].first = "llama's blocks";
  jobs[2].second.model.positions = models::Positions::kRotary;
  jobs[2].second.model.norm = models::Norm::kRmsNorm;
  jobs[2].second.model.activation = models::Activation::kSwiglu;
  jobs[2].second.model.linear_bias = jobs[2].second.model.qkv_bias = false;
  jobs[2].second.model.kv_heads = 2;
  jobs[3].first = "parallel blocks";
  jobs[3].second.model.parallel_block = true;
  jobs[4].first = "experts";
  jobs[4].second.model.linear_bias = false;
  jobs[4].second.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2, .capacity_factor = 0.75};
  for (const auto& [what, dropped] : jobs) {
    SCOPED_TRACE(what);
    expect_gradients_of_the_loss(dropped);
  }
}

// Modules predict as little: their mean loss is that of the model, but for the tokens at the end of a sample that have
// no target, 1 of 16 in the first module and 2 in the second. (15 + 14) / 32 of log(61) and a half times that.
TEST(Reference, ModulesOfMultiTokenPredictionAddTheirShareOfTheLoss) {
  program::Job job = toy_job({});
  job.model.positions = models::Positions::kRotary;
  job.model.mtp = models::MultiToken{.depth = 2, .loss_scale = 0.5};
  const Trained once = run(job, 1);
  ASSERT_EQ(once.losses.size(), 1u);
  EXPECT_NEAR(once.losses[0], std::log(61.0) * (1 + 0.5 * 29 / 32), 0.08);
}

// Before training every token is about equally likely: the loss is close to log(61) = 4.11.
TEST(Reference, FirstLossIsTheLogarithmOfTheVocabulary) {
  program::Plan plan;
  const Trained once = run(toy_job(plan), 1);
  ASSERT_EQ(once.losses.size(), 1u);
  EXPECT_NEAR(once.losses[0], std::log(61.0), 0.05);
}

}  // namespace
}  // namespace trivium::runtime::testing
