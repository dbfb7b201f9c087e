// Attention kernels (tensor core products and all) against the CPU backend.
#include <cmath>

#include "program/ir/context.h"
#include "tests/runtime/cuda/emulated_call.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;
using program::OpKind;

struct Shape {
  std::int64_t samples, sequence;
  int heads, kv_heads, dim;
  bool flash;
  std::int64_t tokens() const { return samples * sequence; }
  std::int64_t width() const { return static_cast<std::int64_t>(heads + 2 * kv_heads) * dim; }
};

EmulatedCall call_of(OpKind kind, const Shape& s) {
  EmulatedCall call(kind, s.tokens(), static_cast<std::int64_t>(s.heads) * s.dim, 0);
  call.op.heads = s.heads, call.op.kv_heads = s.kv_heads, call.op.head_dim = s.dim;
  call.op.sequence = static_cast<std::int32_t>(s.sequence);
  call.op.flash = s.flash;
  return call;
}

// fp32 emulations sum in another order; in bf16 scores and probabilities are rounded to 8 bits on the way, each to
// 2^-9, and a gradient is a difference of such; in fp16 to 11 bits.
double tolerance_of(DType type) { return type == DType::kFp32 ? 1e-5 : type == DType::kBf16 ? 0.02 : 0.02 / 8; }

void expect_both_ways(const Shape& s, DType type, bool drops, bool warpgroups) {
  const double tolerance = tolerance_of(type);
  const std::int64_t saved = s.flash ? s.tokens() * s.heads : s.tokens() * s.heads * s.sequence;
  const std::int64_t out = s.tokens() * s.heads * s.dim;
  const Form saved_form = s.flash ? Form::kWide : Form::kTyped;
  EmulatedCall forward = call_of(OpKind::kAttention, s);
  forward.warpgroups = warpgroups;
  forward.with_in(0, Form::kTyped, uniform(s.tokens() * s.width(), 1));
  forward.with_out(0, Form::kTyped, uniform(out, 2)).with_out(1, saved_form, uniform(saved, 3));
  if (drops) drop_a_quarter(forward, s.sequence);
  if (drops && !s.flash) forward.with_out(2, Form::kBytes, std::vector<double>(static_cast<std::size_t>(saved)));
  expect_equal_to_emulation(forward, type, tolerance);
  const auto results = forward.on_cpu(type);
  EmulatedCall backward = call_of(OpKind::kAttentionBackward, s);
  backward.warpgroups = warpgroups;
  backward.with_in(0, Form::kTyped, uniform(s.tokens() * s.width(), 1)).with_in(1, Form::kTyped, results[0]);
  backward.with_in(2, saved_form, results[1]).with_in(3, Form::kTyped, uniform(out, 4));
  if (drops) drop_a_quarter(backward, s.sequence);
  if (drops && !s.flash) backward.with_in(4, Form::kBytes, results[2]);
  expect_equal_to_emulation(backward.with_out(0, Form::kTyped, uniform(s.tokens() * s.width(), 5)), type, tolerance);
}

/// On devices with products of warpgroups and without.
void expect_both_ways(const Shape& s, DType type, bool drops = false) {
  for (const bool warpgroups : {false, true}) expect_both_ways(s, type, drops, warpgroups);
}

TEST(UnfusedAttentionEmulation, IsProductsAndASoftmax) {
  for (const DType type : {DType::kFp32, DType::kBf16, DType::kFp16}) {
    expect_both_ways({2, 13, 2, 2, 8, false}, type);
    expect_both_ways({1, 33, 4, 2, 6, false}, type);
  }
}

// What has no fused kernel: in fp32, and heads whose rows are not moved 16 bytes at once. 3,000 tokens of fp32 are 36
// MB a head, so that the seven key heads go in more than one block forward and backward.
TEST(BatchedAttentionEmulation, TakesEveryHeadDimensionInBlocksOfHeads) {
  expect_both_ways({2, 11, 4, 2, 6, true}, DType::kFp32);
  expect_both_ways({1, 9, 2, 1, 40, true}, DType::kFp32);
  expect_both_ways({2, 9, 2, 1, 42, true}, DType::kBf16);
  expect_both_ways({1, 9, 6, 3, 130, true}, DType::kFp16);
}

// 150 tokens are three tiles, the last one of 22 rows; 64 are exactly one.
TEST(FusedAttentionEmulation, MatchesWithHeadsOf64) {
  expect_both_ways({1, 150, 2, 2, 64, true}, DType::kBf16);
  expect_both_ways({2, 64, 2, 1, 64, true}, DType::kBf16);
  expect_both_ways({1, 70, 2, 1, 64, true}, DType::kFp16);
}

