// Dropout: the words it is drawn from, and the kernels that drop against their definitions and central differences.
#include "runtime/dropout.h"

#include "runtime/cpu/dropping.h"
#include "tests/runtime/cpu/kernel_call.h"

namespace trivium::runtime::cpu {
namespace {

constexpr double kProbability = 0.25;

Dropout quarter() {
  Dropout d;
  d.threshold = 1U << 30;  // 2^32 / 4
  d.scale = 4.0 / 3;
  d.key = 0x0123456789abcdefULL;
  d.step = 3, d.first_sample = 8;
  return d;
}

double factor(const Dropout& d, std::int64_t head, std::int64_t sample, std::int64_t position, std::int64_t column) {
  return dropout_words(d, head, sample, position, column / 4).of[column % 4] < d.threshold ? 0 : d.scale;
}

// kat_vectors of the authors' Random123, philox4x32 with 10 rounds.
TEST(Philox, GivesTheKnownAnswers) {
  struct Known {
    PhiloxWords counter;
    std::uint64_t key;
    PhiloxWords words;
  };
  const Known known[] = {
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       0xffffffffffffffffULL,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0x299f31d0a4093822ULL,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Known& k : known) {
    const PhiloxWords words = philox(k.counter, k.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words.of[i], k.words.of[i]) << i;
  }
}

TEST(DroppedRow, IsWhatItsWordsSayWhereverItBegins) {
  const Dropout d = quarter();
  for (const std::int64_t first : {0, 1, 3, 64, 70}) {
    for (const std::int64_t count : {1, 5, 63, 64, 130}) {
      std::vector<std::uint8_t> keep(static_cast<std::size_t>(count) + 1, 9);
      draw_row(d, 2, 1, 5, first, count, keep.data());
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(keep[static_cast<std::size_t>(i)], factor(d, 2, 1, 5, first + i) > 0) << first << " + " << i;
      }
      EXPECT_EQ(keep.back(), 9);
    }
  }
}

// A count of n independent draws has a standard deviation of sqrt(n p (1 - p)); five of them are passed by one run in a
// million.
TEST(DroppedRow, LosesTheShareThatIsAsked) {
  constexpr std::int64_t kRows = 256, kColumns = 4096;
  for (const double probability : {0.1, 0.25, 0.5, 0.9}) {
    Dropout d = quarter();
    d.threshold = static_cast<std::uint32_t>(probability * 0x1.0p32);
    std::vector<std::uint8_t> keep(kColumns);
    std::int64_t kept = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
      draw_row(d, row % 4, row / 64, row, 0, kColumns, keep.data());
      for (const std::uint8_t k : keep) kept += k;
    }
    const double n = kRows * kColumns, deviation = std::sqrt(n * probability * (1 - probability));
    EXPECT_NEAR(static_cast<double>(kept), n * (1 - probability), 5 * deviation) << probability;
  }
}

constexpr std::int64_t kTokens = 12, kHidden = 10, kSequence = 6;  // two samples

/// Row r of two samples of six tokens, or with `first` those of a tensor rank that begins there.
double token_factor(const Dropout& d, std::int64_t r, std::int64_t column) {
  return factor(d, 0, r / kSequence, r % kSequence, column);
}

TEST(BiasResidual, DropsWhatIsAddedToTheStreamAndNotTheStream) {
  const auto x = numbers(kTokens * kHidden, 1), skip = numbers(kTokens * kHidden, 2), bias = numbers(kHidden, 3),
             second = numbers(kHidden, 4);
  for (const Variant variant : {Variant::kV2, Variant::kV3, Variant::kV4}) {
    if (!available(variant)) continue;
    auto y = zeros(kTokens * kHidden);
    std::vector<std::uint8_t> mask(y.size(), 9);
    Call call(OpKind::kBiasResidual, kTokens, kHidden);
    call.arguments.dropout = quarter();
    call.arguments.dropout.sequence = kSequence;
    call.in(0, x).in(1, bias).in(2, skip).in(3, second).out(0, y).out(1, mask).run<double>(variant);
    auto expected = zeros(kTokens * kHidden);
    int dropped = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i) / kHidden, column = static_cast<std::int64_t>(i) % kHidden;
      const double f = token_factor(call.arguments.dropout, row, column);
      const auto c = static_cast<std::size_t>(column);
      expected[i] = skip[i] + f * (x[i] + bias[c] + second[c]);
      EXPECT_EQ(mask[i], f > 0);
      dropped += f > 0 ? 0 : 1;
    }
    expect_near(y, expected, kRounding);
    EXPECT_GT(dropped, 10);
  }
}

