// Causal attention against its definition and central differences, with grouped queries, unfused and flash.

#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

struct Shape {
  int samples, sequence, heads, kv_heads, dim;
  bool flash;
  int window = 0;
  bool chunked = false;
  std::int64_t tokens() const { return static_cast<std::int64_t>(samples) * sequence; }
  std::int64_t width() const { return static_cast<std::int64_t>(heads + 2 * kv_heads) * dim; }
  std::int64_t out() const { return static_cast<std::int64_t>(heads) * dim; }
  std::int64_t saved() const { return flash ? tokens() * heads : tokens() * heads * sequence; }
};

struct Attended {
  std::vector<double> y, saved;
};

void describe(Call& call, const Shape& s) {
  call.op.heads = s.heads;
  call.op.kv_heads = s.kv_heads;
  call.op.head_dim = s.dim;
  call.op.sequence = s.sequence;
  call.op.flash = s.flash;
  call.op.window = s.window;
  call.op.chunked = s.chunked;
}

Attended forward(const Shape& s, const std::vector<double>& qkv) {
  Attended result{std::vector<double>(static_cast<std::size_t>(s.tokens() * s.out()), 99),
                  std::vector<double>(static_cast<std::size_t>(s.saved()), 99)};
  Call call(OpKind::kAttention, s.tokens(), s.out());
  describe(call, s);
  call.in(0, qkv).out(0, result.y).out(1, result.saved).run<double>();
  return result;
}

std::vector<double> backward(const Shape& s, const std::vector<double>& qkv, const std::vector<double>& dy) {
  const Attended forwarded = forward(s, qkv);
  std::vector<double> dqkv(qkv.size(), 99);
  Call call(OpKind::kAttentionBackward, s.tokens(), s.out());
  describe(call, s);
  call.in(0, qkv).in(1, forwarded.y).in(2, forwarded.saved).in(3, dy).out(0, dqkv).run<double>();
  return dqkv;
}

// A sink's softmax is that of a key whose score it is and whose value is nothing.
TEST(AttentionSinks, TakeTheirPartOfTheSoftmaxAndHaveAGradient) {
  for (const auto& [flash, window] : {std::pair{false, 0}, {true, 0}, {true, 3}}) {
    const Shape s{2, 7, 4, 2, 3, flash, window};
    std::vector<double> qkv = numbers(s.tokens() * s.width(), 1), sinks{0.5, -1, 2, 0};
    const std::vector<double> dy = numbers(s.tokens() * s.out(), 2);
    const auto attended = [&] {
      Attended result{zeros(s.tokens() * s.out()), zeros(s.saved())};
      Call call(OpKind::kAttention, s.tokens(), s.out());
      describe(call, s);
      call.in(0, qkv).in(1, sinks).out(0, result.y).out(1, result.saved).run<double>();
      return result;
    };
    // The first query sees itself: y = v / (1 + exp(sink - score)).
    double score = 0;
    for (std::size_t d = 0; d < 3; ++d) score += qkv[d] * qkv[12 + d] / std::sqrt(3.0);
    const Attended forwarded = attended();
    EXPECT_NEAR(forwarded.y[0], qkv[18] / (1 + std::exp(0.5 - score)), kRounding);
    std::vector<double> dqkv(qkv.size(), 99), dsinks(4, 0.25);
    Call call(OpKind::kAttentionBackward, s.tokens(), s.out());
    describe(call, s);
    call.in(0, qkv).in(1, forwarded.y).in(2, forwarded.saved).in(3, dy).in(5, sinks);
    call.out(0, dqkv).out(1, dsinks).run<double>();
    const auto objective = [&] { return dot(dy, attended().y); };
    expect_gradient(qkv, dqkv, objective);
    expect_gradient(sinks, dsinks, objective, 0.25);
  }
}

// One query that sees two keys: scores 3 and -1 become 2 tanh(3 / 2) and 2 tanh(-1 / 2).
TEST(AttentionSoftCap, BendsScoresAndTheirGradients) {
  for (const auto& [flash, window] : {std::pair{false, 0}, {true, 0}, {true, 3}}) {
    const auto attended = [&flash = flash, &window = window](const Shape& s, const std::vector<double>& qkv) {
      Attended result{zeros(s.tokens() * s.out()), zeros(s.saved())};
      Call call(OpKind::kAttention, s.tokens(), s.out());
      describe(call, s);
      call.op.soft_cap = 2;
      call.in(0, qkv).out(0, result.y).out(1, result.saved).run<double>();
      return result;
    };
    const double a = std::exp(2 * std::tanh(1.5)), b = std::exp(2 * std::tanh(-0.5));
    const Shape two{1, 2, 1, 1, 1, flash, window};
    EXPECT_NEAR(attended(two, {9, 3, 5, 1, -1, 7}).y[1], (5 * a + 7 * b) / (a + b), kRounding);
    const Shape s{2, 7, 4, 2, 3, flash, window};
    std::vector<double> qkv = numbers(s.tokens() * s.width(), 1);
    for (double& value : qkv) value *= 2;
    const std::vector<double> dy = numbers(s.tokens() * s.out(), 2);
    const Attended forwarded = attended(s, qkv);
    std::vector<double> dqkv(qkv.size(), 99);
    Call call(OpKind::kAttentionBackward, s.tokens(), s.out());
    describe(call, s);
    call.op.soft_cap = 2;
    call.in(0, qkv).in(1, forwarded.y).in(2, forwarded.saved).in(3, dy).out(0, dqkv).run<double>();
    expect_gradient(qkv, dqkv, [&] { return dot(dy, attended(s, qkv).y); });
  }
}

