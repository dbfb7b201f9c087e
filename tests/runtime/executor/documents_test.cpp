// Packed documents: every split equals the unsplit run, and a packed sample is its documents trained one by one.
#include "runtime/executor/documents.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/executor/rank_executor.h"
#include "runtime/inproc/threads.h"
#include "tests/runtime/executor/equivalence.h"

namespace trivium::runtime::testing {
namespace {

/// 24 tokens a sample: chunks of a ring of four ranks begin inside documents, and blocks of query rows hold several.
program::Job packed_job(const program::Plan& plan, bool rotary) {
  program::Job job = toy_job(plan, 8);
  job.model.layers = 4;
  job.model.max_sequence = job.training.sequence = 24;
  job.training.documents = {{2, 5, 11}, {1, 2, 2}};
  if (!rotary) return job;
  job.model.kv_heads = 2;
  job.model.positions = models::Positions::kRotary;
  job.model.norm = models::Norm::kRmsNorm;
  job.model.activation = models::Activation::kSwiglu;
  job.model.linear_bias = job.model.qkv_bias = job.model.tied_embeddings = false;
  return job;
}

/// Keys and values out of latents, values narrower than keys; keys share their rotary part.
program::Job packed_latent_job(const program::Plan& plan) {
  program::Job job = packed_job(plan, true);
  job.model.kv_heads = job.model.heads;
  job.model.latent = models::Latent{20, 12, 6, 4, 8};
  job.model.head_dim = 10;
  job.model.attention_scale = 0.4;
  return job;
}

struct PackedSplit {
  int tensor, context, pipeline, data, zero;
};

const std::vector<PackedSplit> kPackedSplits = {{2, 1, 1, 1, 0}, {4, 1, 1, 1, 0}, {1, 2, 1, 1, 0}, {1, 4, 1, 1, 0},
                                                {1, 1, 2, 1, 0}, {1, 1, 4, 1, 0}, {1, 1, 1, 2, 3}, {1, 1, 1, 4, 1},
                                                {2, 2, 1, 2, 3}, {2, 1, 2, 2, 2}, {1, 2, 2, 2, 1}};

template <class Make>
void expect_equal_in_splits(const Trained& unsplit, Make make, program::Plan plan = {}) {
  for (const PackedSplit& split : kPackedSplits) {
    if (split.context > 1 && make(plan).model.latent) continue;  // there refused
    plan.tensor = split.tensor, plan.context = split.context, plan.pipeline = split.pipeline;
    plan.data = split.data, plan.zero_stage = split.zero;
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && split.tensor == 1) continue;
      plan.sequence_parallel = sequence_parallel;
      for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
        if (split.context == 1 && method != program::ContextMethod::kRing) continue;
        plan.context_method = method;
        plan.attention =
            split.context > 1 || sequence_parallel ? program::Attention::kFlash : program::Attention::kUnfused;
        expect_equivalent(unsplit, make(plan));
      }
    }
  }
}

TEST(PackedDocuments, EqualTheUnsplitRunUnderEverySplit) {
  for (const bool rotary : {false, true}) {
    const auto make = [&](const program::Plan& plan) { return packed_job(plan, rotary); };
    expect_equal_in_splits(run(make({}), 2), make);
  }
}

TEST(PackedDocuments, EqualTheUnsplitRunWithWindowsSinksCapsDropoutAndAdapters) {
  const auto windows = [](const program::Plan& plan) {
    program::Job job = packed_job(plan, true);
    job.model.window = models::Window{.keys = 4, .full_every = 2};
    job.model.attention_sinks = true;
    job.model.attention_soft_cap = 0.5;
    return job;
  };
  expect_equal_in_splits(run(windows({}), 2), windows);
  const auto adapters = [](const program::Plan& plan) {
    program::Job job = packed_job(plan, true);
    job.training.dropout = 0.2;
    job.training.lora.rank = 3;
    return job;
  };
  expect_equal_in_splits(run(adapters({}), 2), adapters);
}

TEST(PackedDocuments, EqualTheUnsplitRunWithLatentsAndExperts) {
  expect_equal_in_splits(run(packed_latent_job({}), 2), packed_latent_job);
  const auto experts = [](const program::Plan& plan) {
    program::Job job = packed_job(plan, true);
    job.model.experts = models::Experts{.count = 4, .top_k = 2, .every = 2};
    job.model.experts->dropless = true;
    job.model.experts->imbalance = 2;
    job.plan.expert = plan.data;
    if (plan.data > 1) job.plan.zero_stage = std::min(plan.zero_stage, 1);
    return job;
  };
  expect_equal_in_splits(run(experts({}), 2), experts);
}

TEST(PackedDocuments, RecomputationMicroBatchesAndInterleavingChangeNothing) {
  for (const int micro_batch : {1, 2}) {
    program::Plan unsplit;
    unsplit.micro_batch = micro_batch;
    const Trained reference = run(packed_job(unsplit, true), 2);
    for (const auto how : {program::Recompute::kSelective, program::Recompute::kFull}) {
      program::Plan plan = unsplit;
      plan.recompute = how;
      plan.tensor = plan.pipeline = plan.virtual_stages = 2;
      plan.schedule = program::Schedule::kInterleaved;
      for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
        plan.attention = attention;
        expect_equivalent(reference, packed_job(plan, true));
      }
    }
  }
}

