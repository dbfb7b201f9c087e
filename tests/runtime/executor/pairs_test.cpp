// Every two settings of a plan that may stand together do stand together in some run: few plans, chosen so that each
// pair of values of any two fields is in one of them, and each plan computes what one rank computes.
#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <map>
#include <random>
#include <vector>

#include "program/lower/lower.h"
#include "tests/runtime/executor/adapted.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

enum Field {
  kModel,
  kTensor,
  kContext,
  kPipeline,
  kData,
  kMethod,
  kSchedule,
  kZero,
  kShardGroup,
  kSequence,
  kExpert,
  kExpertTensor,
  kRecompute,
  kAttention,
  kOverlapGradients,
  kOverlapGathers,
  kOverlapTensor,
  kOverlapExpert,
  kBuckets,
  kMicroBatch,
  kOffloadedState,
  kAwayActivations,
  kAwayParameters,
  kPlacement,
  kScatterGather,
  kDropout,
  kAdapters,
  kFields
};
enum Shape { kGpt2, kLlama, kParallel, kMixture, kGptOss, kGemma, kDeepSeek, kLlama4, kGrok };

constexpr std::array<int, kFields> kValues = {
    9, 3, 2, 3, 3, 3, program::kSchedules, 4, 2, 2, 2, 3, 3, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 2, 2, 2, 2};
constexpr int kMostValues = 9;
using Choice = std::array<int, kFields>;
using Pairs = std::bitset<kFields * kMostValues * kFields * kMostValues>;

std::size_t index_of(int a, int value_of_a, int b, int value_of_b) {
  return static_cast<std::size_t>(((a * kMostValues + value_of_a) * kFields + b) * kMostValues + value_of_b);
}

Pairs pairs_of(const Choice& choice) {
  Pairs pairs;
  for (int a = 0; a < kFields; ++a) {
    for (int b = a + 1; b < kFields; ++b) {
      pairs.set(index_of(a, choice[static_cast<std::size_t>(a)], b, choice[static_cast<std::size_t>(b)]));
    }
  }
  return pairs;
}

// Layers 0, 1 and 3 see chunks of five keys, 2 all without positions; 1 and 3 are mixtures.
void add_llama4(models::Model& model) {
  model.norm = models::Norm::kRmsNorm;
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kSwiglu;
  model.kv_heads = 2;
  model.linear_bias = model.qkv_bias = model.tied_embeddings = false;
  model.plain_head_norms = true;
  model.window = models::Window{.keys = 5, .full_every = 3, .chunked = true, .plain_full = true};
  model.temperature = models::Temperature{.slope = 0.5, .run = 3};
  models::Experts e{.count = 4, .top_k = 1, .every = 2, .dropless = true, .imbalance = 2};
  e.scores = models::Scores::kSigmoid;
  e.scales_input = true, e.normalised = false;
  e.shared_hidden = 32, e.dense_hidden = 96;
  model.experts = e;
}

// Four norms a layer, capped scores, factors on embeddings and logits, shares of all experts as weights of two.
void add_grok(models::Model& model) {
  model.norm = models::Norm::kRmsNorm;
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kGeglu;
  model.kv_heads = 2;
  model.linear_bias = model.qkv_bias = false;
  model.branch_norms = true;
  model.attention_soft_cap = 2, model.embedding_scale = 4, model.logit_scale = 0.6;
  model.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true, .imbalance = 2, .normalised = false};
}

program::Job shaped(int shape, bool dropout, bool adapters, const program::Plan& plan) {
  program::Job job = adapters ? with_adapters(toy_job(plan)) : toy_job(plan);
  if (dropout) job.training.dropout = 0.2;
  job.model.layers = 4;
  if (shape == kLlama) {
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kSwiglu;
    job.model.kv_heads = 2;
    job.model.head_norms = true;  // as Qwen 3 has them
    job.model.window = models::Window{.keys = 5, .full_every = 2};
    job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  }
  if (shape == kDeepSeek) {
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kSwiglu;
    job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
    job.model.latent = models::Latent{20, 12, 6, 4, 8};
    job.model.head_dim = 10;
    models::Experts e{.count = 4, .top_k = 2, .dropless = true, .imbalance = 2};
    e.scores = models::Scores::kSigmoid;
    e.correction_bias = true;
    e.groups = 2, e.top_groups = 1, e.group_best = 2;
    e.scale = 2.5;
    e.shared_hidden = 32, e.dense_layers = 1, e.dense_hidden = 96;
    job.model.experts = e;
  }
  if (shape == kLlama4) add_llama4(job.model);
  if (shape == kGrok) {
    add_grok(job.model);
    job.training.optimizer.epsilon = 1e-6;  // as in grok_test.cpp
  }
  job.model.parallel_block = shape == kParallel;
  if (shape == kMixture) {
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 1, .capacity_factor = 0.75};
  }
  if (shape == kGemma) {
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kGeglu;
    job.model.linear_bias = job.model.qkv_bias = false;
    job.model.branch_norms = true;
    job.model.attention_soft_cap = 2, job.model.logit_soft_cap = 1.5, job.model.embedding_scale = 4;
    job.model.window = models::Window{.keys = 5, .full_every = 2, .rotary = models::Rotary{.theta = 50}};
  }
  if (shape == kGptOss) {
    job.model.norm = models::Norm::kRmsNorm;
    job.model.positions = models::Positions::kRotary;
    job.model.activation = models::Activation::kClampedSwiglu;
    job.model.kv_heads = 2;
    job.model.tied_embeddings = false;
    job.model.attention_sinks = true;
    job.model.window = models::Window{.keys = 5, .full_every = 2};
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 1, .capacity_factor = 1};
    job.training.optimizer.epsilon =
        1e-6;  // gradients agree to 5e-15; Adam divides those of rarely chosen experts by as little
  }
  return job;
}

