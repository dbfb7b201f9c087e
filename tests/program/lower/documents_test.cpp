// What packed documents cost: scores of their own tokens alone.
#include "program/lower/documents.h"

#include <gtest/gtest.h>

#include "program/lower/adapters.h"
#include "tests/program/jobs.h"

namespace trivium::program {
namespace {

Job packed_tiny_job(Documents documents) {
  Job job = tiny_job();
  job.training.documents = std::move(documents);
  job.plan.attention = Attention::kFlash;
  return job;
}

double attention_flops(const Job& job, OpKind kind) {
  double flops = 0;
  for_each_op(lowered(job), [&](const Role&, const Task& task, const Op& op) {
    if (task.micro_batch == 0 && op.kind == kind) flops += op.flops;
  });
  return flops;
}

TEST(PackedKeys, OfEqualDocumentsAreTheirSquares) {
  EXPECT_DOUBLE_EQ(keys_seen({{4}, {}}, 16, 0), 2);             // four squares of 4 x 4 / 2 over 16
  EXPECT_DOUBLE_EQ(keys_seen({{6}, {}}, 16, 0), 44.0 / 16);     // 36 / 2 twice, and the cut one: 16 / 2
  EXPECT_DOUBLE_EQ(keys_seen({{100}, {}}, 16, 0), 8);           // longer than a sample: as if it were not packed
  EXPECT_DOUBLE_EQ(keys_seen({{8}, {}}, 16, 2), 2 - 4.0 / 16);  // models::keys_seen of 8 tokens and a window of 2
}

// Lengths 1 and 2 as often: W(1) = 1/2, W(2) = (1/2 + W(1)) / 2 + 2 / 2 = 3/2, and of the sample of 3
// W(3) = (1/2 + W(2)) / 2 + (2 + W(1)) / 2 = 1 + 5/4 = 9/4.
TEST(PackedKeys, OfDrawnDocumentsAreTheMeanOverAllWaysToDraw) {
  EXPECT_DOUBLE_EQ(keys_seen({{1, 2}, {}}, 3, 0), 9.0 / 4 / 3);
  EXPECT_DOUBLE_EQ(keys_seen({{1, 2}, {5, 5}}, 3, 0), 9.0 / 4 / 3);
  // A quarter of 1, three quarters of 2: W(2) = (1/2 + 1/2) / 4 + 2 * 3 / 4 = 7/4.
  EXPECT_DOUBLE_EQ(keys_seen({{1, 2}, {1, 3}}, 2, 0), 7.0 / 4 / 2);
}

// Many documents to a sample: E[l^2] / E[l] in place of the sequence, (100 + 900) / 2 / 20 = 25.
TEST(PackedKeys, OfLongSamplesFollowTheSquaresOverTheMean) {
  EXPECT_NEAR(2 * keys_seen({{10, 30}, {}}, 100000, 0), 25, 0.01);
}

TEST(PackedFlops, FollowTheKeysWithFlashAndStayWholeWithout) {
  const Job packed = packed_tiny_job({{4}, {}});
  for (const OpKind kind : {OpKind::kAttention, OpKind::kAttentionBackward}) {
    // 16 tokens that see 8 keys on average see 2.
    EXPECT_DOUBLE_EQ(attention_flops(packed, kind), attention_flops(packed_tiny_job({}), kind) / 4);
    Job unfused = packed, whole = packed_tiny_job({});
    unfused.plan.attention = whole.plan.attention = Attention::kUnfused;
    EXPECT_EQ(attention_flops(unfused, kind), attention_flops(whole, kind));
  }
}

TEST(PackedFlops, OfARingAreSharedEquallyByRanksAndSteps) {
  Job packed = packed_tiny_job({{4}, {}}), whole = packed_tiny_job({});
  packed.plan.context = whole.plan.context = 2;
  for (const OpKind kind : {OpKind::kAttentionBlock, OpKind::kAttentionBlockBackward}) {
    EXPECT_DOUBLE_EQ(attention_flops(packed, kind), attention_flops(whole, kind) / 4);
  }
}

// Scores and values of 16 keys: 2 * 16 * (32 + 32) FLOPs a layer, of four layers 8,192; a quarter is left, and what is
// gone counts three times in a step, six with selective recomputation.
TEST(PackedFlops, OfTheModelCountTheSquaresOfDocuments) {
  const models::FlopsPerToken whole = flops_per_token(packed_tiny_job({})),
                              packed = flops_per_token(packed_tiny_job({{4}, {}}));
  EXPECT_DOUBLE_EQ(whole.model - packed.model, 3 * 8192 * 0.75);
  EXPECT_DOUBLE_EQ(whole.hardware_full - packed.hardware_full, 4 * 8192 * 0.75);
  EXPECT_DOUBLE_EQ(whole.hardware_selective - packed.hardware_selective, 6 * 8192 * 0.75);
}

std::string refused(const Job& job) {
  const auto no = check(job);
  return no ? no->rule : "";
}

TEST(PackedDocumentsCheck, RefusesByName) {
  EXPECT_EQ(refused(packed_tiny_job({{4, 8}, {1, 3}})), "");
  EXPECT_EQ(refused(packed_tiny_job({{}, {1}})), "document-weights-need-lengths");
  EXPECT_EQ(refused(packed_tiny_job({{4, 8}, {1}})), "document-weights-count");
  Job job = packed_tiny_job({{4}, {}});
  job.model.window = models::Window{.keys = 8, .chunked = true};
  EXPECT_EQ(refused(job), "documents-supported");
  job.model.window->chunked = false;
  EXPECT_EQ(refused(job), "");
}

}  // namespace
}  // namespace trivium::program
