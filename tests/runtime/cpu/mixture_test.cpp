// Routing by hand: who goes where, whose room is taken, what comes back.
#include <cmath>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

using Rows = std::vector<std::int32_t>;

/// A routing kind over `tokens` tokens of samples of `sequence`, `experts` experts with room for `capacity` of a
/// sample.
void shape(Call& call, std::int64_t sequence, int experts, std::int64_t capacity) {
  call.op.sequence = static_cast<std::int32_t>(sequence);
  call.op.experts = experts;
  call.routing.normalised = call.op.k > 1;
  call.op.elements = call.op.kind == OpKind::kRoute ? capacity : experts * (call.op.m / sequence) * capacity;
}

// Logits with the given winner by far; (expert, row) of every token.
Rows route(const std::vector<int>& winners, std::int64_t sequence, std::int64_t capacity, double* loss = nullptr) {
  const auto tokens = static_cast<std::int64_t>(winners.size());
  std::vector<double> logits(winners.size() * 2, 0.0), probabilities(logits.size()), sum(1, 0.0);
  for (std::size_t t = 0; t < winners.size(); ++t) logits[2 * t + static_cast<std::size_t>(winners[t])] = 100;
  Rows slots(winners.size() * 2, -7);
  Call call(OpKind::kRoute, tokens, 2, 1);
  shape(call, sequence, 2, capacity);
  call.routing.balance_loss = 0.5;
  call.values.loss_weight = 1.0 / static_cast<double>(tokens);
  call.in(0, logits).out(0, probabilities).out(1, slots);
  if (loss != nullptr) call.out(2, sum);
  call.run<double>();
  if (loss != nullptr) *loss = sum[0];
  return slots;
}

