// Choosing tokens, and the forward pass that it needs.
#include "runtime/generate/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/generate/forward.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::generate {
namespace {

// Logits ln 1, ln 2, ln 5: probabilities 1/8, 2/8, 5/8; most likely first: token 2 up to 0.625, token 1 up to 0.875.
TEST(Choose, FollowsTheCumulativeDistribution) {
  const std::vector<float> logits{0.0f, std::log(2.0f), std::log(5.0f)};
  EXPECT_EQ(choose(logits, 1, 0, 0.0), 2);
  EXPECT_EQ(choose(logits, 1, 0, 0.62), 2);
  EXPECT_EQ(choose(logits, 1, 0, 0.63), 1);
  EXPECT_EQ(choose(logits, 1, 0, 0.87), 1);
  EXPECT_EQ(choose(logits, 1, 0, 0.88), 0);
  EXPECT_EQ(choose(logits, 1, 0, 0.999999), 0);
}

// Temperature 1/2 squares the odds: 1, 4, 25 of 30. The two most likely alone: 5/7 and 2/7.
TEST(Choose, TemperatureAndTopKReshapeIt) {
  const std::vector<float> logits{0.0f, std::log(2.0f), std::log(5.0f)};
  EXPECT_EQ(choose(logits, 0.5, 0, 0.83), 2);
  EXPECT_EQ(choose(logits, 0.5, 0, 0.84), 1);
  EXPECT_EQ(choose(logits, 1, 2, 0.71), 2);
  EXPECT_EQ(choose(logits, 1, 2, 0.72), 1);
  EXPECT_EQ(choose(logits, 1, 2, 0.999999), 1);
  EXPECT_EQ(choose(logits, 1, 1, 0.999999), 2);
}

TEST(Choose, GreedyTakesTheFirstOfEquals) { EXPECT_EQ(choose(std::vector<float>{1, 3, 3, 2}, 0, 0, 0.9), 1); }

class Sampling : public ::testing::Test {
 protected:
  Sampling() {
    program::Job job = checkpoint::small_job(program::Plan{});
    job.plan.precision = program::DType::kFp32;
    checkpoint::train(job, folder_.path(), 3);
    opened_.emplace(checkpoint::open(checkpoint::newest_or_throw(folder_.path()), true));
  }
  const models::Model& model() const { return opened_->description.job.job.model; }

  checkpoint::Folder folder_;
  std::optional<checkpoint::Opened> opened_;
};

// A causal model: later tokens, and the unused room after the text, change nothing.
TEST_F(Sampling, LogitsDependOnEarlierTokensAlone) {
  Forward longer(model(), opened_->tensors, 16), shorter(model(), opened_->tensors, 4);
  const std::vector<std::int32_t> text{3, 14, 15, 9, 26, 5}, begin{3, 14, 15, 9};
  const auto copy = [](const auto& rows) {
    std::vector<std::vector<float>> values;
    for (const auto& row : rows) values.emplace_back(row.begin(), row.end());
    return values;
  };
  const auto whole = copy(longer(text)), part = copy(longer(begin)), small = copy(shorter(begin));
  ASSERT_EQ(whole.front().size(), 61u);
  for (std::size_t i = 0; i < begin.size(); ++i) {
    EXPECT_EQ(whole[i], part[i]);
    for (std::size_t v = 0; v < whole[i].size(); ++v) EXPECT_NEAR(whole[i][v], small[i][v], 1e-5);
  }
  EXPECT_NE(whole[4], part[3]);
}

TEST_F(Sampling, TheSeedDecidesAndLongTextsForgetTheirBeginning) {
  SampleOptions options;
  options.tokens = 40;  // beyond the 16 positions of the model
  options.seed = 5;
  const auto draw = [&] { return sample(model(), opened_->tensors, {1, 2, 3}, options); };
  const std::vector<std::int32_t> once = draw();
  EXPECT_EQ(once.size(), 40u);
  EXPECT_EQ(draw(), once);
  options.seed = 6;
  EXPECT_NE(draw(), once);
  for (const std::int32_t token : once) EXPECT_TRUE(token >= 0 && token < 61);
}

TEST_F(Sampling, GreedyTakesTheMostLikelyTokenEveryTime) {
  SampleOptions options;
  options.tokens = 5;
  options.temperature = 0;
  std::vector<std::int32_t> text{7, 8};
  const std::vector<std::int32_t> drawn = sample(model(), opened_->tensors, text, options);
  Forward forward(model(), opened_->tensors, 16);
  for (const std::int32_t token : drawn) {
    const auto rows = forward(text);
    const auto best = std::max_element(rows.back().begin(), rows.back().end()) - rows.back().begin();
    EXPECT_EQ(token, best);
    text.push_back(token);
  }
}

}  // namespace
}  // namespace trivium::runtime::generate
