#include "program/ir/op_kinds.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "program/ir/op_views.h"
#include "program/ir/rate_kind.h"
#include "program/plan/stack.h"

namespace trivium::program {
namespace {

Op op_of(OpKind kind, std::int64_t m, std::int64_t n, std::int64_t k = 0, DType type = DType::kFp16) {
  Op op;
  op.kind = kind;
  op.dtype = type;
  op.m = m, op.n = n, op.k = k;
  fill_work(op);
  return op;
}

Op attention(OpKind kind, bool flash, int kv_heads = 2) {
  Op op;
  op.kind = kind;
  op.dtype = DType::kFp16;
  op.m = 20, op.n = 12;  // two samples of 10 tokens
  op.heads = 2, op.kv_heads = kv_heads, op.head_dim = 6, op.sequence = 10;
  op.flash = flash;
  fill_work(op);
  return op;
}

// 2 · 3 · 5 · 7 = 210 FLOP in all three; bytes 2 (3·7 + 7·5 + 3·5) = 142; weight gradient 2 (3·7 + 3·5) + 8 · 35 = 352.
TEST(OpWork, OfAMatmulIsTwiceItsVolume) {
  for (const OpKind kind : {OpKind::kMatmul, OpKind::kMatmulDgrad, OpKind::kMatmulWgrad}) {
    EXPECT_EQ(op_of(kind, 3, 5, 7).flops, 210);
  }
  EXPECT_EQ(op_of(OpKind::kMatmul, 3, 5, 7).bytes, 142);
  EXPECT_EQ(op_of(OpKind::kMatmulWgrad, 3, 5, 7).bytes, 352);
  // fp64: 8 (3·7 + 3·5) + 16 · 35.
  EXPECT_EQ(op_of(OpKind::kMatmulWgrad, 3, 5, 7, DType::kFp64).bytes, 848);
}

// Square: 4 · 20 · 10 · 12 = 9,600 FLOP forward, twice that backward. Flash: half, and 2.5 times the half.
TEST(OpWork, OfAttentionCountsTheSquareUnfusedAndTheCausalHalfWithFlash) {
  EXPECT_EQ(attention(OpKind::kAttention, false).flops, 9600);
  EXPECT_EQ(attention(OpKind::kAttentionBackward, false).flops, 19200);
  EXPECT_EQ(attention(OpKind::kAttention, true).flops, 4800);
  EXPECT_EQ(attention(OpKind::kAttentionBackward, true).flops, 12000);
}

// A window of 4 of 10 keys: 4 - 16 / 20 = 3.2 of the half's 5 keys, 4 · 20 · 3.2 · 12 = 3,072 FLOP. Unfused kernels
// mask.
TEST(OpWork, OfAWindowCountsItsBandWithFlash) {
  Op op = attention(OpKind::kAttention, true);
  op.window = 4;
  fill_work(op);
  EXPECT_NEAR(op.flops, 3072, 1e-9);
  op.window = 10;
  fill_work(op);
  EXPECT_EQ(op.flops, 4800);
  op.window = 4, op.flash = false;
  fill_work(op);
  EXPECT_EQ(op.flops, 9600);
}

// 16 tokens on two ranks, chunks of 4, a window of 3. A chunk's own band is 3 · 4 - 9 / 2 = 7.5 scores, of the chunk
// before it 3²/2 = 4.5. In the first step rank 1 has chunks 1 and 2: 7.5 · 2 + 4.5 = 19.5; in the second chunk 3 sees 2
// on rank 0, and 1 sees 0 on rank 1: 4.5. 4 · 19.5 · 12 FLOP and 4 · 4.5 · 12, with the full square 4 · 32 · 12.
TEST(OpWork, OfARingsStepsWithAWindowIsThatOfTheBusiestRank) {
  Op op = attention(OpKind::kAttentionBlock, true);
  op.m = 8, op.sequence = 16, op.parts = 2;
  const auto flops_of = [&](int step, int window) {
    op.k = step, op.window = window;
    fill_work(op);
    return op.flops;
  };
  EXPECT_NEAR(flops_of(0, 3), 936, 1e-9);
  EXPECT_NEAR(flops_of(1, 3), 216, 1e-9);
  EXPECT_NEAR(flops_of(1, 0), 1536, 1e-9);
}

// Chunks of 4 of 10 keys: triangles of 4, 4 and 2 on the diagonal, (16 + 16 + 4) / 2 / 10 = 1.8 keys a query.
TEST(OpWork, OfChunksCountsTheirTrianglesWithFlash) {
  Op op = attention(OpKind::kAttention, true);
  op.window = 4, op.chunked = true;
  fill_work(op);
  EXPECT_NEAR(op.flops, 4 * 20 * 1.8 * 12, 1e-9);
}

// 16 tokens on two ranks, chunks of a ring of 4, of attention 6, 6 and 4. In the first step rank 0 has the first,
// 4²/2 = 8, and the last, 8: 16; rank 1 those between, tokens 4 and 5 apart, then 6 and 7, then 8 to 11: 2 + 2 + 8, and
// the second sees 2 of the first: 8 more, 20. In the second step 4 and 5 see the first chunk, 2 · 4 = 8 scores, on rank
// 1, and nothing is seen on rank 0, as token 12 begins a chunk.
TEST(OpWork, OfARingsStepsWithChunksIsThatOfTheBusiestRank) {
  Op op = attention(OpKind::kAttentionBlock, true);
  op.m = 8, op.sequence = 16, op.parts = 2, op.window = 6, op.chunked = true;
  fill_work(op);
  EXPECT_NEAR(op.flops, 4 * 20 * 12, 1e-9);
  op.k = 1;
  fill_work(op);
  EXPECT_NEAR(op.flops, 4 * 8 * 12, 1e-9);
}

// Scores 20 · 10 · 2 = 400: 9 B and 11 B each; layout 18 · 20 · 12 = 4,320 B, with one key-value head
// 20 · 6 · (4 · (2 + 2) + 6 · 2) = 3,360 B.
TEST(OpWork, OfAttentionMovesScoresOnlyUnfused) {
  EXPECT_EQ(attention(OpKind::kAttention, false).bytes, 3600 + 4320);
  EXPECT_EQ(attention(OpKind::kAttentionBackward, false).bytes, 4400 + 4320);
  EXPECT_EQ(attention(OpKind::kAttention, true).bytes, 4320);
  EXPECT_EQ(attention(OpKind::kAttention, true, 1).bytes, 3360);
}

// What published runs identify, per token and hidden element: 22 B forward and 30 B backward replicated over the tensor
// group, 34 and 42 B divided by it.
TEST(OpWork, OfALayersPointwiseKernelsSumsToTheFittedTraffic) {
  const auto bytes = [](OpKind kind, std::int64_t n) { return op_of(kind, 1, n).bytes; };
  EXPECT_EQ(2 * bytes(OpKind::kNorm, 1) + 2 * bytes(OpKind::kBiasResidual, 1), 22);
  EXPECT_EQ(2 * bytes(OpKind::kNormBackward, 1) + 2 * bytes(OpKind::kBiasResidualBackward, 1), 30);
  const double layout = 18;  // of attention, above
  EXPECT_EQ(bytes(OpKind::kActivation, 4) + layout, 34);
  EXPECT_EQ(bytes(OpKind::kActivationBackward, 4) + layout, 42);
}

// Forward reads gate and up and writes one: 6 B; backward reads both and dy and writes both: 10 B.
TEST(OpWork, OfAGatedActivationReadsTwoInputs) {
  const auto gated = static_cast<std::int64_t>(models::Activation::kSwiglu);
  EXPECT_EQ(op_of(OpKind::kActivation, 1, 1, gated).bytes, 6);
  EXPECT_EQ(op_of(OpKind::kActivationBackward, 1, 1, gated).bytes, 10);
}

// The statistics are fp32 with 16-bit parameters: the count is theirs, and not scaled up from 16 bit.
TEST(OpWork, OfTheLossSumsTo33BytesPerLogit) {
  double sum = 0;
  for (const OpKind kind : {OpKind::kLossMax, OpKind::kLossSums, OpKind::kLossBackward}) {
    Op op;
    op.kind = kind;
    op.dtype = DType::kFp32;
    op.m = 1, op.n = 100;
    fill_work(op);
    sum += op.bytes;
  }
  EXPECT_EQ(sum, 3300);
}

// 12 and 16 B per token·hidden, and 8 B for every element of the table.
TEST(OpWork, OfTheEmbeddingPassesOverTheWholeGradient) {
  EXPECT_EQ(op_of(OpKind::kEmbedding, 10, 4, 50).bytes + op_of(OpKind::kPosition, 10, 4, 10).bytes, 480);
  EXPECT_EQ(op_of(OpKind::kEmbeddingBackward, 10, 4, 50).bytes + op_of(OpKind::kPositionBackward, 10, 4, 10).bytes,
            640 + 8 * 200);
}

// 16-bit parameters: norm 4 B (fp32 gradients) + AdamW 19 = 23 B of the shard, zeroing 4 B. fp64: 7 · 8 = 56.
TEST(OpWork, OfTheOptimizerIs23BytesPerParameterAnd4) {
  const auto bytes = [](OpKind kind, DType type) {
    Op op;
    op.kind = kind;
    op.dtype = type;
    op.elements = 1;
    fill_work(op);
    return op.bytes;
  };
  EXPECT_EQ(bytes(OpKind::kGradientNorm, DType::kFp32) + bytes(OpKind::kAdamW, DType::kBf16), 23);
  EXPECT_EQ(bytes(OpKind::kZeroGradients, DType::kFp32), 4);
  EXPECT_EQ(bytes(OpKind::kAdamW, DType::kFp64), 56);
  EXPECT_EQ(bytes(OpKind::kAllReduce, DType::kFp16), 2);
}

// Two 3 x 5 matrices, five iterations: 10 (4 · 9 · 5 + 2 · 27) FLOPs.
TEST(OpWork, OfMuonIsThatOfItsIterations) {
  Op op;
  op.kind = OpKind::kMuonStep;
  op.dtype = DType::kBf16;
  op.m = 3, op.n = 5, op.k = 5, op.experts = 2;
  fill_work(op);
  EXPECT_EQ(op.flops, 2340);
  op.kind = OpKind::kMuonMomentum;
  op.dtype = DType::kFp32;
  op.elements = 30;
  fill_work(op);
  EXPECT_EQ(op.bytes, 360);
}

// Two moments are read and written: 4 · 8 B of fp64 become 4 · 2 B, and 16 of the 30 B around an fp32 copy become 8.
TEST(OpWork, OfNarrowMomentsIsFewerBytes) {
  Op op;
  op.kind = OpKind::kAdamW;
  op.moments = Moments::kBf16;
  op.elements = 1;
  op.dtype = DType::kFp64;
  fill_work(op);
  EXPECT_EQ(op.bytes, 3 * 8 + 8);
  op.dtype = DType::kBf16;
  fill_work(op);
  EXPECT_NEAR(op.bytes, 19 * 22 / 30.0, 1e-12);
}

TEST(RateKind, TellsAttentionApartByItsKernels) {
  EXPECT_EQ(name_of(rate_kind_of(attention(OpKind::kAttention, false))), "attention");
  EXPECT_EQ(name_of(rate_kind_of(attention(OpKind::kAttention, true))), "flash_attention");
  EXPECT_EQ(name_of(rate_kind_of(attention(OpKind::kAttentionBackward, true))), "flash_attention_backward");
  EXPECT_EQ(name_of(other_kernels(rate_kind_of(attention(OpKind::kAttentionBackward, true)))), "attention_backward");
  Op product = op_of(OpKind::kMatmul, 3, 5, 7);
  product.flash = true;  // means nothing here
  EXPECT_EQ(name_of(rate_kind_of(product)), "matmul");
  EXPECT_EQ(name_of(other_kernels(rate_kind_of(product))), "matmul");
}

// Two samples of 10 tokens and 2 heads: a block each. Of 130 tokens: 64, 64 and 2, so 2 · 2 · 3.
TEST(QueryBlocks, AreOfSixtyFourQueriesOfAHead) {
  Op op = attention(OpKind::kAttention, true);
  EXPECT_EQ(query_blocks(op), 4);
  op.m = 260, op.sequence = 130;
  EXPECT_EQ(query_blocks(op), 12);
  EXPECT_EQ(query_blocks(op_of(OpKind::kMatmul, 64, 64, 64)), 0);
}

}  // namespace
}  // namespace trivium::program