// What the mask takes away is seen: losses are others.
TEST(PackedDocuments, ChangeTheLoss) {
  program::Job whole = packed_job({}, true);
  whole.training.documents = {};
  EXPECT_GT(std::abs(run(whole, 1).losses.front() - run(packed_job({}, true), 1).losses.front()), 1e-5);
}

/// Tokens of another corpus from a place on.
class PartOfCorpus : public data::Corpus {
 public:
  PartOfCorpus(const data::Corpus& whole, std::int64_t first, std::int64_t tokens)
      : whole_(whole), first_(first), tokens_(tokens) {}
  std::int64_t tokens() const override { return tokens_; }
  std::int64_t vocabulary() const override { return whole_.vocabulary(); }
  std::int32_t token(std::int64_t position) const override { return whole_.token(first_ + position); }
  std::string description() const override { return "a part"; }

 private:
  const data::Corpus& whole_;
  std::int64_t first_, tokens_;
};

struct LossAndGradients {
  double loss = 0;
  std::vector<double> gradients;
};

/// Of one sample, the only one that the corpus has.
LossAndGradients of_one_sample(const program::Job& job, const data::Corpus& corpus) {
  const program::Program program = ordered_program(job);
  const auto communicators = inproc::make_communicators(1);
  RankExecutor executor(program, *communicators.front(), corpus);
  LossAndGradients result;
  executor.before_optimizer([&] {
    const auto* from = reinterpret_cast<const double*>(executor.arenas().base(0, program::Space::kGradient, 0));
    const program::Bucket& last = program.kinds[0].buckets.back();
    result.gradients.assign(from, from + last.begin + last.elements);
  });
  const StepValues values{
      .step = 0, .learning_rate = 0, .loss_weight = 1.0 / static_cast<double>(job.training.sequence)};
  result.loss = executor.step(values, nullptr).loss;
  return result;
}

// Documents as samples of their own length, weighted by their tokens; nothing is packed there, so no mask is involved.
TEST(PackedDocuments, AreTheirDocumentsTrainedOneByOne) {
  constexpr std::int64_t kSequence = 40;
  for (const program::Job& kind : {packed_job({}, false), packed_job({}, true), packed_latent_job({})}) {
    for (const auto attention : {program::Attention::kUnfused, program::Attention::kFlash}) {
      program::Job job = kind;
      job.plan.attention = attention;
      job.training.global_batch = 1;
      job.training.sequence = job.model.max_sequence = kSequence;
      const auto corpus = toy_corpus(kSequence + 1, static_cast<std::int32_t>(job.model.vocab));
      const LossAndGradients packed = of_one_sample(job, *corpus);

      const std::vector<std::int32_t> starts = document_starts(job.training.documents, job.training.seed, 0, kSequence);
      std::vector<double> gradients(packed.gradients.size(), 0.0);
      double loss = 0;
      int documents = 0;
      for (std::int64_t begin = 0; begin < kSequence; ++documents) {
        std::int64_t end = begin;
        while (end < kSequence && starts[static_cast<std::size_t>(end)] == begin) ++end;
        program::Job alone = job;
        alone.training.documents = {};
        alone.training.sequence = end - begin;
        const PartOfCorpus text(*corpus, begin, end - begin + 1);
        const LossAndGradients one = of_one_sample(alone, text);
        const double share = static_cast<double>(end - begin) / static_cast<double>(kSequence);
        loss += share * one.loss;
        ASSERT_EQ(one.gradients.size(), gradients.size());
        for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += share * one.gradients[i];
        begin = end;
      }
      EXPECT_GT(documents, 3);
      EXPECT_NEAR(packed.loss, loss, kTolerance * loss);
      double worst = 0, largest = 0;
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        worst = std::max(worst, std::abs(gradients[i] - packed.gradients[i]));
        largest = std::max(largest, std::abs(gradients[i]));
      }
      EXPECT_LE(worst, kTolerance * largest);
    }
  }
}

TEST(PackedDocuments, AreDrawnByWeightAndDifferFromSampleToSample) {
  const program::Documents documents{{1, 3}, {1, 3}};
  std::int64_t ones = 0, all = 0;
  for (std::int64_t sample = 0; sample < 200; ++sample) {
    const auto starts = document_starts(documents, 7, sample, 100);
    EXPECT_EQ(starts, document_starts(documents, 7, sample, 100));
    for (std::int32_t at = 0; at + 3 < 100; ++at) {
      if (starts[static_cast<std::size_t>(at)] != at) continue;
      ++all;
      ones += starts[static_cast<std::size_t>(at + 1)] == at + 1 ? 1 : 0;
    }
  }
  // About 7,800 documents; a quarter of them is of one token, within five standard deviations of 0.005.
  EXPECT_NEAR(static_cast<double>(ones) / static_cast<double>(all), 0.25, 0.025);
  EXPECT_NE(document_starts(documents, 7, 0, 100), document_starts(documents, 7, 1, 100));
  EXPECT_NE(document_starts(documents, 7, 0, 100), document_starts(documents, 8, 0, 100));
}

}  // namespace
}  // namespace trivium::runtime::testing
