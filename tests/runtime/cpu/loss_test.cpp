// Vocabulary-parallel cross-entropy: its definition, its gradient, padding columns, and splits that agree.

#include <limits>

#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr std::int64_t kTokens = 5, kVocabulary = 11;
constexpr double kWeight = 0.125;
using Labels = std::vector<std::int32_t>;

/// Loss and gradient as a tensor group of `ranks` computes them, with `padded` columns over all.
class Group {
 public:
  Group(int ranks, std::int64_t padded, double soft_cap = 0, double scale = 0)
      : ranks_(ranks), columns_(padded / ranks), padded_(padded), soft_cap_(soft_cap), scale_(scale) {}

  /// `logits` (T, vocabulary); padding columns are filled with a huge number, which must not matter.
  double run(const std::vector<double>& logits, const Labels& labels) {
    parts_.clear();
    std::vector<double> highest(kTokens, std::numeric_limits<double>::lowest()), sums(2 * kTokens);
    for (int rank = 0; rank < ranks_; ++rank) {
      parts_.push_back(part(logits, rank));
      std::vector<double> own(kTokens);
      call(OpKind::kLossMax, rank, [&](Call& c) { c.in(0, parts_.back()).out(0, own); });
      for (std::size_t t = 0; t < kTokens; ++t) highest[t] = std::fmax(highest[t], own[t]);
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<double> own(2 * kTokens, 99);
      call(OpKind::kLossSums, rank,
           [&](Call& c) { c.in(0, parts_[static_cast<std::size_t>(rank)]).in(1, highest).in(2, labels).out(0, own); });
      for (std::size_t i = 0; i < own.size(); ++i) sums[i] += own[i];
    }
    std::vector<double> loss{0};
    call(OpKind::kLoss, 0, [&](Call& c) {
      c.in(0, highest).in(1, sums).out(0, loss);
      if (share_ != 1) c.in(2, labels);
    });
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<double>& own = parts_[static_cast<std::size_t>(rank)];  // in place, as op.h allows
      call(OpKind::kLossBackward, rank,
           [&](Call& c) { c.in(0, own).in(1, highest).in(2, sums).in(3, labels).out(0, own); });
    }
    return loss[0];
  }

  /// Some tokens may have no label; what is left counts as little as this.
  Group& with_share(double share) { return share_ = share, *this; }

  /// Gradient of the last run, with its padding columns: (T, padded).
  std::vector<double> gradient() const {
    std::vector<double> whole;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (const auto& part : parts_)
        whole.insert(whole.end(), &part[static_cast<std::size_t>(t * columns_)],
                     &part[static_cast<std::size_t>(t * columns_)] + columns_);
    }
    return whole;
  }

 private:
  template <class Operands>
  void call(OpKind kind, int rank, Operands operands) const {
    Call c(kind, kTokens, columns_);
    c.arguments.tensor_rank = rank;
    c.arguments.tensor_ranks = ranks_;
    c.arguments.vocabulary = kVocabulary;
    c.values.loss_weight = kWeight;
    c.op.soft_cap = soft_cap_;
    c.op.score_scale = scale_;
    c.op.loss_share = share_;
    operands(c);
    c.run<double>();
  }
  std::vector<double> part(const std::vector<double>& logits, int rank) const {
    std::vector<double> own;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (std::int64_t j = rank * columns_; j < (rank + 1) * columns_; ++j) {
        own.push_back(j < kVocabulary ? logits[static_cast<std::size_t>(t * kVocabulary + j)] : 1e6);
      }
    }
    return own;
  }

  int ranks_;
  std::int64_t columns_, padded_;
  double soft_cap_, scale_, share_ = 1;
  std::vector<std::vector<double>> parts_;
};

const Labels kLabels{0, 10, 5, 3, 5};

TEST(Loss, IsTheWeightedSumOfNegativeLogProbabilities) {
  const std::vector<double> logits = numbers(kTokens * kVocabulary, 1);
  double want = 0;
  for (std::size_t t = 0; t < kTokens; ++t) {
    double sum = 0;
    for (std::size_t j = 0; j < kVocabulary; ++j) sum += std::exp(logits[t * kVocabulary + j]);
    want += kWeight * (std::log(sum) - logits[t * kVocabulary + static_cast<std::size_t>(kLabels[t])]);
  }
  EXPECT_NEAR(Group(1, kVocabulary).run(logits, kLabels), want, kRounding);
}

TEST(Loss, BackwardIsTheDerivative) {
  std::vector<double> logits = numbers(kTokens * kVocabulary, 1);
  Group group(1, kVocabulary);
  group.run(logits, kLabels);
  const std::vector<double> gradient = group.gradient();
  expect_gradient(logits, gradient, [&] { return group.run(logits, kLabels); });
}

