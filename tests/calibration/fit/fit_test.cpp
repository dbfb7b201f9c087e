#include "calibration/fit/fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace trivium::calibration {
namespace {

std::vector<Sample> samples_of(const Terms& truth, std::initializer_list<std::pair<double, double>> shapes) {
  std::vector<Sample> samples;
  for (const auto& [flops, bytes] : shapes) {
    const Terms sizes{1, flops, bytes};
    samples.push_back({sizes, time_of(truth, sizes), 1});
  }
  return samples;
}

constexpr std::initializer_list<std::pair<double, double>> kShapes = {{0, 1e3},   {1e6, 1e4}, {1e8, 1e5},
                                                                      {1e8, 1e6}, {1e9, 1e6}, {0, 1e7}};

// Six exact samples decide the three terms; the prior pulls by about (noise / prior spread)^2, far below 1 %.
TEST(FitTerms, FindsTermsThatTheSamplesTellApart) {
  const Terms truth{2e-6, 1e-11, 3e-10}, prior{1e-6, 4e-11, 1e-10};
  const TermFit fit = fit_terms(samples_of(truth, kShapes), prior);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(fit.terms[j] / truth[j], 1, 0.05) << j;
  EXPECT_EQ(fit.terms[3], 0);  // no sample has blocks
  EXPECT_LT(fit.after, 0.01);
  EXPECT_GT(fit.before, 0.3);
}

// Samples of few FLOPs in many blocks and of many in few. A prior that knows nothing of blocks holds their term back,
// and the others make up for it.
TEST(FitTerms, FindsWhatABlockTakes) {
  const Terms truth{2e-6, 1e-11, 3e-10, 4e-6}, prior{1e-6, 4e-11, 1e-10, 1e-6};
  std::vector<Sample> samples;
  for (const Terms& sizes : {Terms{1, 1e5, 1e4, 1}, Terms{1, 1e6, 1e5, 16}, Terms{1, 1e8, 1e5, 2},
                             Terms{1, 1e8, 1e6, 64}, Terms{1, 1e7, 1e6, 4}, Terms{1, 1e5, 1e4, 64}}) {
    samples.push_back({sizes, time_of(truth, sizes), 1});
  }
  const TermFit fit = fit_terms(samples, prior);
  for (std::size_t j = 0; j < kTerms; ++j) EXPECT_NEAR(fit.terms[j] / truth[j], 1, 0.05) << j;
  const TermFit unaware = fit_terms(samples, {1e-6, 4e-11, 1e-10, 0});
  EXPECT_LT(unaware.after, 0.05);
  EXPECT_GT(unaware.before, 0.3);
  EXPECT_GT(unaware.terms[3], 0.8 * truth[3]);
}

// One shape cannot tell terms apart: all of them scale by its measured over predicted time, 3.
TEST(FitTerms, KeepsProportionsOfThePriorForOneShape) {
  const Terms prior{1e-6, 1e-11, 1e-10};
  std::vector<Sample> samples = samples_of(prior, {{1e6, 1e4}});
  samples[0].seconds *= 3;
  const TermFit fit = fit_terms(samples, prior);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(fit.terms[j] / prior[j], 3, 1e-6) << j;
}

TEST(FitTerms, NeverGoesBelowZero) {
  std::vector<Sample> samples = samples_of({0, 0, 1e-9}, {{1e6, 1e4}, {5e6, 1e4}, {1e6, 1e5}, {1e7, 1e6}});
  const TermFit fit = fit_terms(samples, {1e-6, 1e-11, 1e-10});
  for (const double term : fit.terms) EXPECT_GE(term, 0);
  EXPECT_LT(fit.after, 0.02);
}

// One sample of six took ten times its time; the others still decide.
TEST(FitTerms, DoesNotFollowAnOutlier) {
  const Terms truth{2e-6, 1e-11, 3e-10};
  std::vector<Sample> samples = samples_of(truth, kShapes);
  samples[2].seconds *= 10;
  const TermFit fit = fit_terms(samples, truth);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i == 2) continue;
    EXPECT_NEAR(time_of(fit.terms, samples[i].sizes) / samples[i].seconds, 1, 0.05) << i;
  }
}

}  // namespace
}  // namespace trivium::calibration