TEST(BiasResidual, OfATensorRanksTokensDropsWhatTheWholeDrops) {
  const auto x = numbers(kTokens * kHidden, 1), skip = numbers(kTokens * kHidden, 2);
  const auto rows = [&](const std::vector<double>& all, std::int64_t first, std::int64_t count) {
    return std::vector<double>(all.begin() + first * kHidden, all.begin() + (first + count) * kHidden);
  };
  const auto run = [&](std::int64_t first, std::int64_t count, int rank, int ranks) {
    const auto mine = rows(x, first, count), own_skip = rows(skip, first, count);
    auto y = zeros(count * kHidden);
    std::vector<std::uint8_t> mask(y.size());
    Call call(OpKind::kBiasResidual, count, kHidden);
    call.op.token_sharded = ranks > 1;
    call.arguments.tensor_rank = rank, call.arguments.tensor_ranks = ranks;
    call.arguments.dropout = quarter();
    call.arguments.dropout.sequence = kSequence;
    call.in(0, mine).in(2, own_skip).out(0, y).out(1, mask).run<double>();
    return y;
  };
  const auto whole = run(0, kTokens, 0, 1);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(run(4 * rank, 4, rank, 3), rows(whole, 4 * rank, 4)) << rank;
}

TEST(BiasResidualBackward, LetsThroughWhatWasKept) {
  const auto dy = numbers(kTokens * kHidden, 5);
  std::vector<std::uint8_t> mask(dy.size());
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 != 0;
  auto dx = zeros(kTokens * kHidden), dbias = numbers(kHidden, 6), expected = dx, expected_bias = dbias;
  Call call(OpKind::kBiasResidualBackward, kTokens, kHidden);
  call.arguments.dropout = quarter();
  call.in(0, dy).in(1, mask).out(0, dbias).out(2, dx).run<double>();
  for (std::size_t i = 0; i < dy.size(); ++i) {
    expected[i] = mask[i] != 0 ? dy[i] * call.arguments.dropout.scale : 0;
    expected_bias[i % kHidden] += expected[i];
  }
  expect_near(dx, expected, kRounding);
  expect_near(dbias, expected_bias, kRounding);
}

// Without learned positions, a model's embedding is dropped out where it is looked up, on whichever rank holds the row;
// else after the positions. Gradients are dropped where they are read.
TEST(Embedding, IsDroppedAndItsGradientsAre) {
  const std::vector<std::int32_t> ids{0, 3, 1, 1, 2, 0, 3, 3, 2, 1, 0, 2};
  const auto table = numbers(4 * kHidden, 1), x = numbers(kTokens * kHidden, 2),
             positions = numbers(kSequence * kHidden, 3);
  const auto run = [&](OpKind kind, std::int64_t k, auto connect) {
    Call call(kind, kTokens, kHidden, k);
    call.arguments.dropout = quarter();
    call.arguments.dropout.sequence = kSequence;
    connect(call);
    call.template run<double>();
  };
  const Dropout d = quarter();
  auto looked_up = zeros(kTokens * kHidden), added = looked_up, expected_look = looked_up, expected_add = looked_up;
  auto d_table = zeros(4 * kHidden), d_positions = zeros(kSequence * kHidden), expected_table = d_table,
       expected_positions = d_positions;
  run(OpKind::kEmbedding, 4, [&](Call& c) { c.in(0, ids).in(1, table).out(0, looked_up); });
  run(OpKind::kPosition, kSequence, [&](Call& c) { c.in(0, x).in(1, positions).out(0, added); });
  run(OpKind::kEmbeddingBackward, 4, [&](Call& c) { c.in(0, ids).in(1, x).out(0, d_table); });
  run(OpKind::kPositionBackward, kSequence, [&](Call& c) { c.in(0, x).out(0, d_positions); });
  for (std::int64_t r = 0; r < kTokens; ++r) {
    for (std::int64_t j = 0; j < kHidden; ++j) {
      const auto at = static_cast<std::size_t>(r * kHidden + j);
      const auto row = static_cast<std::size_t>(ids[static_cast<std::size_t>(r)] * kHidden + j);
      const auto place = static_cast<std::size_t>(r % kSequence * kHidden + j);
      const double f = token_factor(d, r, j);
      expected_look[at] = f * table[row];
      expected_add[at] = f * (x[at] + positions[place]);
      expected_table[row] += f * x[at];
      expected_positions[place] += f * x[at];
    }
  }
  expect_near(looked_up, expected_look, kRounding);
  expect_near(added, expected_add, kRounding);
  expect_near(d_table, expected_table, kRounding);
  expect_near(d_positions, expected_positions, kRounding);
}

