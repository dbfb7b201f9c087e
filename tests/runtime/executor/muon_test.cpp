// Muon: the same training under every split, and what its iterations make of a matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "program/lower/lower.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

using program::Plan;
using program::Schedule;

program::Job muon_job(int tensor, int pipeline, int data) {
  Plan plan;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  plan.data = data;
  program::Job job = toy_job(plan);
  job.training.optimizer.kind = program::Update::kMuon;
  return job;
}

/// Sum of squares of columns [first, first + columns) of what the first step of rate 1 took off, without decay.
double squares_of_update(const std::vector<double>& before, const std::vector<double>& after, std::size_t all,
                         std::size_t first, std::size_t columns) {
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (i % all >= first && i % all < first + columns) sum += (before[i] - after[i]) * (before[i] - after[i]);
  }
  return sum;
}

// Those replicas come to their steps in different orders, and would wait for each other.
TEST(Muon, RefusesZeroWithReplicasOfDifferentMicroBatches) {
  program::Job job = muon_job(1, 1, 2);
  job.plan.replica_micro_batch = {2, 1};
  job.training.global_batch = 6;
  EXPECT_FALSE(program::check(job));
  job.plan.zero_stage = 1;
  const auto refused = program::check(job);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->rule, "muon-supported");
  EXPECT_NE(refused->reason.find("replica_micro_batch"), std::string::npos) << refused->reason;
}

// The squares of a matrix add up to those of its singular values: near 1 each, times 0.2 sqrt(max(rows, columns)), but
// for those that were too small, some of 32. A matrix of q, k and v is three. (OptimizerLoops.* has the values one by
// one.)
TEST(Muon, UpdatesMatricesBySingularValuesOfOneSize) {
  program::Job job = muon_job(1, 1, 1);
  job.training.optimizer.warmup_steps = 0;
  job.training.optimizer.weight_decay = 0;
  job.training.optimizer.learning_rate = job.training.optimizer.min_learning_rate = 1;
  const Trained start = run(job, 0), end = run(job, 1);
  const auto check = [&](const std::string& name, std::size_t rows, std::size_t all, std::size_t columns) {
    const double size = 0.04 * static_cast<double>(std::max(rows, columns));
    for (std::size_t first = 0; first < all; first += columns) {
      const double squares =
          squares_of_update(start.parameters.at(name), end.parameters.at(name), all, first, columns) / size;
      EXPECT_GT(squares, 0.3 * static_cast<double>(std::min(rows, columns))) << name << " " << first;
      EXPECT_LT(squares, 1.3 * static_cast<double>(std::min(rows, columns))) << name << " " << first;
    }
  };
  check("h.0.attn.c_attn.weight", 32, 96, 32);
  check("h.3.mlp.c_fc.weight", 32, 64, 64);
  check("h.7.mlp.c_proj.weight", 64, 32, 32);
}

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b.front().size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < c[i].size(); ++j) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t(a.front().size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < t.size(); ++j) t[j][i] = a[i][j];
  }
  return t;
}

/// Five iterations X <- a X + (b A + c A A) X with A = X X^T, of x over its norm (Jordan et al. 2024).
Matrix orthogonalised(Matrix x) {
  double squares = 0;
  for (const auto& row : x) {
    for (const double value : row) squares += value * value;
  }
  for (auto& row : x) {
    for (double& value : row) value /= std::sqrt(squares);
  }
  for (int step = 0; step < 5; ++step) {
    const Matrix gram = product(x, transposed(x)), first = product(gram, x), second = product(gram, first);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < x[i].size(); ++j) {
        x[i][j] = 3.4445 * x[i][j] - 4.7750 * first[i][j] + 2.0315 * second[i][j];
      }
    }
  }
  return x;
}