// Of other sizes the tiles' last columns are zeros. GPT-3 2.7B has heads of 80.
TEST(FusedAttentionEmulation, MatchesWithHeadsThatDoNotFillTheirTiles) {
  expect_both_ways({1, 100, 2, 1, 80, true}, DType::kBf16);
  expect_both_ways({2, 70, 2, 2, 96, true}, DType::kBf16);
  expect_both_ways({1, 70, 2, 1, 112, true}, DType::kFp16);
  expect_both_ways({1, 70, 4, 2, 32, true}, DType::kBf16);
  expect_both_ways({1, 70, 2, 1, 8, true}, DType::kBf16);
}

// Three groups of 64 queries are a block where there are products of warpgroups: 200 are two blocks.
TEST(FusedAttentionEmulation, MatchesWithHeadsOf128) {
  expect_both_ways({1, 100, 2, 1, 128, true}, DType::kBf16);
  expect_both_ways({1, 200, 1, 1, 128, true}, DType::kBf16);
}

// Masks are the CPU's, element by element; a tile's columns begin at 64, a head's number at 4.
TEST(DroppedAttentionEmulation, DropsWhatTheCpuDrops) {
  for (const DType type : {DType::kFp32, DType::kBf16, DType::kFp16}) {
    expect_both_ways({2, 13, 2, 2, 8, false}, type, true);
    expect_both_ways({1, 34, 4, 2, 6, false}, type, true);
    expect_both_ways({2, 11, 4, 2, 6, true}, type, true);
  }
  expect_both_ways({2, 70, 2, 1, 64, true}, DType::kBf16, true);
  expect_both_ways({1, 130, 2, 2, 64, true}, DType::kFp16, true);
  expect_both_ways({1, 70, 2, 1, 128, true}, DType::kBf16, true);
  expect_both_ways({1, 70, 2, 1, 80, true}, DType::kBf16, true);
}

/// The steps of a ring forward and backward, as one of its ranks does them.
struct RingShape {
  std::int64_t samples, sequence;
  int heads, kv_heads, dim, ranks;
};

void expect_ring(const RingShape& s, DType type, int rank, bool drops, bool warpgroups) {
  const double tolerance = tolerance_of(type);
  const std::int64_t tokens = s.samples * s.sequence / s.ranks, out = tokens * s.heads * s.dim;
  const std::int64_t qkv = tokens * (s.heads + 2 * s.kv_heads) * s.dim, kv = tokens * 2 * s.kv_heads * s.dim;
  std::vector<double> y = uniform(out, 2), log_sums = uniform(tokens * s.heads, 3), dqkv = uniform(qkv, 4);
  const auto prepared = [&](OpKind kind, int step) {
    EmulatedCall call(kind, tokens, s.heads * s.dim, step);
    call.op.heads = s.heads, call.op.kv_heads = s.kv_heads, call.op.head_dim = s.dim, call.op.flash = true;
    call.op.sequence = static_cast<std::int32_t>(s.sequence), call.op.parts = s.ranks;
    call.a.context_rank = rank, call.a.context_ranks = s.ranks;
    if (drops) drop_a_quarter(call, s.sequence);
    call.warpgroups = warpgroups;
    return call;
  };
  const auto kv_of = [&](int step) { return uniform(kv, static_cast<unsigned>(10 + step)); };
  for (int step = 0; step < s.ranks; ++step) {
    EmulatedCall call = prepared(OpKind::kAttentionBlock, step);
    call.with_in(0, Form::kTyped, uniform(qkv, 1)).with_in(1, Form::kTyped, kv_of(step));
    call.with_out(0, Form::kTyped, y).with_out(1, Form::kWide, log_sums);
    expect_equal_to_emulation(call, type, tolerance);
    const auto after = call.on_cpu(type);
    y = after[0], log_sums = after[1];
  }
  for (int step = 0; step < s.ranks; ++step) {
    EmulatedCall call = prepared(OpKind::kAttentionBlockBackward, step);
    call.with_in(0, Form::kTyped, uniform(qkv, 1)).with_in(1, Form::kTyped, y);
    call.with_in(2, Form::kWide, log_sums).with_in(3, Form::kTyped, uniform(out, 5));
    call.with_in(4, Form::kTyped, kv_of(step)).with_out(0, Form::kTyped, dqkv);
    call.with_out(1, Form::kTyped, uniform(kv, 6));
    expect_equal_to_emulation(call, type, tolerance);
    dqkv = call.on_cpu(type)[0];
  }
}