// Slopes by hand, from the authors' rule: 8 heads 2^-1 to 2^-8; 12 heads those, then 2^-0.5, 2^-1.5, 2^-2.5, 2^-3.5. Of
// two keys with scores 3 and 1 the query's own keeps its score, the other loses a slope.
TEST(AttentionAlibi, LowersScoresByTheDistanceOfTheKey) {
  for (const auto& [flash, window] : {std::pair{false, 0}, {true, 0}, {true, 3}}) {
    const auto attended = [&flash = flash, &window = window](const Shape& s, const std::vector<double>& qkv, int first,
                                                             int heads) {
      Attended result{zeros(s.tokens() * s.out()), zeros(s.saved())};
      Call call(OpKind::kAttention, s.tokens(), s.out());
      describe(call, s);
      call.op.alibi_heads = heads;
      call.arguments.dropout.first_head = first;
      call.in(0, qkv).out(0, result.y).out(1, result.saved).run<double>();
      return result;
    };
    const Shape two{1, 2, 1, 1, 1, flash, window};
    for (const auto& [head, heads, slope] : {std::tuple{0, 8, 0.5},
                                             {7, 8, std::exp2(-8)},
                                             {3, 12, std::exp2(-4)},
                                             {8, 12, std::exp2(-0.5)},
                                             {11, 12, std::exp2(-3.5)}}) {
      const double far = std::exp(1 * 3 - slope), near = std::exp(1 * -1);
      EXPECT_NEAR(attended(two, {9, 3, 5, 1, -1, 7}, head, heads).y[1], (5 * far + 7 * near) / (far + near), kRounding);
    }
    const Shape s{2, 7, 4, 2, 3, flash, window};
    std::vector<double> qkv = numbers(s.tokens() * s.width(), 1);
    const std::vector<double> dy = numbers(s.tokens() * s.out(), 2);
    const Attended forwarded = attended(s, qkv, 4, 8);
    std::vector<double> dqkv(qkv.size(), 99);
    Call call(OpKind::kAttentionBackward, s.tokens(), s.out());
    describe(call, s);
    call.op.alibi_heads = 8;
    call.arguments.dropout.first_head = 4;
    call.in(0, qkv).in(1, forwarded.y).in(2, forwarded.saved).in(3, dy).out(0, dqkv).run<double>();
    expect_gradient(qkv, dqkv, [&] { return dot(dy, attended(s, qkv, 4, 8).y); });
  }
}

/// The definition, one query at a time.
Attended definition(const Shape& s, const std::vector<double>& qkv) {
  Attended result{zeros(s.tokens() * s.out()), zeros(s.saved())};
  const auto component = [&](int sample, int row, int column) {
    return qkv[static_cast<std::size_t>((sample * s.sequence + row) * s.width() + column)];
  };
  for (int b = 0; b < s.samples; ++b) {
    for (int h = 0; h < s.heads; ++h) {
      const int kv = h / (s.heads / s.kv_heads);
      for (int i = 0; i < s.sequence; ++i) {
        std::vector<double> p;
        double sum = 0;
        const int sliding = s.window > 0 ? std::max(0, i - s.window + 1) : 0;
        const int first = s.chunked ? i - i % s.window : sliding;
        for (int j = first; j <= i; ++j) {
          double score = 0;
          for (int d = 0; d < s.dim; ++d) {
            score += component(b, i, h * s.dim + d) * component(b, j, (s.heads + kv) * s.dim + d);
          }
          p.push_back(std::exp(score / std::sqrt(s.dim)));
          sum += p.back();
        }
        const auto token = static_cast<std::size_t>(b * s.sequence + i);
        for (int j = first; j <= i; ++j) {
          const double share = p[static_cast<std::size_t>(j - first)] / sum;
          for (int d = 0; d < s.dim; ++d) {
            result.y[token * static_cast<std::size_t>(s.out()) + static_cast<std::size_t>(h * s.dim + d)] +=
                share * component(b, j, (s.heads + s.kv_heads + kv) * s.dim + d);
          }
          if (!s.flash) {
            result.saved[static_cast<std::size_t>(((b * s.heads + h) * s.sequence + i) * s.sequence + j)] = share;
          }
        }
        if (s.flash)
          result.saved[token * static_cast<std::size_t>(s.heads) + static_cast<std::size_t>(h)] = std::log(sum);
      }
    }
  }
  return result;
}