// W - lr (0.2 sqrt(max(rows, columns)) O(M) + decay W) with M = mu M + g (Liu et al. 2025, equation 4): the second step
// of two, whose gradient is what a run without momentum has for one.
TEST(Muon, StepsAsItsFormulaSays) {
  program::Job job = muon_job(1, 1, 1);
  program::Optimizer& o = job.training.optimizer;
  o.warmup_steps = 0;
  o.weight_decay = 0.1;
  o.learning_rate = o.min_learning_rate = 0.02;
  o.muon_momentum = 0.9;
  const Trained one = run(job, 1), two = run(job, 2);
  o.muon_momentum = 0;
  const Trained forgetful = run(job, 2);
  for (const auto& [name, rows, columns] :
       {std::tuple{"h.3.mlp.c_fc.weight", 32U, 64U}, {"h.7.mlp.c_proj.weight", 64U, 32U}}) {
    const auto& before = one.parameters.at(name);
    ASSERT_EQ(before.size(), std::size_t{rows} * columns) << name;
    const auto &first = one.first_moments.at(name), &moments = two.first_moments.at(name);
    const auto& gradient = forgetful.first_moments.at(name);
    Matrix momentum(rows, std::vector<double>(columns));
    for (std::size_t i = 0; i < before.size(); ++i) {
      momentum[i / columns][i % columns] = 0.9 * first[i] + gradient[i];
      ASSERT_NEAR(moments[i], 0.9 * first[i] + gradient[i], 1e-12) << name;
    }
    const Matrix step = orthogonalised(momentum);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double update = 0.2 * std::sqrt(64.0) * step[i / columns][i % columns] + 0.1 * before[i];
      ASSERT_NEAR(two.parameters.at(name)[i], before[i] - 0.02 * update, 1e-10) << name << " " << i;
    }
  }
}

// Embeddings, norms and biases are stepped by AdamW: as they are where all is, in the first step, whose gradients
// agree.
TEST(Muon, LeavesEmbeddingsNormsAndBiasesToAdamW) {
  program::Job adamw = muon_job(1, 1, 1);
  adamw.training.optimizer.kind = program::Update::kAdamW;
  const Trained by_adamw = run(adamw, 1), by_muon = run(muon_job(1, 1, 1), 1);
  int same = 0, others = 0;
  for (const auto& [name, values] : by_adamw.parameters) {
    const bool matrix = name.starts_with("h.") && name.ends_with(".weight") && name.find("ln_") == std::string::npos;
    EXPECT_EQ(by_muon.parameters.at(name) == values, !matrix) << name;
    EXPECT_EQ(by_muon.second_moments.contains(name), !matrix) << name;
    ++(matrix ? others : same);
  }
  EXPECT_EQ(others, 8 * 4);
  EXPECT_GT(same, 8 * 4);
}

// The iterations raise what another order of sums changed by up to 3.4 a step for small singular values.
TEST(Muon, EqualsTheUnsplitRunUnderEverySplit) {
  const Trained unsplit = run(muon_job(1, 1, 1));
  for (const auto& [tensor, pipeline, data] :
       {std::tuple{1, 1, 2}, {1, 1, 4}, {1, 4, 1}, {1, 2, 2}, {2, 1, 1}, {4, 1, 1}, {2, 2, 2}}) {
    expect_equivalent(unsplit, muon_job(tensor, pipeline, data));
  }
  program::Job job = muon_job(2, 1, 2);
  job.plan.sequence_parallel = true;
  job.plan.bucket_bytes = 100'000;
  job.plan.overlap.gradient_reduction = true;
  expect_equivalent(unsplit, job);
  job = muon_job(1, 2, 1);
  job.plan.virtual_stages = 2;
  job.plan.schedule = Schedule::kInterleaved;
  job.plan.recompute = program::Recompute::kFull;
  expect_equivalent(unsplit, job);
  job = muon_job(1, 1, 1);
  job.plan.context = 2;
  job.plan.attention = program::Attention::kFlash;
  expect_equivalent(unsplit, job);
}