void expect_ring(const RingShape& s, DType type, int rank, bool drops) {
  for (const bool warpgroups : {false, true}) expect_ring(s, type, rank, drops, warpgroups);
}

// Of two ranks: rank 1 sees its own keys, then those of rank 0, and merges.
TEST(RingAttentionEmulation, MergesTheStepsOfTheRing) {
  for (const DType type : {DType::kFp32, DType::kBf16, DType::kFp16}) {
    for (const int rank : {0, 1}) {
      for (const bool drops : {false, true}) expect_ring({2, 16, 2, 1, 6, 2}, type, rank, drops);
    }
  }
}

// Heads with a fused kernel: chunks of 35 tokens end within a warp's rows, of 80 within a tile.
TEST(RingAttentionEmulation, MergesFusedSteps) {
  for (const int rank : {0, 1}) expect_ring({1, 4 * 35, 2, 1, 64, 2}, DType::kBf16, rank, false);
  for (const int rank : {0, 1, 2}) expect_ring({1, 6 * 20, 1, 1, 64, 3}, DType::kBf16, rank, false);
  expect_ring({2, 4 * 20, 4, 2, 64, 2}, DType::kBf16, 0, false);
  for (const int rank : {0, 1}) expect_ring({1, 4 * 80, 1, 1, 128, 2}, DType::kBf16, rank, false);
  for (const int rank : {0, 1}) expect_ring({1, 4 * 80, 1, 1, 64, 2}, DType::kFp16, rank, false);
  expect_ring({2, 4 * 10, 2, 1, 128, 2}, DType::kBf16, 1, false);
  for (const int rank : {0, 1}) expect_ring({1, 4 * 100, 1, 1, 128, 2}, DType::kBf16, rank, false);
  expect_ring({1, 4 * 10, 1, 1, 64, 2}, DType::kBf16, 1, true);
  for (const int rank : {0, 1}) expect_ring({1, 4 * 35, 2, 1, 80, 2}, DType::kBf16, rank, false);
}

// Four query heads on two and on one key head over two ranks: the one is shared.
TEST(ContextCopiesEmulation, MoveWhatTheCpuMoves) {
  for (const int kv_heads : {0, 1, 2, 4}) {
    const std::int64_t dim = 3, tokens = 16, part_kv = kv_heads == 0 ? 0 : std::max(1, kv_heads / 2);
    const std::int64_t width = (4 + 2 * kv_heads) * dim, part = (2 + 2 * part_kv) * dim;
    const auto prepared = [&](OpKind kind, std::int64_t m, std::int64_t n) {
      EmulatedCall call(kind, m, n, 0);
      call.op.heads = 4, call.op.kv_heads = kv_heads, call.op.head_dim = 3;
      call.op.sequence = 16, call.op.parts = 2;
      call.a.context_ranks = 2;
      return call;
    };
    EmulatedCall pack = prepared(OpKind::kPackHeads, tokens, 2 * part);
    expect_equal_to_emulation(pack.with_in(0, Form::kTyped, uniform(tokens * width, 1))
                                  .with_out(0, Form::kTyped, uniform(2 * tokens * part, 2)));
    EmulatedCall unpack = prepared(OpKind::kUnpackHeads, tokens, 2 * part);
    expect_equal_to_emulation(unpack.with_in(0, Form::kTyped, uniform(2 * tokens * part, 1))
                                  .with_out(0, Form::kTyped, uniform(tokens * width, 2)));
    for (const OpKind kind : {OpKind::kPackTokens, OpKind::kUnpackTokens}) {
      EmulatedCall moved = prepared(kind, 2 * tokens, part);
      moved.with_in(0, Form::kTyped, uniform(2 * tokens * part, 1));
      moved.with_out(0, Form::kTyped, uniform(2 * tokens * part, 2));
      for (const auto method : {program::ContextMethod::kRing, program::ContextMethod::kAllToAll}) {
        moved.a.context_method = method;
        expect_equal_to_emulation(moved);
      }
    }
    if (kv_heads == 0) continue;
    const std::int64_t kv = 2 * kv_heads * dim;
    EmulatedCall split = prepared(OpKind::kSplitKv, tokens, kv), join = prepared(OpKind::kJoinKv, tokens, kv);
    expect_equal_to_emulation(
        split.with_in(0, Form::kTyped, uniform(tokens * width, 1)).with_out(0, Form::kTyped, uniform(tokens * kv, 2)));
    expect_equal_to_emulation(
        join.with_in(0, Form::kTyped, uniform(tokens * kv, 1)).with_out(0, Form::kTyped, uniform(tokens * width, 2)));
  }
}

}  // namespace
}  // namespace trivium::runtime::cuda
