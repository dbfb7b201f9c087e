// Kernels of mixtures of experts against the CPU backend.
#include "tests/runtime/cuda/emulated_call.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;

// Two samples of 12 tokens, five experts, `top_k` for each token; an expert accepts 4 of a sample, so some are
// turned away. The larger has two samples of 80, 40 experts and room for 8: more than a warp in each direction. With
// `context` 2 the rank is the second of a ring and has half of the tokens, and of an expert's rows for a sample 2, so
// that some tokens' rows lie with the other rank; with `tensor` 2 it is the first of two that share rows.
struct Mixture {
  std::int64_t top_k;
  int context = 1, tensor = 1;
  std::int64_t capacity = 4;
  std::int32_t tokens = 24, experts = 5;
  Mixture& enlarge() {
    tokens = 160, experts = 40, capacity = 8;
    return *this;
  }
  std::int64_t own() const { return tokens / context; }
  std::int64_t rows() const { return experts * 2 * capacity / context / tensor; }
  EmulatedCall call(OpKind kind, std::int64_t n) const {
    const bool lists = kind == OpKind::kRoute || kind == OpKind::kSpill;
    EmulatedCall call(kind, lists ? tokens : own(), n, top_k);
    call.op.sequence = tokens / 2;
    call.op.experts = experts;
    call.op.elements = kind == OpKind::kRoute ? capacity : rows();
    call.a.context_ranks = context, call.a.context_rank = context - 1;
    call.a.tensor_ranks = tensor;
    call.routing.normalised = top_k > 1, call.routing.balance_loss = 0.25;
    call.values.loss_weight = 0.5;
    return call;
  }
  EmulatedCall route() const {
    EmulatedCall route = call(OpKind::kRoute, experts);
    route.with_in(0, Form::kWide, uniform(tokens * experts, 1));
    route.with_out(0, Form::kWide, uniform(tokens * experts, 2));
    route.with_out(1, Form::kInts, std::vector<double>(static_cast<std::size_t>(2 * tokens * top_k), 7));
    return route.with_out(2, Form::kPair, {0.125});
  }
  EmulatedCall spill(const std::vector<double>& slots) const {
    EmulatedCall spill = call(OpKind::kSpill, 1);
    spill.with_in(0, Form::kInts, slots);
    spill.with_out(0, Form::kInts, std::vector<double>(slots.size(), 7));
    return spill.with_out(1, Form::kInts, std::vector<double>(static_cast<std::size_t>(2 * context + rows()), 7));
  }
  // Rows, followed by as many for what other ranks have room for.
  EmulatedCall& with_rows_in(EmulatedCall& call, std::size_t i, std::size_t spilled, std::int64_t hidden) const {
    call.with_in(i, Form::kTyped, uniform(rows() * hidden, 5));
    return call.with_in(spilled, Form::kTyped, uniform(own() * top_k * hidden, 10));
  }
  EmulatedCall& with_rows_out(EmulatedCall& call, std::size_t i, std::size_t spilled, std::int64_t hidden) const {
    call.with_out(i, Form::kTyped, uniform(rows() * hidden, 6));
    return call.with_out(spilled, Form::kTyped, uniform(own() * top_k * hidden, 11));
  }
};