// Two experts of two rows in each of two parts, two columns. The rows of the first of those that split an expert alone
// where k is 1.
TEST(ExpertBias, IsThatOfTheRowsExpert) {
  const auto called = [](OpKind kind, int tensor_rank, std::int64_t once, const std::vector<double>& in,
                         const std::vector<double>& bias, std::vector<double> out) {
    Call call(kind, 4, 2, once);
    call.op.experts = 2, call.op.parts = 2;
    call.arguments.expert_tensor_rank = tensor_rank;
    call.in(0, in).in(1, bias).out(0, out).run<double>();
    return out;
  };
  const std::vector<double> none(16, 0), bias{1, 2, 3, 4}, dy{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const std::vector<double> part{1, 2, 1, 2, 3, 4, 3, 4};
  std::vector<double> want = part;
  want.insert(want.end(), part.begin(), part.end());
  EXPECT_EQ(called(OpKind::kExpertBias, 1, 0, none, bias, none), want);
  EXPECT_EQ(called(OpKind::kExpertBias, 0, 1, none, bias, none), want);
  EXPECT_EQ(called(OpKind::kExpertBias, 1, 1, none, bias, none), none);
  const std::vector<double> sums{1 + 3 + 9 + 11, 2 + 4 + 10 + 12, 5 + 7 + 13 + 15, 6 + 8 + 14 + 16};
  std::vector<double> added = sums;
  for (double& value : added) value += 0.5;
  EXPECT_EQ(called(OpKind::kExpertBiasBackward, 1, 0, dy, {}, std::vector<double>(4, 0.5)), added);
  EXPECT_EQ(called(OpKind::kExpertBiasBackward, 1, 1, dy, {}, std::vector<double>(4, 0.5)),
            std::vector<double>(4, 0.5));
}

// One sample of four tokens, room for two: the third that wants expert 0 finds none. Rows 0, 1 are expert 0's, 2, 3
// expert 1's.
TEST(Route, TakesTokensInOrderUntilAnExpertIsFull) {
  EXPECT_EQ(route({0, 0, 1, 0}, 4, 2), (Rows{0, 0, 0, 1, 1, 2, 0, -1}));
}

// Two samples of two tokens, room for one of each: rows are expert 0 sample 0, expert 0 sample 1, expert 1 sample 0, …
TEST(Route, CountsRoomForEverySampleByItself) { EXPECT_EQ(route({0, 0, 0, 1}, 2, 1), (Rows{0, 0, 0, -1, 0, 1, 1, 3})); }

// E sum f P: all on one expert 2 · (1 · 1) = 2, evenly spread 2 · (1/2 · 1/2 + 1/2 · 1/2) = 1; times the weight .5.
TEST(Route, BalanceLossIsOneWhereChoicesAreEven) {
  double loss = 0;
  route({0, 0, 0, 0}, 4, 4, &loss);
  EXPECT_NEAR(loss, 0.5 * 2, 1e-12);
  route({0, 1, 1, 0}, 4, 4, &loss);
  EXPECT_NEAR(loss, 0.5 * 1, 1e-12);
}

// Room for four of each expert over two context ranks of four tokens: rows 0 to 3 are the first rank's (two of each
// expert), rows 4 to 7 the second's. The first rank's third and fourth token take rows of the second rank for expert 0,
// which is full then; the last token takes one of the first rank for expert 1.
TEST(Route, GivesTokensRowsOfTheirContextRankWhileThereAreSome) {
  const std::vector<double> logits{9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 0, 9, 0, 9, 0, 9};
  std::vector<double> probabilities(16), loss{0.5};
  Rows slots(16);
  Call call(OpKind::kRoute, 8, 2, 1);
  shape(call, 8, 2, 4);
  call.arguments.context_ranks = 2, call.arguments.context_rank = 1;
  call.arguments.context_method = program::ContextMethod::kAllToAll;
  call.routing.balance_loss = 1;
  call.in(0, logits).out(0, probabilities).out(1, slots).out(2, loss).run<double>();
  EXPECT_EQ(slots, (Rows{0, 0, 0, 1, 0, 4, 0, 5, 0, -1, 1, 6, 1, 7, 1, 2}));
  EXPECT_EQ(loss, std::vector<double>{0.5});  // the first of the ranks that share the sample counts it
}

// Room for three of each of two experts over two tensor ranks, which deal out the rows in turn: two and one of each
// expert. The second rank's are the tokens that came second.
TEST(Route, GivesATensorRankItsPartOfTheRows) {
  const std::vector<double> logits{9, 0, 9, 0, 0, 9, 9, 0, 9, 0, 0, 9};
  std::vector<double> probabilities(12);
  Rows slots(12);
  for (const int rank : {0, 1}) {
    Call call(OpKind::kRoute, 6, 2, 1);
    shape(call, 6, 2, 3);
    call.arguments.tensor_ranks = 2, call.arguments.tensor_rank = rank;
    call.in(0, logits).out(0, probabilities).out(1, slots).run<double>();
    EXPECT_EQ(slots, rank == 0 ? (Rows{0, 0, 0, -1, 1, 2, 0, 1, 0, -1, 1, -1})
                               : (Rows{0, -1, 0, 0, 1, -1, 0, -1, 0, -1, 1, 2}));
  }
}

/// The list of GivesTokensRows… as context rank `rank` sees it: slots, and kSpill's table.
std::pair<Rows, Rows> spill(int rank) {
  const Rows routed{0, 0, 0, 1, 0, 4, 0, 5, 0, -1, 1, 6, 1, 7, 1, 2};
  Rows slots(16), table(4 + 4, -7);
  Call call(OpKind::kSpill, 8, 1, 1);
  shape(call, 8, 2, 4);
  call.op.elements = 4;
  call.arguments.context_ranks = 2, call.arguments.context_rank = rank;
  call.arguments.context_method = program::ContextMethod::kAllToAll;
  call.in(0, routed).out(0, slots).out(1, table).run<double>();
  return {slots, table};
}

// Rank 0 sends two rows and gets one. Its own rows are 0 to 3, so what it sends is 4 and 5; what it gets goes to row 2,
// and for rank 1 to rows 0 and 1.
TEST(Spill, SaysWhoSendsWhat) {
  EXPECT_EQ(spill(0),
            (std::pair{Rows{0, 0, 0, 1, 0, 4, 0, 5, 0, -1, 1, -1, 1, -1, 1, -1}, Rows{0, 2, 0, 1, 2, -7, -7, -7}}));
  EXPECT_EQ(spill(1),
            (std::pair{Rows{0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 1, 2, 1, 3, 1, 4}, Rows{1, 0, 2, 0, 0, 1, -7, -7}}));
}

// Two rows came, for rows 2 and 0; the others stay as they are.
TEST(Spill, RowsThatCameArePlacedAndPickedAgain) {
  const Rows table{0, 0, 0, 2, 2, 0};
  const std::vector<double> came{1, 2, 3, 4};
  std::vector<double> rows(6, 9), picked(4);
  Call place(OpKind::kPlaceRows, 0, 2, 0), pick(OpKind::kPickRows, 0, 2, 0);
  for (Call* each : {&place, &pick}) each->op.parts = 2, each->op.dtype = program::DType::kFp64;
  place.in(0, came).in(1, table).out(0, rows).run<double>();
  EXPECT_EQ(rows, (std::vector<double>{3, 4, 9, 9, 1, 2}));
  pick.in(0, rows).in(1, table).out(0, picked).run<double>();
  EXPECT_EQ(picked, came);
}

// The second token's row lies elsewhere: it is sent, comes back, and its gradients likewise. Gates are 1/2.
TEST(Dispatch, RowsThatLieElsewhereAreApart) {
  const std::vector<double> x{5, 7}, probabilities{0.5, 0.5, 0.5, 0.5}, home{30}, returned{20}, dy{1, 2};
  const Rows slots{0, 0, 0, 1};
  std::vector<double> rows(1), spilled(1), dx(2), y(2), d_rows(1), d_gate(2), d_spilled(1);
  Call forth(OpKind::kDispatch, 2, 1, 1), combine(OpKind::kCombine, 2, 1, 1), back(OpKind::kCombineBackward, 2, 1, 1),
      gather(OpKind::kDispatchBackward, 2, 1, 1);
  for (Call* each : {&forth, &combine, &back, &gather}) {
    each->op.sequence = 2, each->op.experts = 2, each->op.elements = 1;
    each->routing.normalised = false;
  }
  forth.in(0, x).in(1, slots).out(0, rows).out(1, spilled).run<double>();
  EXPECT_EQ(std::pair(rows, spilled), std::pair(std::vector<double>{5}, std::vector<double>{7}));
  combine.in(0, returned).in(1, probabilities).in(2, slots).in(3, home).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{10, 15}));
  back.in(0, dy).in(1, returned).in(2, probabilities).in(3, slots).in(4, home);
  back.out(0, d_rows).out(1, d_gate).out(2, d_spilled).run<double>();
  EXPECT_EQ(d_gate, (std::vector<double>{20, 60}));
  EXPECT_EQ(std::pair(d_rows, d_spilled), std::pair(std::vector<double>{0.5}, std::vector<double>{1}));
  gather.in(0, d_rows).in(1, slots).in(2, d_spilled).out(0, dx).run<double>();
  EXPECT_EQ(dx, (std::vector<double>{0.5, 1}));
}

