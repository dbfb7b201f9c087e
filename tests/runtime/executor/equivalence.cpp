#include "tests/runtime/executor/equivalence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace trivium::runtime::testing {
namespace {

struct Row {
  std::string test, combination, against;
  int ranks = 0;
  double difference = 0;
  bool bits = false;
  Asked asked = Asked::kClose;
};

std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

// What `summary` leaves out because it changes no time worth a name, or belongs to the model.
std::string combination_of(const program::Job& job) {
  const program::Plan& plan = job.plan;
  std::string text = program::summary(plan);
  if (plan.pipeline == 1 && plan.schedule == program::Schedule::kZeroBubble) text += " zero_bubble";
  if (plan.attention == program::Attention::kFlash) text += " flash";
  if (plan.overlap.gradient_reduction) text += " overlap=gradients";
  if (plan.overlap.parameter_gather) text += " overlap=gathers";
  if (plan.overlap.tensor) text += " overlap=tensor";
  if (plan.overlap.expert) text += " overlap=expert";
  if (plan.bucket_bytes > 0) text += fmt::format(" buckets={}", plan.bucket_bytes);
  if (job.model.experts) text += fmt::format(" experts={}/{}", job.model.experts->top_k, job.model.experts->count);
  if (job.model.experts && job.model.experts->dropless) text += " dropless";
  if (job.model.experts && job.model.experts->shared_hidden > 0) text += " shared";
  if (job.model.mtp) text += fmt::format(" mtp={}", job.model.mtp->depth);
  if (job.model.latent) text += fmt::format(" latents={}", job.model.latent->query_rank);
  if (job.model.positions == models::Positions::kRotary) text += " rotary";
  if (job.model.head_norms) text += " head-norms";
  if (job.model.branch_norms) text += " branch-norms";
  if (job.model.attention_soft_cap > 0) text += " soft-caps";
  if (job.model.attention_sinks) text += " sinks";
  if (job.model.window && job.model.window->chunked) text += " chunked";
  if (job.model.plain_head_norms) text += " plain-head-norms";
  if (job.model.temperature) text += " temperature";
  if (job.model.experts && job.model.experts->scales_input) text += " gates-on-input";
  if (job.model.logit_scale != 1) text += " scaled-logits";
  if (job.model.window) text += fmt::format(" window={}", job.model.window->keys);
  if (job.model.kv_heads < job.model.heads) text += fmt::format(" kv={}", job.model.kv_heads);
  if (job.model.parallel_block) text += " parallel-block";
  if (!job.model.tied_embeddings) text += " untied";
  if (job.training.dropout > 0) text += fmt::format(" dropout={}", job.training.dropout);
  if (job.training.documents.used()) text += " packed";
  if (plan.stack != "trivium") text += " stack=" + plan.stack;
  if (job.training.sequence > 24) text += fmt::format(" {} tokens", job.training.sequence);
  return text;
}

// After the last test: one line a comparison, then the sum of them all.
class Table : public ::testing::Environment {
 public:
  void TearDown() override {
    if (rows().empty()) return;
    fmt::print("\n{:<112} {:<24} {:>5}  {:>10}  {}\n", "combination", "against", "ranks", "difference", "bit by bit");
    std::string test;
    double worst = 0;
    std::set<int> ranks;
    std::size_t bits = 0;
    for (const Row& row : rows()) {
      if (row.test != test) fmt::print("{}\n", test = row.test);
      const char* verdict = row.bits ? (row.asked == Asked::kBits ? "yes (asked)" : "yes")
                                     : (row.asked == Asked::kBits ? "NO, ASKED" : "no");
      fmt::print("  {:<110} {:<24} {:>5}  {:>10.1e}  {}\n", row.combination, row.against, row.ranks, row.difference,
                 verdict);
      worst = std::max(worst, row.difference);
      ranks.insert(row.ranks);
      bits += row.bits ? 1 : 0;
    }
    fmt::print(
        "\nequivalence: {} combinations on {} to {} ranks, largest difference {:.1e} (asked: {:.0e}), {} bit by bit\n",
        rows().size(), *ranks.begin(), *ranks.rbegin(), worst, kTolerance, bits);
  }
};

[[maybe_unused]] const ::testing::Environment* const kTable = ::testing::AddGlobalTestEnvironment(new Table);

}  // namespace

void expect_equivalent(const Trained& reference, const program::Job& job, Asked asked, std::string_view against,
                       const std::string& cluster) {
  const std::string combination = combination_of(job);
  SCOPED_TRACE(combination);
  const Trained split = run(job, static_cast<int>(reference.losses.size()), {}, cluster);
  ASSERT_EQ(split.refused, "");
  EXPECT_TRUE(split.replicas_agree);
  std::string worst_in, differs_in;
  const double worst = difference(reference, split, worst_in);
  EXPECT_LE(worst, kTolerance) << "worst in " << worst_in;
  const bool bits = bitwise_equal(reference, split, differs_in);
  EXPECT_TRUE(bits || asked != Asked::kBits) << "first difference in " << differs_in;
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  rows().push_back({fmt::format("{}.{}", test->test_suite_name(), test->name()), combination, std::string(against),
                    job.plan.ranks(), worst, bits, asked});
}

}  // namespace trivium::runtime::testing
