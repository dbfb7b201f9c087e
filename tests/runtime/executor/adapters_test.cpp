// LoRA: adapters are trained as the gradients of the weights they add to say, splits equal the unsplit run, and frozen
// weights keep every bit.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

constexpr std::int64_t kRank = 3;
constexpr double kAlpha = 6;

program::Job adapted_job(const program::Plan& plan, bool adapted = true, std::int64_t batch = 8) {
  program::Job job = toy_job(plan, batch);
  job.model.layers = 4;
  if (!adapted) return job;
  job.training.lora.rank = kRank;
  job.training.lora.alpha = kAlpha;
  return job;
}

/// Shared key heads, gated MLPs, rotary positions, norms of heads, no biases.
program::Job adapted_llama(const program::Plan& plan, bool adapted = true) {
  program::Job job = adapted_job(plan, adapted);
  job.model.kv_heads = 2;
  job.model.positions = models::Positions::kRotary;
  job.model.activation = models::Activation::kSwiglu;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.linear_bias = job.model.qkv_bias = false;
  job.model.head_norms = true;
  job.model.tied_embeddings = false;
  return job;
}

bool is_adapter(const std::string& name) { return name.ends_with(".lora_a") || name.ends_with(".lora_b"); }

/// The second factors are random too, so that gradients of the first are not 0; `factor` on all of the tensor `scaled`.
std::function<void(program::Program&)> random_factors(const std::string& scaled = "", double factor = 1) {
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

// With B = 0 the adapted model is the model, so B's gradient is that of the target's weight by way of A:
// dL/dB = scale A^T dL/dW.
void expect_gradients_by_way_of_weights(const program::Job& adapted, const program::Job& whole) {
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
    const std::size_t in = first.size() / kRank, out = weight.size() / in;
    ASSERT_EQ(gradient.size(), kRank * out);
    double worst = 0, largest = 0;
    for (std::size_t r = 0; r < kRank; ++r) {
      for (std::size_t o = 0; o < out; ++o) {
        double sum = 0;
        for (std::size_t i = 0; i < in; ++i) sum += first[i * kRank + r] * weight[i * out + o];
        const double expected = kAlpha / kRank * sum;
        worst = std::max(worst, std::abs(expected - gradient[r * out + o]));
        largest = std::max(largest, std::abs(expected));
      }
    }
    EXPECT_LE(worst, kTolerance * largest) << name;
    EXPECT_GT(largest, 0) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 4 * adapted.model.layers);
}

TEST(Adapters, SecondFactorsHaveTheGradientOfTheirWeightByWayOfTheFirst) {
  expect_gradients_by_way_of_weights(adapted_job({}), adapted_job({}, false));
  expect_gradients_by_way_of_weights(adapted_llama({}), adapted_llama({}, false));
}

// (L(a (1 + e)) - L(a (1 - e))) / 2e = sum of dL/da a, for every tensor of a's name at once; the error is of order e^2.
TEST(Adapters, GradientsAreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-5;
  const program::Job job = standing_still(adapted_llama({}));
  const Trained here = run(job, 1, random_factors());
  for (const char* target : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
    for (const char* factor : {".lora_a", ".lora_b"}) {
      const std::string name = std::string(target) + factor;
      const Trained more = run(job, 1, random_factors(name, 1 + kStep));
      const Trained less = run(job, 1, random_factors(name, 1 - kStep));
      const double slope = (more.losses.front() - less.losses.front()) / (2 * kStep);
      double expected = 0;
      for (const auto& [tensor, gradient] : here.gradients.front()) {
        if (!tensor.ends_with(name)) continue;
        const std::vector<double>& values = here.parameters.at(tensor);
        for (std::size_t i = 0; i < values.size(); ++i) expected += gradient[i] * values[i];
      }
      EXPECT_GT(std::abs(expected), 1e-4) << name;
      EXPECT_NEAR(slope, expected, 1e-6 * std::abs(expected) + 1e-9) << name;
    }
  }
}

struct AdapterSplit {
  int tensor, context, pipeline, data, zero;
};

