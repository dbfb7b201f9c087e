#include "tests/runtime/executor/adapted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

constexpr double kAlpha = 6;

}  // namespace

program::Job with_adapters(program::Job job) {
  job.training.lora.rank = kRank;
  job.training.lora.alpha = kAlpha;
  return job;
}

bool is_adapter(const std::string& name) { return name.ends_with(".lora_a") || name.ends_with(".lora_b"); }

std::function<void(program::Program&)> random_factors(const std::string& scaled, double factor) {
  return [=](program::Program& program) {
    for (program::ChunkTemplate& kind : program.kinds) {
      for (program::Parameter& p : kind.parameters) {
        if (p.name.ends_with(".lora_b")) p.init_std = 0.1;
        if (!scaled.empty() && p.name == "h.{}." + scaled) p.init_std *= factor;
      }
    }
  };
}

program::Job standing_still(program::Job job) {
  job.training.optimizer.learning_rate = job.training.optimizer.min_learning_rate = 0;
  return job;
}

void expect_gradients_by_way_of_weights(const program::Job& adapted, const program::Job& whole, int adapters) {
  const Trained a = run(standing_still(adapted), 1), w = run(standing_still(whole), 1);
  ASSERT_EQ(a.refused, "");
  EXPECT_EQ(a.losses, w.losses);
  int compared = 0;
  for (const auto& [name, gradient] : a.gradients.front()) {
    ASSERT_TRUE(is_adapter(name)) << name;
    if (!name.ends_with(".lora_b")) continue;
    const std::string target = name.substr(0, name.size() - std::string("lora_b").size());
    const std::vector<double>& first = a.parameters.at(target + "lora_a");
    const std::vector<double>& weight = w.gradients.front().at(target + "weight");
    const bool of_experts = name.find(".experts.") != std::string::npos;
    const auto experts = static_cast<std::size_t>(of_experts ? adapted.model.experts->count : 1);
    const std::size_t in = first.size() / kRank / experts, out = weight.size() / in / experts;
    ASSERT_EQ(gradient.size(), experts * kRank * out);
    double worst = 0, largest = 0;
    for (std::size_t r = 0; r < experts * kRank; ++r) {
      const std::size_t above = r / kRank * in;  // rows of the experts before this one
      for (std::size_t o = 0; o < out; ++o) {
        double sum = 0;
        for (std::size_t i = above; i < above + in; ++i) sum += first[i * kRank + r % kRank] * weight[i * out + o];
        const double expected = kAlpha / kRank * sum;
        worst = std::max(worst, std::abs(expected - gradient[r * out + o]));
        largest = std::max(largest, std::abs(expected));
      }
    }
    EXPECT_LE(worst, kTolerance * largest) << name;
    EXPECT_GT(largest, 0) << name;
    ++compared;
  }
  EXPECT_EQ(compared, adapters);
}

// The error is of order e^2.
void expect_gradients_of_finite_differences(const program::Job& adapted, const std::vector<std::string>& targets) {
  constexpr double kStep = 1e-5;
  const program::Job job = standing_still(adapted);
  const Trained here = run(job, 1, random_factors());
  for (const std::string& target : targets) {
    for (const char* factor : {".lora_a", ".lora_b"}) {
      const std::string name = target + factor;
      const Trained more = run(job, 1, random_factors(name, 1 + kStep));
      const Trained less = run(job, 1, random_factors(name, 1 - kStep));
      const double slope = (more.losses.front() - less.losses.front()) / (2 * kStep);
      double expected = 0;
      for (const auto& [tensor, gradient] : here.gradients.front()) {
        if (!tensor.ends_with("." + name)) continue;
        const std::vector<double>& values = here.parameters.at(tensor);
        for (std::size_t i = 0; i < values.size(); ++i) expected += gradient[i] * values[i];
      }
      EXPECT_GT(std::abs(expected), 2e-5) << name;
      EXPECT_NEAR(slope, expected, 1e-6 * std::abs(expected) + 1e-9) << name;
    }
  }
}

}  // namespace trivium::runtime::testing
