// What routers choose among, what the chosen weigh, and where the rows of experts that drop none lie.
#include <algorithm>
#include <cmath>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

using Rows = std::vector<std::int32_t>;

/// One sample of tokens whose router chose by these rules.
struct Router {
  std::int64_t tokens, experts, top_k;
  program::Routing routing;
  std::vector<double> correction = {};

  void describe(Call& call) const {
    call.op.sequence = static_cast<std::int32_t>(tokens);
    call.op.experts = static_cast<std::int32_t>(experts);
    call.routing = routing;
    call.values.loss_weight = 1.0 / static_cast<double>(tokens);
  }
  /// Scores, and the experts in the order of the choices; what the balance adds to the loss.
  std::tuple<std::vector<double>, Rows, double> route(const std::vector<double>& logits) const {
    std::vector<double> scores(logits.size()), loss(1);
    Rows slots(static_cast<std::size_t>(2 * tokens * top_k));
    Call call(OpKind::kRoute, tokens, experts, top_k);
    describe(call);
    call.op.elements = tokens;
    call.in(0, logits).out(0, scores).out(1, slots).out(2, loss);
    if (!correction.empty()) call.in(1, correction);
    call.run<double>();
    return {scores, slots, loss.front()};
  }
  Rows chosen(const std::vector<double>& logits) const {
    Rows experts_chosen;
    const Rows slots = std::get<1>(route(logits));
    for (std::size_t i = 0; i < slots.size(); i += 2) experts_chosen.push_back(slots[i]);
    return experts_chosen;
  }
};

// Sigmoids of 1, 2 and 3 are .73, .88 and .95; a bias of .3 on the first makes it 1.03, the best. Its score stays.
TEST(Router, ACorrectionBiasChoosesAndDoesNotWeigh) {
  Router router{1, 3, 1, {.sigmoid = true, .normalised = false}, {0.3, 0, 0}};
  EXPECT_EQ(router.chosen({1, 2, 3}), Rows{0});
  EXPECT_NEAR(std::get<0>(router.route({1, 2, 3})).front(), 1 / (1 + std::exp(-1)), 1e-15);
}

// Of the groups (9, 0), (6, 5) and (1, 1) the first has the best expert, the second the best two.
TEST(Router, GroupsAreWorthTheirBest) {
  const std::vector<double> logits{9, 0, 6, 5, 1, 1};
  Router router{1, 6, 2, {.sigmoid = true, .groups = 3, .top_groups = 1, .group_best = 1}};
  EXPECT_EQ(router.chosen(logits), (Rows{0, 1}));
  router.routing.group_best = 2;
  EXPECT_EQ(router.chosen(logits), (Rows{2, 3}));
  router.routing.top_groups = 2;
  EXPECT_EQ(router.chosen(logits), (Rows{0, 2}));
}

// Through scores, shares among the chosen, the factor and the balance loss, by central differences.
TEST(Router, GradientsAreThoseOfWeightsAndBalance) {
  for (const bool sigmoid : {false, true}) {
    for (const bool normalised : {false, true}) {
      const Router router{4, 5, 2, {.sigmoid = sigmoid, .normalised = normalised, .scale = 2.5, .balance_loss = 0.5}};
      std::vector<double> logits = numbers(20, 3), d_gate = numbers(8, 4), d_logits(20);
      const auto [scores, slots, balance] = router.route(logits);
      Call back(OpKind::kRouteBackward, 4, 5, 2);
      router.describe(back);
      back.in(0, scores).in(1, slots).in(2, d_gate).out(0, d_logits).run<double>();
      const Rows kept = slots;
      expect_gradient(logits, d_logits, [&] {
        const auto [s, again, loss] = router.route(logits);
        double sum = loss;
        for (std::size_t t = 0; t < 4; ++t) {
          const auto of = [&](std::size_t c) { return s[t * 5 + static_cast<std::size_t>(kept[4 * t + 2 * c])]; };
          const double total = normalised ? of(0) + of(1) : 1;
          for (std::size_t c = 0; c < 2; ++c) sum += d_gate[t * 2 + c] * 2.5 * of(c) / total;
        }
        return sum;
      });
    }
  }
}