void expect_adapters_equal(const Trained& unsplit, const AdapterSplit& split,
                           program::Job (*make)(const program::Plan&, bool), program::Plan plan = {}) {
  plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
  plan.data = split.data, plan.zero_stage = split.zero;
  if (split.context > 1) plan.attention = program::Attention::kFlash;
  for (const bool sequence_parallel : {false, true}) {
    if (sequence_parallel && split.tensor == 1) continue;
    plan.sequence_parallel = sequence_parallel;
    expect_equivalent(unsplit, make(plan, true));
  }
}

program::Job adapted_gpt(const program::Plan& plan, bool adapted) { return adapted_job(plan, adapted); }

TEST(Adapters, EqualTheUnsplitRunUnderEverySplit) {
  for (const auto make : {adapted_gpt, adapted_llama}) {
    const Trained unsplit = run(make({}, true), 3);
    for (const AdapterSplit& split : std::vector<AdapterSplit>{{2, 1, 1, 1, 0},
                                                               {4, 1, 1, 1, 0},
                                                               {1, 1, 2, 1, 0},
                                                               {1, 1, 4, 1, 0},
                                                               {1, 1, 1, 2, 0},
                                                               {1, 1, 1, 2, 1},
                                                               {1, 1, 1, 4, 2},
                                                               {1, 1, 1, 2, 3},
                                                               {1, 1, 1, 4, 3},
                                                               {1, 2, 1, 1, 0},
                                                               {2, 1, 2, 2, 1},
                                                               {2, 1, 1, 2, 3},
                                                               {1, 1, 2, 2, 3},
                                                               {1, 2, 2, 2, 2},
                                                               {4, 1, 2, 1, 0}}) {
      expect_adapters_equal(unsplit, split, make);
    }
  }
}

TEST(Adapters, RecomputationBucketsOverlapAndInterleavingChangeNothing) {
  const Trained unsplit = run(adapted_llama({}), 3);
  for (const auto recompute : {program::Recompute::kNone, program::Recompute::kSelective, program::Recompute::kFull}) {
    for (const std::int64_t bucket : {0, 2000, 1 << 20}) {
      for (const int zero : {0, 1, 3}) {
        program::Plan plan;
        plan.recompute = recompute;
        plan.bucket_bytes = bucket;
        plan.overlap.gradient_reduction = plan.overlap.parameter_gather = zero > 0;
        plan.overlap.tensor = bucket > 0;
        plan.virtual_stages = 2, plan.schedule = program::Schedule::kInterleaved;
        expect_adapters_equal(unsplit, {2, 1, 2, 2, zero}, adapted_llama, plan);
      }
    }
  }
}

TEST(Adapters, EqualTheUnsplitRunWithSomeTargetsAlone) {
  for (const bool attention : {true, false}) {
    const auto make = [&](const program::Plan& plan) {
      program::Job job = adapted_llama(plan);
      program::Lora& lora = job.training.lora;
      lora.qkv = lora.projection = attention;
      lora.fc1 = lora.fc2 = !attention;
      return job;
    };
    const Trained unsplit = run(make({}), 3);
    program::Plan split;
    split.tensor = split.pipeline = split.data = 2;
    split.sequence_parallel = true;
    split.zero_stage = 3;
    expect_equivalent(unsplit, make(split));
    split.recompute = program::Recompute::kFull;
    expect_equivalent(unsplit, make(split));
  }
}

TEST(Adapters, FrozenWeightsKeepTheirBitsAndHaveNoMoments) {
  program::Plan plan;
  plan.data = plan.tensor = 2;
  for (const int zero : {0, 1, 3}) {
    plan.zero_stage = zero;
    const Trained still = run(standing_still(adapted_job(plan, false)), 1), moved = run(adapted_job(plan), 3);
    for (const auto& [name, values] : still.parameters) EXPECT_EQ(moved.parameters.at(name), values) << name;
    EXPECT_EQ(moved.parameters.size(), still.parameters.size() + 8 * 4);
    EXPECT_EQ(moved.first_moments.size(), 8U * 4);
    for (const auto& [name, values] : moved.first_moments) EXPECT_TRUE(is_adapter(name)) << name;
    const Trained begin = run(standing_still(adapted_job(plan)), 1);
    for (const auto& [name, values] : moved.second_moments) {
      EXPECT_NE(begin.parameters.at(name), moved.parameters.at(name)) << name;
    }
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
