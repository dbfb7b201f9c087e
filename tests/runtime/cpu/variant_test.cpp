// Every instruction set and both types compute the same thing; every compute kind has a kernel.

#include <map>
#include <string>

#include "tests/runtime/cpu/kernel_call.h"
#include "tests/runtime/cpu/lacking.h"

namespace trivium::runtime::cpu {
namespace {

using program::DType;

constexpr std::int64_t kTokens = 70, kHidden = 40;
constexpr int kHeads = 4, kKvHeads = 2, kDim = 10, kSequence = 35;
constexpr std::int64_t kWidth = (kHeads + 2 * kKvHeads) * kDim;

/// Outputs of one variant's kernels on fixed inputs, by name.
template <class T>
class Outputs {
 public:
  explicit Outputs(Variant variant) : variant_(variant) {
    linear();
    norm();
    attention();
    activation();
    loss();
  }
  const std::map<std::string, std::vector<double>>& all() const { return results_; }

 private:
  static std::vector<T> input(std::int64_t count, unsigned seed) { return converted<T>(numbers(count, seed)); }
  static std::vector<T> space(std::int64_t count) { return std::vector<T>(static_cast<std::size_t>(count)); }
  void keep(const std::string& name, const std::vector<T>& y) { results_[name].assign(y.begin(), y.end()); }

  void linear() {
    const auto x = input(kTokens * kHidden, 1), w = input(kHidden * kWidth, 2), bias = input(kWidth, 3);
    const auto dy = input(kTokens * kWidth, 4);
    auto y = space(kTokens * kWidth), dx = space(kTokens * kHidden), dw = space(kHidden * kWidth), db = space(kWidth);
    Call(OpKind::kMatmul, kTokens, kWidth, kHidden).in(0, x).in(1, w).in(2, bias).out(0, y).template run<T>(variant_);
    Call(OpKind::kMatmulDgrad, kTokens, kWidth, kHidden).in(0, dy).in(1, w).out(0, dx).template run<T>(variant_);
    Call(OpKind::kMatmulWgrad, kTokens, kWidth, kHidden)
        .in(0, x)
        .in(1, dy)
        .out(0, dw)
        .out(1, db)
        .template run<T>(variant_);
    keep("matmul", y);
    keep("matmul_dgrad", dx);
    keep("matmul_wgrad", dw);
    keep("matmul_wgrad bias", db);
  }
  void norm() {
    const auto x = input(kTokens * kHidden, 1), w = input(kHidden, 2), b = input(kHidden, 3),
               dy = input(kTokens * kHidden, 4);
    auto y = space(kTokens * kHidden), stats = space(2 * kTokens), dw = space(kHidden), db = space(kHidden);
    Call(OpKind::kNorm, kTokens, kHidden).in(0, x).in(1, w).in(2, b).out(0, y).out(1, stats).template run<T>(variant_);
    keep("norm", y);
    Call(OpKind::kNormBackward, kTokens, kHidden)
        .in(0, x)
        .in(1, w)
        .in(2, stats)
        .in(3, dy)
        .out(0, y)
        .out(1, dw)
        .out(2, db)
        .template run<T>(variant_);
    keep("norm_backward", y);
    keep("norm_backward weight", dw);
  }
  void attention() {
    auto qkv = input(kTokens * kWidth, 1);
    const auto dy = input(kTokens * kHidden, 2);
    auto y = space(kTokens * kHidden), saved = space(kTokens * kHeads), dqkv = space(kTokens * kWidth);
    for (const OpKind kind : {OpKind::kRotary, OpKind::kAttention, OpKind::kAttentionBackward}) {
      Call call(kind, kTokens, kHidden);
      call.op.heads = kHeads;
      call.op.kv_heads = kKvHeads;
      call.op.head_dim = kDim;
      call.op.sequence = kSequence;
      call.op.flash = true;
      const program::RotaryTable rotary{std::vector<double>(kDim / 2, 0.5), 1};
      call.arguments.rotary = &rotary;
      call.in(0, qkv);
      if (kind == OpKind::kRotary) call.out(0, qkv);
      if (kind == OpKind::kAttention) call.out(0, y).out(1, saved);
      if (kind == OpKind::kAttentionBackward) call.in(1, y).in(2, saved).in(3, dy).out(0, dqkv);
      call.template run<T>(variant_);
    }
    keep("rotary", qkv);
    keep("attention", y);
    keep("attention_backward", dqkv);
  }
  void activation() {
    for (const std::int64_t which : {0, 1, 2, 3, 4, 5}) {
      const auto x = input(kTokens * 2 * kHidden, 1), dy = input(kTokens * kHidden, 2);
      auto y = space(kTokens * kHidden), dx = space(kTokens * 2 * kHidden);
      Call(OpKind::kActivation, kTokens, kHidden, which).in(0, x).out(0, y).template run<T>(variant_);
      Call(OpKind::kActivationBackward, kTokens, kHidden, which)
          .in(0, x)
          .in(2, dy)
          .out(0, dx)
          .template run<T>(variant_);
      keep("activation " + std::to_string(which), y);
      keep("activation_backward " + std::to_string(which), dx);
    }
  }
  void loss() {
    const auto logits = input(kTokens * kHidden, 1);
    const std::vector<std::int32_t> labels(kTokens, 3);
    auto highest = space(kTokens), sums = space(2 * kTokens), dlogits = space(kTokens * kHidden);
    for (const OpKind kind : {OpKind::kLossMax, OpKind::kLossSums, OpKind::kLossBackward}) {
      Call call(kind, kTokens, kHidden);
      call.arguments.vocabulary = kHidden - 1;
      call.values.loss_weight = 1;
      call.in(0, logits);
      if (kind == OpKind::kLossMax) call.out(0, highest);
      if (kind == OpKind::kLossSums) call.in(1, highest).in(2, labels).out(0, sums);
      if (kind == OpKind::kLossBackward) call.in(1, highest).in(2, sums).in(3, labels).out(0, dlogits);
      call.template run<T>(variant_);
    }
    keep("loss_sums", sums);
    keep("loss_backward", dlogits);
  }