/// Rows and counts of six tokens' choices among four experts, of which two ranks have two each.
std::pair<Rows, Rows> counted(const Rows& experts, int tensor_rank, int tensor_ranks, std::int64_t room) {
  Rows slots, counts(static_cast<std::size_t>(4 * tensor_ranks), -7);
  for (const std::int32_t expert : experts) slots.insert(slots.end(), {expert, -9});
  const auto tokens = static_cast<std::int64_t>(experts.size());
  Call call(OpKind::kCountRows, tokens, 2, 1);
  call.op.sequence = static_cast<std::int32_t>(tokens);
  call.op.experts = 4, call.op.parts = tensor_ranks, call.op.elements = 2 * room;
  call.arguments.tensor_rank = tensor_rank, call.arguments.tensor_ranks = tensor_ranks;
  call.in(0, slots).out(0, slots).out(1, counts).run<double>();
  Rows rows;
  for (std::size_t i = 1; i < slots.size(); i += 2) rows.push_back(slots[i]);
  return {rows, counts};
}

// Four rows for each rank: those to the first lie in 0 to 3, expert 0's before expert 1's; to the second in 4 to 7.
TEST(CountRows, RowsToARankLieByExpert) {
  EXPECT_EQ(counted({1, 3, 0, 1, 2, 0}, 0, 1, 4), (std::pair{Rows{2, 5, 0, 3, 4, 1}, Rows{2, 2, 1, 1}}));
}

// The four rows to the first rank (tokens 0, 2, 3, 5) are dealt out in turn: tokens 0 and 3 go by the first tensor
// rank, both to expert 1, tokens 2 and 5 by the second, both to expert 0. Counts: first rank's experts by tensor rank,
// then the second's.
TEST(CountRows, TensorRanksSendAsManyEach) {
  const Rows counts{0, 2, 2, 0, 0, 1, 1, 0};
  EXPECT_EQ(counted({1, 3, 0, 1, 2, 0}, 0, 2, 2), (std::pair{Rows{0, 2, -1, 1, -1, -1}, counts}));
  EXPECT_EQ(counted({1, 3, 0, 1, 2, 0}, 1, 2, 2), (std::pair{Rows{-1, -1, 0, -1, 2, 1}, counts}));
}

TEST(CountRows, MoreThanThereIsRoomForIsNamed) { EXPECT_THROW(counted({0, 1, 0, 1, 0, 2}, 0, 1, 4), std::exception); }

// Two parts with room for three rows and two experts of weights 10 and 100: the first has one row of expert 0 and two
// of expert 1, the second one of expert 0, and nothing else.
TEST(ExpertMatmul, MultipliesTheRowsThatWereCounted) {
  const std::vector<double> x{1, 2, 3, 4, 9, 9}, w{10, 100};
  const Rows counts{1, 2, 1, 0};
  std::vector<double> y(6, -1), dx(6, -1), dw(2);
  const auto prepare = [&](Call& call) { call.op.experts = 2, call.op.parts = 2, call.in(2, counts); };
  Call forward(OpKind::kExpertMatmul, 3, 1, 1), dgrad(OpKind::kExpertMatmulDgrad, 3, 1, 1),
      wgrad(OpKind::kExpertMatmulWgrad, 3, 1, 1);
  for (Call* call : {&forward, &dgrad, &wgrad}) prepare(*call);
  forward.in(0, x).in(1, w).out(0, y).run<double>();
  EXPECT_EQ(y, (std::vector<double>{10, 200, 300, 40, 0, 0}));
  dgrad.in(0, x).in(1, w).out(0, dx).run<double>();
  EXPECT_EQ(dx, y);
  wgrad.in(0, x).in(1, x).out(0, dw).run<double>();
  EXPECT_EQ(dw, (std::vector<double>{1 + 16, 4 + 9}));
}

}  // namespace
}  // namespace trivium::runtime::cpu