/// Two samples of 70 tokens (more than a block of queries), four query heads on two key heads of dimension 4; heads 4
/// to 7 of the model.
struct AttentionCase {
  static constexpr int kSamples = 2, kLength = 70, kHeads = 4, kKeyHeads = 2, kDim = 4;
  static constexpr std::int64_t kRows = kSamples * kLength, kWidth = (kHeads + 2 * kKeyHeads) * kDim,
                                kOut = kHeads * kDim;
  explicit AttentionCase(bool fused) : flash(fused) {
    d.first_head = 4;
    saved = zeros(flash ? kRows * kHeads : kRows * kHeads * kLength);
    mask.resize(static_cast<std::size_t>(kRows * kHeads * kLength));
  }
  void describe(Call& call) const {
    call.op.heads = kHeads, call.op.kv_heads = kKeyHeads, call.op.head_dim = kDim, call.op.sequence = kLength;
    call.op.flash = flash;
    call.arguments.dropout = d;
    call.arguments.dropout.sequence = kLength;
  }
  std::vector<double> forward(const std::vector<double>& qkv) {
    auto y = zeros(kRows * kOut);
    Call call(OpKind::kAttention, kRows, kOut);
    describe(call);
    call.in(0, qkv).out(0, y).out(1, saved);
    if (!flash) call.out(2, mask);
    call.run<double>();
    return y;
  }
  std::vector<double> backward(const std::vector<double>& qkv, const std::vector<double>& dy) {
    const auto y = forward(qkv);
    auto dqkv = zeros(kRows * kWidth);
    Call call(OpKind::kAttentionBackward, kRows, kOut);
    describe(call);
    call.in(0, qkv).in(1, y).in(2, saved).in(3, dy).out(0, dqkv);
    if (!flash) call.in(4, mask);
    call.run<double>();
    return dqkv;
  }

  bool flash;
  Dropout d = quarter();
  std::vector<double> saved;
  std::vector<std::uint8_t> mask;
};

TEST(Attention, DropsProbabilitiesBehindTheSoftmax) {
  constexpr int kDim = AttentionCase::kDim, kLength = AttentionCase::kLength;
  const auto qkv = numbers(AttentionCase::kRows * AttentionCase::kWidth, 1);
  AttentionCase unfused(false), fused(true);
  const auto y = unfused.forward(qkv);
  expect_near(fused.forward(qkv), y, kRounding);
  const auto component = [&](int row, int column) {
    return qkv[static_cast<std::size_t>(row * AttentionCase::kWidth + column)];
  };
  for (const auto& [sample, head, query] : {std::tuple{0, 0, 0}, {0, 3, 5}, {1, 2, 69}, {1, 1, 64}}) {
    std::vector<double> weights, expected(kDim), got;
    double sum = 0;
    const int first = sample * kLength, key_at = (AttentionCase::kHeads + head / 2) * kDim;
    for (int key = 0; key <= query; ++key) {
      double score = 0;
      for (int i = 0; i < kDim; ++i) {
        score += component(first + query, head * kDim + i) * component(first + key, key_at + i) / 2;  // sqrt of 4
      }
      sum += weights.emplace_back(std::exp(score));
    }
    for (int key = 0; key <= query; ++key) {
      const double weight = weights[static_cast<std::size_t>(key)] / sum * factor(unfused.d, head, sample, query, key);
      for (int i = 0; i < kDim; ++i) {
        expected[static_cast<std::size_t>(i)] +=
            weight * component(first + key, key_at + AttentionCase::kKeyHeads * kDim + i);
      }
    }
    for (int i = 0; i < kDim; ++i) {
      got.push_back(y[static_cast<std::size_t>((first + query) * AttentionCase::kOut + head * kDim + i)]);
    }
    expect_near(got, expected, kRounding);
  }
}

TEST(AttentionBackward, OfDroppedProbabilitiesIsTheCentralDifference) {
  auto qkv = numbers(AttentionCase::kRows * AttentionCase::kWidth, 7);
  const auto dy = numbers(AttentionCase::kRows * AttentionCase::kOut, 8);
  for (const bool flash : {false, true}) {
    SCOPED_TRACE(flash ? "flash" : "unfused");
    AttentionCase attention(flash);
    const auto gradient = attention.backward(qkv, dy);
    // Every 37th element: all of them would take a minute.
    std::vector<double> expected, got;
    constexpr double kStep = 1e-5;
    for (std::size_t i = 0; i < qkv.size(); i += 37) {
      const double kept = qkv[i];
      qkv[i] = kept + kStep;
      const double above = dot(attention.forward(qkv), dy);
      qkv[i] = kept - kStep;
      const double below = dot(attention.forward(qkv), dy);
      qkv[i] = kept;
      expected.push_back((above - below) / (2 * kStep));
      got.push_back(gradient[i]);
    }
    ASSERT_GT(largest(expected), 1e-2);
    expect_near(got, expected, 1e-8);
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