// Ranks that share the state: a shard of a bucket has parts of some matrices, of which it makes all iterations.
TEST(Muon, WithSharedStateEqualsTheUnsplitRun) {
  const Trained unsplit = run(muon_job(1, 1, 1));
  for (const int zero_stage : {1, 2, 3}) {
    for (const auto& [tensor, pipeline, data] :
         {std::tuple{1, 1, 2}, {1, 1, 4}, {1, 1, 8}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}}) {
      program::Job job = muon_job(tensor, pipeline, data);
      job.plan.zero_stage = zero_stage;
      expect_equivalent(unsplit, job);
      job.plan.bucket_bytes = 100'000;
      expect_equivalent(unsplit, job);
    }
    program::Job job = muon_job(1, 1, 4);
    job.plan.zero_stage = zero_stage;
    job.plan.shard_group = 2;
    expect_equivalent(unsplit, job);
    job = muon_job(1, 1, 2);
    job.plan.zero_stage = zero_stage;
    job.plan.context = 2;
    job.plan.attention = program::Attention::kFlash;
    expect_equivalent(unsplit, job);
  }
  program::Job job = muon_job(1, 1, 2);  // each bucket in four collectives
  job.plan.zero_stage = 3;
  job.plan.stack = "deepspeed-zero3";
  expect_equivalent(unsplit, job);
}

// Gated MLPs and shared key heads: a matrix each for q, k, v, gate and value, on tensor ranks that share keys, too.
TEST(Muon, OfGatedMlpsAndSharedKeysEqualsTheUnsplitRun) {
  const auto with = [](program::Job job) {
    job.model.activation = models::Activation::kSwiglu;
    job.model.kv_heads = 2;
    job.model.linear_bias = job.model.qkv_bias = false;
    return job;
  };
  const Trained unsplit = run(with(muon_job(1, 1, 1)));
  ASSERT_EQ(unsplit.refused, "");
  expect_equivalent(unsplit, with(muon_job(2, 1, 1)));
  expect_equivalent(unsplit, with(muon_job(4, 1, 2)));
}

TEST(Muon, OfExpertsEqualsTheUnsplitRun) {
  const auto with = [](program::Job job, int expert) {
    job.model.linear_bias = false;
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
    job.plan.expert = expert;
    return job;
  };
  const Trained together = run(with(muon_job(1, 1, 2), 1));
  ASSERT_EQ(together.refused, "");
  expect_equivalent(together, with(muon_job(1, 1, 2), 2), Asked::kClose, "experts on every rank");
  expect_equivalent(together, with(muon_job(2, 1, 2), 2), Asked::kClose, "experts on every rank");
  program::Job job = with(muon_job(2, 1, 2), 2);
  job.plan.expert_tensor = 1;
  expect_equivalent(together, job, Asked::kClose, "experts on every rank");
  for (const int zero_stage : {1, 2, 3}) {
    job = with(muon_job(1, 1, 4), 2);
    job.plan.zero_stage = zero_stage;
    expect_equivalent(together, job, Asked::kClose, "experts on every rank");
  }
}

TEST(Muon, InSixteenBitsKeepsTheBitsOfTheSameReplicas) {
  for (const program::DType precision : {program::DType::kBf16, program::DType::kFp16}) {
    program::Job job = muon_job(1, 1, 2);
    job.plan.precision = precision;
    job.training.loss_scaling.initial = 1024;
    const Trained replicas = run(job);
    ASSERT_EQ(replicas.refused, "");
    job.plan.pipeline = 2;
    expect_equivalent(replicas, job, Asked::kBits, "one stage");
  }
}

TEST(Muon, NamesWhatItCannotHave) {
  const auto rule = [](const program::Job& job) {
    const auto no = program::check(job);
    return no ? no->rule : "";
  };
  program::Job job = muon_job(1, 1, 2);
  EXPECT_EQ(rule(job), "");
  job.plan.moment_dtype = program::Moments::kBf16;
  EXPECT_EQ(rule(job), "muon-supported");
  job = muon_job(1, 1, 2);
  job.plan.offload.optimizer = program::Storage::kHost;
  EXPECT_EQ(rule(job), "muon-supported");
  job = muon_job(1, 1, 2);
  job.training.optimizer.kind = program::Update::kAdamW;
  job.training.optimizer.muon_iterations = 6;
  EXPECT_EQ(rule(job), "muon-needs-optimizer");
}

}  // namespace
}  // namespace trivium::runtime::testing
