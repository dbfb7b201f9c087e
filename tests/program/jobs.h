// Small jobs, and questions that many tests ask of a Program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/model.h"
#include "program/lower/lower.h"
#include "program/verify/verified.h"

namespace trivium::program {

/// A GPT small enough for arithmetic by hand: hidden 32, 4 heads of 8, ffn 128, vocabulary 64, 16 positions.
inline models::Model tiny_model(int layers = 4) {
  models::Model model;
  model.name = "tiny";
  model.layers = layers;
  model.hidden = 32;
  model.heads = model.kv_heads = 4;
  model.head_dim = 8;
  model.ffn_hidden = 128;
  model.vocab = 64;
  model.max_sequence = 16;
  return model;
}

/// The same width the LLaMA way: RMS norm, rotary, SwiGLU, two key-value heads, no biases, untied.
inline models::Model tiny_llama(int layers = 4) {
  models::Model model = tiny_model(layers);
  model.name = "tiny-llama";
  model.kv_heads = 2;
  model.ffn_hidden = 96;
  model.norm = models::Norm::kRmsNorm;
  model.positions = models::Positions::kRotary;
  model.activation = models::Activation::kSwiglu;
  model.linear_bias = model.qkv_bias = model.tied_embeddings = false;
  return model;
}

/// Sequence 16, global batch 8, everything else as a Plan begins; fp32.
inline Job tiny_job(int layers = 4) {
  Job job;
  job.model = tiny_model(layers);
  job.training.sequence = 16;
  job.training.global_batch = 8;
  job.plan.precision = DType::kFp32;
  return job;
}

/// The Program of a job that can be lowered.
inline Program lowered(const Job& job) {
  auto result = lower(job);
  if (const auto* no = std::get_if<Infeasible>(&result)) throw std::runtime_error(no->rule + ": " + no->reason);
  return std::get<Program>(std::move(result));
}

/// What a backend takes of a Program that is sound.
inline VerifiedProgram verified(Program program) { return VerifiedProgram::of(std::move(program)).value_or_throw(); }

/// Calls `visit(role, task, op)` for every op that one rank of every stage runs in a step.
template <class Visit>
void for_each_op(const Program& program, Visit visit) {
  for (const Role& role : program.roles) {
    for (const Task& task : role.tasks) {
      for (const Op& op : program.body_of(task).ops) visit(role, task, op);
    }
  }
}

/// Random jobs that pass `check`: every schedule, split, recomputation and ZeRO stage, both kinds of model. Seeded.
class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : random_(seed) {}

  Job next() {
    for (;;) {
      Job job = candidate();
      if (check(job)) continue;
      split_experts_by_pairs(job);
      return job;
    }
  }
  template <class T>
  T pick(const std::vector<T>& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
  }
  bool coin() { return pick<int>({0, 1}) == 1; }

 private:
  Job candidate() {
    Job job;
    const int layers = pick<int>({3, 4, 6, 8, 12});
    job.model = coin() ? tiny_model(layers) : tiny_llama(layers);
    if (coin()) job.model.parallel_block = true, job.model.shared_norm = coin();
    if (coin()) job.model.tied_embeddings = !job.model.tied_embeddings;
    if (coin()) job.model.experts = models::Experts{.count = 4, .top_k = pick<int>({1, 2}), .every = pick<int>({1, 2})};
    if (job.model.experts && !job.model.linear_bias && coin()) modernise(*job.model.experts);
    if (job.model.positions == models::Positions::kRotary && !job.model.parallel_block && coin()) {
      job.model.latent = models::Latent{pick<int>({0, 12}), 8, 6, 4, 8};
      job.model.head_dim = 10;
      job.model.kv_heads = job.model.heads;
    }
    job.training.sequence = pick<int>({8, 16});
    Plan& plan = job.plan;
    plan.tensor = pick<int>({1, 2, 4});
    plan.sequence_parallel = coin();
    plan.context = pick<int>({1, 1, 2});
    plan.context_method = pick<ContextMethod>({ContextMethod::kRing, ContextMethod::kAllToAll});
    plan.pipeline = pick<int>({1, 2, 3, 4});
    std::vector<Schedule> schedules;
    for (const ScheduleTraits& traits : schedule_table()) schedules.push_back(traits.schedule);
    plan.schedule = pick(schedules);
    plan.virtual_stages = traits_of(plan.schedule).virtual_stages ? pick<int>({2, 3}) : 1;
    if (const int chunks = traits_of(plan.schedule).chunks; chunks > 0) plan.virtual_stages = chunks;
    plan.data = pick<int>({1, 2, 4});
    plan.zero_stage = pick<int>({0, 1, 2, 3});
    plan.shard_group = pick<int>({0, 0, 2});
    plan.overlap.parameter_gather = coin();
    plan.expert = job.model.experts ? pick<int>({1, 2, 4}) : 1;
    plan.expert_tensor = job.model.experts ? pick<int>({0, 1}) : 0;
    plan.micro_batch = pick<int>({1, 2});
    job.training.global_batch = plan.data * plan.micro_batch * pick<int>({1, 2, 4, 6, 8, 9});
    plan.recompute = pick<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull});
    plan.attention = pick<Attention>({Attention::kUnfused, Attention::kFlash});
    plan.precision = pick<DType>({DType::kFp64, DType::kFp32, DType::kBf16, DType::kFp16});
    plan.overlap.gradient_reduction = coin();
    plan.overlap.tensor = coin();
    plan.bucket_bytes = pick<int>({0, 20'000, 1'000'000});
    plan.stack = pick<std::string>({"trivium", "megatron", "megatron-deepspeed", "fsdp", "deepspeed-zero3"});
    if (coin()) job.training.dropout = 0.1;
    plan.scatter_gather = pick<ScatterGather>({ScatterGather::kStack, ScatterGather::kOn, ScatterGather::kOff});
    const bool takes_modules = job.model.positions == models::Positions::kRotary && job.training.dropout == 0;
    if (takes_modules && coin()) job.model.mtp = models::MultiToken{.depth = pick<int>({1, 2})};
    std::mt19937 apart = random_;  // so that all else stays as it was
    if (plan.recompute == Recompute::kFull) plan.recompute_group = std::uniform_int_distribution<int>(1, 3)(apart);
    return job;
  }

  /// Of four tensor ranks, every other time; all else stays as it was drawn.
  void split_experts_by_pairs(Job& job) {
    if (!job.model.experts || job.plan.tensor != 4 || (by_pairs_ = !by_pairs_)) return;
    Job pairs = job;
    pairs.plan.expert_tensor = 2;
    pairs.plan.expert = std::max(2, pairs.plan.expert);
    if (!check(pairs)) job = std::move(pairs);
  }

  /// As DeepSeek-V3's are: no token is dropped, sigmoids, shared experts, dense layers first.
  void modernise(models::Experts& e) {
    e.dropless = true;
    e.imbalance = 4;
    e.scores = models::Scores::kSigmoid;
    e.correction_bias = coin();
    e.scale = 2.5;
    e.shared_hidden = pick<int>({0, 32});
    e.dense_layers = e.every == 1 ? pick<int>({0, 1, 2}) : 0;
    e.dense_hidden = 64;
    if (coin()) e.groups = 2, e.top_groups = 1, e.group_best = pick<int>({1, 2});
  }

  std::mt19937 random_;
  bool by_pairs_ = false;
};

}  // namespace trivium::program
