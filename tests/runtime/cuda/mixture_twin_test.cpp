// Kernels of mixtures of experts against the CPU backend.
#include "tests/runtime/cuda/twin_call.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;

// Two samples of 12 tokens, five experts of which a token asks `top_k`; an expert accepts 4 of a sample, so some are
// turned away. With `context` 2 the rank is the second of a ring and has half of the tokens.
struct Mixture {
  static constexpr std::int64_t kTokens = 24, kExperts = 5, kRows = kExperts * 2 * 4;
  std::int64_t top_k;
  int context = 1;
  std::int64_t own() const { return kTokens / context; }
  TwinCall call(OpKind kind, std::int64_t n) const {
    TwinCall call(kind, kind == OpKind::kRoute ? kTokens : own(), n, top_k);
    call.op.sequence = 12, call.op.experts = kExperts, call.op.elements = kind == OpKind::kRoute ? 4 : kRows;
    call.a.context_ranks = context, call.a.context_rank = context - 1;
    call.a.balance_loss = 0.25;
    call.values.loss_weight = 0.5;
    return call;
  }
  TwinCall route() const {
    TwinCall route = call(OpKind::kRoute, kExperts);
    route.with_in(0, Form::kWide, uniform(kTokens * kExperts, 1));
    route.with_out(0, Form::kWide, uniform(kTokens * kExperts, 2));
    route.with_out(1, Form::kInts, std::vector<double>(static_cast<std::size_t>(2 * kTokens * top_k), 7));
    return route.with_out(2, Form::kPair, {0.125});
  }
};

TEST(MixtureTwin, RoutesAndSendsRowsBothWays) {
  constexpr std::int64_t kHidden = 6;
  for (const auto& [top_k, context] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}}) {
    const Mixture mixture{top_k, context};
    const TwinCall route = mixture.route();
    expect_twins(route, DType::kFp32, 3e-6);
    const auto routed = route.on_cpu(DType::kFp32);
    TwinCall back = mixture.call(OpKind::kRouteBackward, Mixture::kExperts);
    back.packs_rows = true;
    back.with_in(0, Form::kWide, routed[0]).with_in(1, Form::kInts, routed[1]);
    back.with_in(2, Form::kWide, uniform(mixture.own() * top_k, 3));
    expect_twins(back.with_out(0, Form::kWide, uniform(mixture.own() * Mixture::kExperts, 4)));

    TwinCall dispatch = mixture.call(OpKind::kDispatch, kHidden);
    dispatch.with_in(0, Form::kTyped, uniform(mixture.own() * kHidden, 5)).with_in(1, Form::kInts, routed[1]);
    expect_twins(dispatch.with_out(0, Form::kTyped, uniform(Mixture::kRows * kHidden, 6)));
    TwinCall gather = mixture.call(OpKind::kDispatchBackward, kHidden);
    gather.with_in(0, Form::kTyped, uniform(Mixture::kRows * kHidden, 5)).with_in(1, Form::kInts, routed[1]);
    expect_twins(gather.with_out(0, Form::kTyped, uniform(mixture.own() * kHidden, 6)));
    TwinCall combine = mixture.call(OpKind::kCombine, kHidden);
    combine.with_in(0, Form::kTyped, uniform(Mixture::kRows * kHidden, 5)).with_in(1, Form::kWide, routed[0]);
    combine.with_in(2, Form::kInts, routed[1]);
    expect_twins(combine.with_out(0, Form::kTyped, uniform(mixture.own() * kHidden, 6)));
    TwinCall spread = mixture.call(OpKind::kCombineBackward, kHidden);
    spread.with_in(0, Form::kTyped, uniform(mixture.own() * kHidden, 7));
    spread.with_in(1, Form::kTyped, uniform(Mixture::kRows * kHidden, 5)).with_in(2, Form::kWide, routed[0]);
    spread.with_in(3, Form::kInts, routed[1]).with_out(0, Form::kTyped, uniform(Mixture::kRows * kHidden, 8));
    expect_twins(spread.with_out(1, Form::kWide, uniform(mixture.own() * top_k, 9)));
  }
}

// Two parts of three experts with four rows each.
TEST(MixtureTwin, MultipliesEveryExpertWithItsRows) {
  const auto prepared = [](OpKind kind) {
    TwinCall call(kind, 8, 5, 7);
    call.op.parts = 2, call.op.experts = 3;
    return call;
  };
  TwinCall call = prepared(OpKind::kExpertMatmul), dgrad = prepared(OpKind::kExpertMatmulDgrad),
           wgrad = prepared(OpKind::kExpertMatmulWgrad);
  call.with_in(0, Form::kTyped, uniform(24 * 7, 1)).with_in(1, Form::kTyped, uniform(3 * 35, 2));
  expect_twins(call.with_out(0, Form::kTyped, uniform(24 * 5, 3)));
  dgrad.with_in(0, Form::kTyped, uniform(24 * 5, 1)).with_in(1, Form::kTyped, uniform(3 * 35, 2));
  expect_twins(dgrad.with_out(0, Form::kTyped, uniform(24 * 7, 3)));
  wgrad.with_in(0, Form::kTyped, uniform(24 * 7, 1)).with_in(1, Form::kTyped, uniform(24 * 5, 2));
  expect_twins(wgrad.with_out(0, Form::kWide, uniform(3 * 35, 3)), 3e-6);
}

}  // namespace
}  // namespace trivium::runtime::cuda