void route_and_send(const Mixture& mixture) {
  constexpr std::int64_t kHidden = 6;
  const std::int64_t top_k = mixture.top_k;
  const EmulatedCall route = mixture.route();
  expect_equal_to_emulation(route, DType::kFp32, 3e-6);
  auto routed = route.on_cpu(DType::kFp32);
  if (mixture.context > 1) {
    const EmulatedCall spill = mixture.spill(routed[1]);
    expect_equal_to_emulation(spill, DType::kFp32, 0);
    const auto spilled = spill.on_cpu(DType::kFp32);
    EXPECT_GT(spilled[1][0] + spilled[1][2], 0);  // rows to or from the other rank
    routed[1] = spilled[0];
  }
  EmulatedCall back = mixture.call(OpKind::kRouteBackward, mixture.experts);
  back.packs_rows = true;
  back.with_in(0, Form::kWide, routed[0]).with_in(1, Form::kInts, routed[1]);
  back.with_in(2, Form::kWide, uniform(mixture.own() * top_k, 3));
  expect_equal_to_emulation(back.with_out(0, Form::kWide, uniform(mixture.own() * mixture.experts, 4)));

  EmulatedCall dispatch = mixture.call(OpKind::kDispatch, kHidden);
  dispatch.with_in(0, Form::kTyped, uniform(mixture.own() * kHidden, 5)).with_in(1, Form::kInts, routed[1]);
  expect_equal_to_emulation(mixture.with_rows_out(dispatch, 0, 1, kHidden));
  EmulatedCall gather = mixture.call(OpKind::kDispatchBackward, kHidden);
  mixture.with_rows_in(gather, 0, 2, kHidden).with_in(1, Form::kInts, routed[1]);
  expect_equal_to_emulation(gather.with_out(0, Form::kTyped, uniform(mixture.own() * kHidden, 6)));
  EmulatedCall combine = mixture.call(OpKind::kCombine, kHidden);
  mixture.with_rows_in(combine, 0, 3, kHidden).with_in(1, Form::kWide, routed[0]);
  combine.with_in(2, Form::kInts, routed[1]);
  expect_equal_to_emulation(combine.with_out(0, Form::kTyped, uniform(mixture.own() * kHidden, 6)));
  EmulatedCall spread = mixture.call(OpKind::kCombineBackward, kHidden);
  spread.with_in(0, Form::kTyped, uniform(mixture.own() * kHidden, 7));
  mixture.with_rows_in(spread, 1, 4, kHidden).with_in(2, Form::kWide, routed[0]);
  mixture.with_rows_out(spread, 0, 2, kHidden).with_in(3, Form::kInts, routed[1]);
  expect_equal_to_emulation(spread.with_out(1, Form::kWide, uniform(mixture.own() * top_k, 9)));
}

TEST(MixtureEmulation, RoutesAndSendsRowsBothWays) {
  for (const auto& [top_k, context, tensor] :
       {std::tuple{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}, {2, 1, 2}, {2, 2, 2}}) {
    route_and_send({top_k, context, tensor});
  }
  for (const auto& [top_k, context] : {std::pair{1, 1}, {3, 2}}) route_and_send(Mixture{top_k, context}.enlarge());
}

// Three rows of seven came from two ranks; the rest of either side stays as it was.
TEST(MixtureEmulation, PlacesAndPicksSpilledRows) {
  constexpr std::int64_t kHidden = 6;
  for (const OpKind kind : {OpKind::kPlaceRows, OpKind::kPickRows}) {
    EmulatedCall move(kind, 0, kHidden, 0);
    move.op.parts = 2, move.op.elements = 5;
    const std::int64_t from = kind == OpKind::kPlaceRows ? 5 : 7, to = 12 - from;
    move.with_in(0, Form::kTyped, uniform(from * kHidden, 1)).with_in(1, Form::kInts, {0, 0, 1, 2, 4, 0, 6, 9, 9});
    expect_equal_to_emulation(move.with_out(0, Form::kTyped, uniform(to * kHidden, 2)), 0);
  }
}

// Two parts of three experts with four rows each.
TEST(MixtureEmulation, MultipliesEveryExpertWithItsRows) {
  const auto prepared = [](OpKind kind) {
    EmulatedCall call(kind, 8, 5, 7);
    call.op.parts = 2, call.op.experts = 3;
    return call;
  };
  EmulatedCall call = prepared(OpKind::kExpertMatmul), dgrad = prepared(OpKind::kExpertMatmulDgrad),
               wgrad = prepared(OpKind::kExpertMatmulWgrad);
  call.with_in(0, Form::kTyped, uniform(24 * 7, 1)).with_in(1, Form::kTyped, uniform(3 * 35, 2));
  expect_equal_to_emulation(call.with_out(0, Form::kTyped, uniform(24 * 5, 3)));
  dgrad.with_in(0, Form::kTyped, uniform(24 * 5, 1)).with_in(1, Form::kTyped, uniform(3 * 35, 2));
  expect_equal_to_emulation(dgrad.with_out(0, Form::kTyped, uniform(24 * 7, 3)));
  wgrad.with_in(0, Form::kTyped, uniform(24 * 7, 1)).with_in(1, Form::kTyped, uniform(24 * 5, 2));
  expect_equal_to_emulation(wgrad.with_out(0, Form::kWide, uniform(3 * 35, 3)), 3e-6);
}

}  // namespace
}  // namespace trivium::runtime::cuda