class Attention : public testing::TestWithParam<Shape> {};

TEST_P(Attention, IsItsDefinition) {
  const Shape s = GetParam();
  const std::vector<double> qkv = numbers(s.tokens() * s.width(), 1);
  const Attended got = forward(s, qkv), want = definition(s, qkv);
  expect_near(got.y, want.y, kRounding);
  expect_near(got.saved, want.saved, kRounding);  // with the zeros above the diagonal
}

class ShortAttention : public Attention {};

TEST_P(ShortAttention, BackwardIsTheDerivative) {
  const Shape s = GetParam();
  std::vector<double> qkv = numbers(s.tokens() * s.width(), 1);
  const std::vector<double> dy = numbers(s.tokens() * s.out(), 2);
  expect_gradient(qkv, backward(s, qkv, dy), [&] { return dot(dy, forward(s, qkv).y); });
}

const auto kShort =
    testing::Values(Shape{2, 7, 3, 3, 4, false}, Shape{2, 7, 3, 3, 4, true}, Shape{2, 5, 4, 2, 3, false},
                    Shape{2, 5, 4, 2, 3, true}, Shape{1, 5, 4, 1, 3, false}, Shape{1, 5, 4, 1, 3, true},
                    Shape{2, 7, 2, 1, 3, false, 3}, Shape{2, 7, 2, 1, 3, true, 3}, Shape{1, 5, 2, 2, 3, true, 1},
                    Shape{2, 7, 2, 1, 3, false, 3, true}, Shape{2, 7, 2, 1, 3, true, 3, true});
INSTANTIATE_TEST_SUITE_P(Short, Attention, kShort);
INSTANTIATE_TEST_SUITE_P(Short, ShortAttention, kShort);
INSTANTIATE_TEST_SUITE_P(Long, Attention,
                         testing::Values(Shape{1, 150, 2, 1, 4, false}, Shape{1, 150, 2, 1, 4, true},
                                         Shape{1, 150, 2, 1, 4, false, 40}, Shape{1, 150, 2, 1, 4, true, 40},
                                         Shape{1, 150, 2, 1, 4, true, 70}, Shape{1, 150, 2, 1, 4, false, 70, true},
                                         Shape{1, 150, 2, 1, 4, true, 40, true}));

// 150 tokens are two whole blocks of 64 query rows and a part of one. A directional derivative takes two evaluations:
// (f(x + h d) - f(x - h d)) / 2h = gradient . d, with |f| ~ 10 good to 1e-9 absolute as in expect_gradient; the
// gradient's own size is about 10 along a random direction.
TEST(AttentionBlocks, MeetInTheBackwardOfALongSequence) {
  for (const auto& [flash, window, chunked] : {std::tuple{false, 0, false},
                                               {true, 0, false},
                                               {false, 70, false},
                                               {true, 70, false},
                                               {false, 70, true},
                                               {true, 40, true}}) {
    const Shape s{1, 150, 4, 2, 8, flash, window, chunked};
    const std::vector<double> qkv = numbers(s.tokens() * s.width(), 1), dy = numbers(s.tokens() * s.out(), 2);
    const std::vector<double> gradient = backward(s, qkv, dy);
    for (unsigned seed = 10; seed < 14; ++seed) {
      const std::vector<double> direction = numbers(s.tokens() * s.width(), seed);
      const auto moved = [&](double step) {
        std::vector<double> x = qkv;
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += step * direction[i];
        return dot(dy, forward(s, x).y);
      };
      constexpr double kStep = 1e-5;
      EXPECT_NEAR(dot(gradient, direction), (moved(kStep) - moved(-kStep)) / (2 * kStep), 1e-7);
    }
  }
}

TEST(AttentionFlash, AgreesWithUnfused) {
  const Shape unfused{2, 150, 4, 2, 8, false}, flash{2, 150, 4, 2, 8, true};
  const std::vector<double> qkv = numbers(unfused.tokens() * unfused.width(), 1);
  const std::vector<double> dy = numbers(unfused.tokens() * unfused.out(), 2);
  expect_near(forward(flash, qkv).y, forward(unfused, qkv).y, kRounding);
  expect_near(backward(flash, qkv, dy), backward(unfused, qkv, dy), kRounding);
}

// The first token sees itself alone, whatever the scores: its output is its own value, also where exp would overflow.
TEST(AttentionSoftmax, SurvivesScoresBeyondTheRangeOfExp) {
  const Shape s{1, 2, 1, 1, 1, true};
  const Attended got = forward(s, {2000, 1000, 7, 2000, -1000, 9});
  EXPECT_EQ(got.y, (std::vector<double>{7, 7}));  // key 0 beats key 1 by 4e6
}

}  // namespace
}  // namespace trivium::runtime::cpu