// Four tokens over two ranks of a ring: rank 1 holds the middle ones, which found rows 2 and 0.
TEST(Dispatch, ReadsTheListAtThePlacesOfTheRanksTokens) {
  const std::vector<double> x{5, 7};
  const Rows slots{0, 1, 1, 2, 0, 0, 1, 3};
  std::vector<double> rows(4, -1), dx(2, -1);
  Call call(OpKind::kDispatch, 2, 1, 1), back(OpKind::kDispatchBackward, 2, 1, 1);
  for (Call* each : {&call, &back}) {
    each->op.sequence = 4, each->op.experts = 2, each->op.elements = 4;
    each->arguments.context_ranks = 2, each->arguments.context_rank = 1;
  }
  call.in(0, x).in(1, slots).out(0, rows).run<double>();
  EXPECT_EQ(rows, (std::vector<double>{7, 0, 5, 0}));
  back.in(0, rows).in(1, slots).out(0, dx).run<double>();
  EXPECT_EQ(dx, x);
}

// Second choices come after all first ones: token 0's second choice is expert 1, where token 1's first takes the room.
TEST(Route, FirstChoicesComeBeforeSecondOnes) {
  const std::vector<double> logits{3, 2, 0, 0, 3, 2};  // choices: 0 then 1; 1 then 2
  std::vector<double> probabilities(6);
  Rows slots(8);
  Call call(OpKind::kRoute, 2, 3, 2);
  shape(call, 2, 3, 1);
  call.in(0, logits).out(0, probabilities).out(1, slots).run<double>();
  EXPECT_EQ(slots, (Rows{0, 0, 1, -1, 1, 1, 2, 2}));
}