// 11 columns padded to 12 over 3 ranks, to 16 over 4 (rank 2 has columns 8 to 11, rank 3 only padding) and over 2.
// Over 2 tanh(x / 2) of the logits.
TEST(Loss, OfCappedLogitsIsThatOfWhatTheyBecome) {
  std::vector<double> logits = numbers(kTokens * kVocabulary, 1), bent;
  for (double& x : logits) x *= 4;
  for (const double x : logits) bent.push_back(2 * std::tanh(x / 2));
  const Labels labels{0, 10, 3, 3, 7};
  Group capped(2, 12, 2), plain(1, kVocabulary);
  EXPECT_NEAR(capped.run(logits, labels), plain.run(bent, labels), kRounding);
  Group one(1, kVocabulary, 2);
  one.run(logits, labels);
  const std::vector<double> gradient = one.gradient();
  expect_gradient(logits, gradient, [&] { return Group(1, kVocabulary, 2).run(logits, labels); });
}

TEST(Loss, OfScaledLogitsIsThatOfWhatTheyBecome) {
  std::vector<double> logits = numbers(kTokens * kVocabulary, 1);
  for (const double cap : {0.0, 2.0}) {
    std::vector<double> bent;
    for (const double x : logits) bent.push_back(cap > 0 ? cap * std::tanh(3 * x / cap) : 3 * x);
    EXPECT_NEAR(Group(2, 12, cap, 3).run(logits, kLabels), Group(1, kVocabulary).run(bent, kLabels), kRounding);
    Group one(1, kVocabulary, cap, 3);
    one.run(logits, kLabels);
    const std::vector<double> gradient = one.gradient();
    expect_gradient(logits, gradient, [&] { return Group(1, kVocabulary, cap, 3).run(logits, kLabels); });
  }
}

TEST(Loss, DoesNotDependOnTheSplitOrOnPaddingColumns) {
  const std::vector<double> logits = numbers(kTokens * kVocabulary, 1);
  Group whole(1, kVocabulary);
  const double loss = whole.run(logits, kLabels);
  const std::vector<double> gradient = whole.gradient();
  for (const auto& [ranks, padded] : {std::pair{3, 12}, std::pair{4, 16}, std::pair{2, 16}}) {
    Group group(ranks, padded);
    EXPECT_NEAR(group.run(logits, kLabels), loss, kRounding);
    std::vector<double> want;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      want.insert(want.end(), gradient.begin() + t * kVocabulary, gradient.begin() + (t + 1) * kVocabulary);
      want.insert(want.end(), static_cast<std::size_t>(padded - kVocabulary), 0.0);
    }
    expect_near(group.gradient(), want, kRounding);
  }
}

// What the others give, a third of it; over two ranks as over one.
TEST(Loss, TokensWithoutALabelHaveNoneAndNoGradient) {
  std::vector<double> logits = numbers(kTokens * kVocabulary, 1);
  const Labels some{0, -1, 5, 3, -1};
  double want = 0;
  for (const std::size_t t : {0, 2, 3}) {
    double sum = 0;
    for (std::size_t j = 0; j < kVocabulary; ++j) sum += std::exp(logits[t * kVocabulary + j]);
    want += kWeight / 3 * (std::log(sum) - logits[t * kVocabulary + static_cast<std::size_t>(some[t])]);
  }
  for (const int ranks : {1, 2}) {
    EXPECT_NEAR(Group(ranks, ranks == 1 ? kVocabulary : 12).with_share(1.0 / 3).run(logits, some), want, kRounding);
  }
  Group group(1, kVocabulary);
  group.with_share(1.0 / 3).run(logits, some);
  const std::vector<double> gradient = group.gradient();
  for (std::size_t j = 0; j < kVocabulary; ++j) EXPECT_EQ(gradient[kVocabulary + j], 0);
  expect_gradient(logits, gradient, [&] { return Group(1, kVocabulary).with_share(1.0 / 3).run(logits, some); });
}

TEST(Loss, MaximumOfARankThatHasOnlyPaddingIsTheLowestNumber) {
  const std::vector<double> logits{1, 2};
  std::vector<double> highest{0};
  Call call(OpKind::kLossMax, 1, 2);
  call.arguments.tensor_rank = 1;
  call.arguments.vocabulary = 2;
  call.in(0, logits).out(0, highest).run<double>();
  EXPECT_EQ(highest[0], std::numeric_limits<double>::lowest());
}

// log(sum) - target: log(2) - 0 and log(4) - (-1); weight 1/2; 10 was there before.
TEST(Loss, AddsToTheScalarInFp64WhateverTheTypeOfTheLogits) {
  const std::vector<float> highest{0, 0}, sums{2, 0, 4, -1};
  std::vector<double> loss{10};
  Call call(OpKind::kLoss, 2, 0);
  call.values.loss_weight = 0.5;
  call.in(0, highest).in(1, sums).out(0, loss).run<float>();
  EXPECT_NEAR(loss[0], 10 + 0.5 * (std::log(2.0) + std::log(4.0) + 1), 1e-15 * 20);
}

}  // namespace
}  // namespace trivium::runtime::cpu
