// Token and position look-ups, split over a tensor group, and plain addition.

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

using Ids = std::vector<std::int32_t>;

// A table of 4 rows over 2 ranks: rank 0 holds rows 0 and 1, rank 1 rows 2 and 3.
TEST(Embedding, GivesZerosForTheRowsOfOtherRanks) {
  const Ids ids{3, 0, 2};
  const std::vector<double> rank_1_table{20, 21, 30, 31};
  std::vector<double> y(6, 99);
  Call call(OpKind::kEmbedding, 3, 2, 2);
  call.arguments.tensor_rank = 1;
  call.in(0, ids).in(1, rank_1_table).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{30, 31, 0, 0, 20, 21}));
}

// As past the end of a sample, where multi-token prediction looks for later tokens.
TEST(Embedding, OfNoTokenIsZeroAndLearnsNothing) {
  const Ids ids{-1, 1};
  const std::vector<double> table{1, 2}, dy{10, 100};
  std::vector<double> y(2, 99), dtable{0, 0};
  Call(OpKind::kEmbedding, 2, 1, 2).in(0, ids).in(1, table).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{0, 2}));
  Call(OpKind::kEmbeddingBackward, 2, 1, 2).in(0, ids).in(1, dy).out(0, dtable).run<double>();
  EXPECT_EQ(dtable, (std::vector<double>{0, 100}));
}

TEST(Embedding, BackwardAddsUpTheTokensThatUsedARow) {
  const Ids ids{3, 0, 2, 3};
  const std::vector<double> dy{1, 2, 10, 20, 100, 200, 1000, 2000};
  std::vector<double> dtable{0.5, 0.5, 0.5, 0.5};
  Call call(OpKind::kEmbeddingBackward, 4, 2, 2);
  call.arguments.tensor_rank = 1;
  call.in(0, ids).in(1, dy).out(0, dtable).run<double>();
  EXPECT_EQ(dtable, (std::vector<double>{100.5, 200.5, 1001.5, 2002.5}));
}

TEST(Embedding, MayBeScaled) {
  const Ids ids{1, 0};
  const std::vector<double> table{1, 2}, dy{10, 100};
  std::vector<double> y(2), dtable{0.5, 0.5};
  Call forward(OpKind::kEmbedding, 2, 1, 2), backward(OpKind::kEmbeddingBackward, 2, 1, 2);
  forward.op.score_scale = backward.op.score_scale = 3;
  forward.in(0, ids).in(1, table).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{6, 3}));
  backward.in(0, ids).in(1, dy).out(0, dtable).run<double>();
  EXPECT_EQ(dtable, (std::vector<double>{300.5, 30.5}));
}

// Two samples of three tokens, in place.
TEST(Position, CountsFromTheStartOfEverySample) {
  const std::vector<double> table{1, 2, 3};
  std::vector<double> x{10, 20, 30, 40, 50, 60};
  Call(OpKind::kPosition, 6, 1, 3).in(0, x).in(1, table).out(0, x).run<double>();
  EXPECT_EQ(x, (std::vector<double>{11, 22, 33, 41, 52, 63}));
}

// Sequence 4, three tokens a rank: rank 1 starts at row 3, which is position 3; positions 0 and 1 of the next sample
// follow.
TEST(Position, StartsWhereThisRanksPartOfTheTokensStarts) {
  const std::vector<double> table{1, 2, 3, 4}, x{0, 0, 0}, dy{1, 10, 100};
  std::vector<double> y(3), dtable(4, 0.5);
  Call forward(OpKind::kPosition, 3, 1, 4), backward(OpKind::kPositionBackward, 3, 1, 4);
  for (Call* call : {&forward, &backward}) {
    call->op.token_sharded = true;
    call->arguments.tensor_rank = 1;
  }
  forward.in(0, x).in(1, table).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{4, 1, 2}));
  backward.in(0, dy).out(0, dtable).run<double>();
  EXPECT_EQ(dtable, (std::vector<double>{10.5, 100.5, 0.5, 1.5}));
}

TEST(Position, IgnoresTheTensorRankWhereTokensAreNotShared) {
  const std::vector<double> table{1, 2}, x{0, 0, 0, 0};
  std::vector<double> y(4);
  Call call(OpKind::kPosition, 4, 1, 2);
  call.arguments.tensor_rank = 1;
  call.in(0, x).in(1, table).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{1, 2, 1, 2}));
}

TEST(Add, AddsElementByElement) {
  const std::vector<float> x{1, 2, 3};
  std::vector<float> y{10, 20, 30};
  Call call(OpKind::kAdd, 0, 0);
  call.op.elements = 2;
  call.in(0, x).out(0, y).run<float>();
  EXPECT_EQ(y, (std::vector<float>{11, 22, 30}));
}

}  // namespace
}  // namespace trivium::runtime::cpu