  Variant variant_;
  std::map<std::string, std::vector<double>> results_;
};

class EveryVariant : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (!available(GetParam())) GTEST_SKIP() << lacking(GetParam());
  }
};

TEST_P(EveryVariant, AgreesWithTheBaselineInFp64) {
  const Outputs<double> got(GetParam()), baseline(Variant::kV2);
  for (const auto& [name, want] : baseline.all()) {
    SCOPED_TRACE(name);
    expect_near(got.all().at(name), want, kRounding);
  }
}

// A float is rounded to 6e-8 of itself. Sums here have up to 80 terms of order 1, whose roundings add up like sqrt(80)
// to about 5e-7 of the largest element, and norm and attention put a few such steps in a row: 5e-6.
TEST_P(EveryVariant, AgreesWithFp64InFp32) {
  const Outputs<float> got(GetParam());
  const Outputs<double> exact(Variant::kV2);
  for (const auto& [name, want] : exact.all()) {
    SCOPED_TRACE(name);
    expect_near(got.all().at(name), want, 5e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSet, EveryVariant, testing::Values(Variant::kV2, Variant::kV3, Variant::kV4),
                         [](const auto& instance) {
                           return "V" + std::to_string(2 + static_cast<int>(instance.param));
                         });

TEST(FindKernel, KnowsEveryComputeKindInEveryFloatTypeAndNothingElse) {
  for (int i = 0; i < program::kOpKinds; ++i) {
    const auto kind = static_cast<OpKind>(i);
    const bool compute = kind < OpKind::kAllReduce;  // the table lists communication last
    EXPECT_EQ(find_kernel(kind, DType::kFp32) != nullptr, compute) << i;
    EXPECT_EQ(find_kernel(kind, DType::kFp64) != nullptr, compute) << i;
    EXPECT_EQ(find_kernel(kind, DType::kBf16) != nullptr, compute) << i;
    EXPECT_EQ(find_kernel(kind, DType::kFp16) != nullptr, compute) << i;
    EXPECT_EQ(find_kernel(kind, DType::kInt32) != nullptr, program::is_copy(kind)) << i;  // bytes, of whatever type
  }
}

}  // namespace
}  // namespace trivium::runtime::cpu