program::Job job_of(const Choice& c) {
  program::Plan plan;
  plan.tensor = 1 << c[kTensor];
  plan.context = 1 << c[kContext];
  plan.pipeline = 1 << c[kPipeline];
  plan.data = 1 << c[kData];
  plan.context_method = c[kMethod] == 1 ? program::ContextMethod::kAllToAll : program::ContextMethod::kRing;
  if (c[kMethod] == 2 && plan.context > 1) plan.context_heads = 2, plan.context = 4;
  plan.schedule = static_cast<program::Schedule>(c[kSchedule]);
  const program::ScheduleTraits& schedule = program::traits_of(plan.schedule);
  plan.virtual_stages = schedule.virtual_stages && plan.pipeline > 1 ? 4 / plan.pipeline : 1;
  plan.zero_stage = c[kZero];
  plan.shard_group = 2 * c[kShardGroup];
  plan.sequence_parallel = c[kSequence] != 0;
  plan.expert = 1 << c[kExpert];
  plan.expert_tensor = c[kExpertTensor];
  plan.recompute = static_cast<program::Recompute>(c[kRecompute]);
  plan.attention = static_cast<program::Attention>(c[kAttention]);
  plan.overlap.gradient_reduction = c[kOverlapGradients] != 0;
  plan.overlap.parameter_gather = c[kOverlapGathers] != 0;
  plan.overlap.tensor = c[kOverlapTensor] != 0;
  plan.overlap.expert = c[kOverlapExpert] != 0;
  plan.bucket_bytes = 50'000 * c[kBuckets];
  plan.micro_batch = 1 << c[kMicroBatch];
  plan.offload.optimizer = static_cast<program::Storage>(c[kOffloadedState]);
  plan.offload.activations = static_cast<program::Storage>(c[kAwayActivations]);
  plan.offload.parameters = static_cast<program::Storage>(c[kAwayParameters]);
  if (c[kScatterGather] != 0) plan.scatter_gather = program::ScatterGather::kOn;
  if (c[kPlacement] != 0) plan.placement = "data-pipeline-tensor-context";
  return shaped(c[kModel], c[kDropout] != 0, c[kAdapters] != 0, plan);
}

bool can_be(const Choice& choice) {
  const program::Job job = job_of(choice);
  if (job.plan.ranks() > 8 || program::check(job)) return false;
  return std::holds_alternative<program::Program>(program::lower(job));
}

Choice draw(std::mt19937_64& random) {
  Choice choice{};
  for (std::size_t f = 0; f < kFields; ++f) choice[f] = static_cast<int>(random() % static_cast<unsigned>(kValues[f]));
  return choice;
}

// Plans that can be, until every pair is in one of them or was refused in as many draws of all other fields.
std::vector<Choice> candidates(std::mt19937_64& random) {
  constexpr int kDraws = 400;
  std::vector<Choice> found;
  Pairs seen;
  for (int a = 0; a < kFields; ++a) {
    for (int b = a + 1; b < kFields; ++b) {
      for (int x = 0; x < kValues[static_cast<std::size_t>(a)]; ++x) {
        for (int y = 0; y < kValues[static_cast<std::size_t>(b)]; ++y) {
          for (int i = 0; i < kDraws && !seen.test(index_of(a, x, b, y)); ++i) {
            Choice choice = draw(random);
            choice[static_cast<std::size_t>(a)] = x;
            choice[static_cast<std::size_t>(b)] = y;
            if (!can_be(choice)) continue;
            found.push_back(choice);
            seen |= pairs_of(choice);
          }
        }
      }
    }
  }
  return found;
}

// Always the plan with the most pairs that no plan before it has.
std::vector<Choice> covering(const std::vector<Choice>& from) {
  std::vector<Choice> chosen;
  Pairs covered;
  for (;;) {
    const Choice* best = nullptr;
    std::size_t most = 0;
    for (const Choice& choice : from) {
      const std::size_t fresh = (pairs_of(choice) & ~covered).count();
      if (fresh > most) most = fresh, best = &choice;
    }
    if (best == nullptr) return chosen;
    chosen.push_back(*best);
    covered |= pairs_of(*best);
  }
}

TEST(EveryPairOfSettings, EqualsTheUnsplitRun) {
  std::mt19937_64 random(2026);
  std::vector<Choice> all = candidates(random);
  for (int i = 0; i < 20'000; ++i) {
    if (const Choice choice = draw(random); can_be(choice)) all.push_back(choice);
  }
  const std::vector<Choice> plans = covering(all);
  EXPECT_GE(plans.size(), 20u);  // 5 schedules x 4 stages of ZeRO are 20 plans at least
  std::map<std::tuple<int, int, bool, bool>, Trained> references;
  for (const Choice& choice : plans) {
    const program::Job job = job_of(choice);
    const bool dropout = choice[kDropout] != 0, adapters = choice[kAdapters] != 0;
    const auto [at, fresh] = references.try_emplace({choice[kModel], job.plan.micro_batch, dropout, adapters});
    if (fresh) {
      program::Plan alone;
      alone.micro_batch = job.plan.micro_batch;
      at->second = run(shaped(choice[kModel], dropout, adapters, alone), 2);
    }
    expect_equivalent(at->second, job);
  }
}

}  // namespace
}  // namespace trivium::runtime::testing