// Gates of two chosen experts are their shares: .6 and .3 of probability are 2/3 and 1/3. Row 0 is 3, row 1 is 6.
TEST(Combine, WeighsRowsByTheSharesOfTheChosen) {
  const std::vector<double> rows{3, 6, 0}, probabilities{0.6, 0.3, 0.1};
  const Rows slots{0, 0, 1, 1};
  std::vector<double> y(1);
  Call call(OpKind::kCombine, 1, 1, 2);
  shape(call, 1, 3, 1);
  call.in(0, rows).in(1, probabilities).in(2, slots).out(0, y).run<double>();
  EXPECT_NEAR(y[0], 2.0 / 3 * 3 + 1.0 / 3 * 6, 1e-12);
}

TEST(Dispatch, PadsWithZerosAndItsGradientSumsRows) {
  const std::vector<double> x{1, 2};
  const Rows slots{0, 0, 1, -1, 1, 1, 0, -1};  // two tokens, two choices, one has room
  std::vector<double> rows(2, -1), dx(2, -1);
  Call call(OpKind::kDispatch, 2, 1, 2);
  shape(call, 2, 2, 1);
  call.in(0, x).in(1, slots).out(0, rows).run<double>();
  EXPECT_EQ(rows, (std::vector<double>{1, 2}));
  Call back(OpKind::kDispatchBackward, 2, 1, 2);
  shape(back, 2, 2, 1);
  const std::vector<double> dy{5, 7};
  back.in(0, dy).in(1, slots).out(0, dx).run<double>();
  EXPECT_EQ(dx, (std::vector<double>{5, 7}));
}

// Sigmoids .5 and .25 multiply what experts read, 4 and 8: rows of 2 and 2, which come back as they are. Their
// gradients 5 and 7 are those of inputs by the gate, and of gates by the input.
TEST(Dispatch, GatesMayMultiplyWhatExpertsRead) {
  const std::vector<double> x{4, 8}, scores{0.5, 0.1, 0.2, 0.25}, dy{5, 7};
  const Rows slots{0, 0, 1, 1};
  std::vector<double> rows(2), y(2), d_rows(2), dx(2), d_gate(2, 9);
  const auto prepare = [](Call& call) {
    shape(call, 2, 2, 1);
    call.routing.sigmoid = true;
  };
  Call forward(OpKind::kDispatch, 2, 1, 1);
  prepare(forward);
  forward.in(0, x).in(1, slots).in(2, scores).out(0, rows).run<double>();
  EXPECT_EQ(rows, (std::vector<double>{2, 2}));
  Call combine(OpKind::kCombine, 2, 1, 1);
  prepare(combine);
  combine.in(0, rows).in(2, slots).out(0, y).run<double>();
  EXPECT_EQ(y, rows);
  Call apart(OpKind::kCombineBackward, 2, 1, 1);
  prepare(apart);
  apart.in(0, dy).in(1, rows).in(3, slots).out(0, d_rows).run<double>();
  EXPECT_EQ(d_rows, dy);
  Call back(OpKind::kDispatchBackward, 2, 1, 1);
  prepare(back);
  back.in(0, dy).in(1, slots).in(3, x).in(4, scores).out(0, dx).out(1, d_gate).run<double>();
  EXPECT_EQ(dx, (std::vector<double>{2.5, 1.75}));
  EXPECT_EQ(d_gate, (std::vector<double>{20, 56}));
}

// Two parts of one row for each of two experts, k = n = 1, weights 10 and 100.
TEST(ExpertMatmul, EveryExpertMeetsTheRowsOfAllParts) {
  const std::vector<double> x{1, 2, 3, 4}, w{10, 100};  // part 0: expert 0, expert 1; part 1: likewise
  std::vector<double> y(4);
  const auto prepare = [](Call& call) { call.op.experts = 2, call.op.parts = 2; };
  Call forward(OpKind::kExpertMatmul, 2, 1, 1);
  prepare(forward);
  forward.in(0, x).in(1, w).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{10, 200, 30, 400}));
  std::vector<double> dw{1, 1};
  Call wgrad(OpKind::kExpertMatmulWgrad, 2, 1, 1);
  prepare(wgrad);
  wgrad.in(0, x).in(1, y).out(0, dw).run<double>();
  EXPECT_EQ(dw, (std::vector<double>{1 + 10 + 90, 1 + 400 + 1600}));
}

}  // namespace
}  // namespace trivium::runtime::cpu
