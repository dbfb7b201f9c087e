#include "calibration/foreign/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/foreign/intervals.h"
#include "calibration/foreign/meaning.h"
#include "tests/calibration/foreign/made_trace.h"

namespace trivium::calibration::foreign {
namespace {

using testing::ElementsAre;

/// 2 samples of 64 tokens, hidden 64 as the sequence is, 4 heads of 16, gated MLP of 160, 1000 words.
PlanShapes small_shapes() {
  PlanShapes shapes;
  shapes.hidden = 64;
  shapes.sequence = 64;
  shapes.rows = {128};
  shapes.inner = {160, 320};
  shapes.logits = {1000};
  shapes.head = {16, 8};
  shapes.products = {{"qkv", 64, {192, 64}, {128}},
                     {"attention_out", 64, {64}, {128}},
                     {"fc1", 64, {320, 160}, {128}},
                     {"fc2", 160, {64}, {128}},
                     {"head", 64, {1000}, {128}}};
  return shapes;
}

std::vector<std::string> ops_of(const MadeTrace& made) {
  const imports::KernelTrace trace = made.read();
  std::vector<std::string> ops;
  for (const Match& match : match_kernels(trace, small_shapes())) {
    if (match.kind != Match::Kind::kHost) ops.push_back(match.op);
  }
  return ops;
}

TEST(Intervals, AreJoinedCutAndTakenAway) {
  const Intervals busy({{4, 6}, {0, 2}, {1, 3}, {5, 5}});  // 0-3 and 4-6
  EXPECT_DOUBLE_EQ(busy.seconds(), 5);
  EXPECT_DOUBLE_EQ(Intervals({{2, 10}}).without(busy).seconds(), 5);  // 3-4 and 6-10
  EXPECT_DOUBLE_EQ(Intervals({{2, 5}}).within(busy).seconds(), 2);    // 2-3 and 4-5
  EXPECT_DOUBLE_EQ(busy.with(Intervals({{2, 5}})).seconds(), 6);
  EXPECT_DOUBLE_EQ(busy.within(busy).seconds(), busy.seconds());
}

TEST(Match, ProductsOfAGpuByTheShapesOfTheirOperators) {
  MadeTrace trace;
  trace.op("aten::addmm", 0, 5, {{192}, {128, 64}, {64, 192}}).kernel("sm90_xmma_gemm_bf16", 10, 20);
  trace.op("aten::mm", 5, 9, {{128, 64}, {64, 160}}).kernel("nvjet_tst_128x256", 20, 30);
  trace.op("aten::mm", 10, 12, {{128, 160}, {160, 64}}).kernel("ampere_bf16_s16816gemm", 30, 40);
  trace.op("aten::mm", 12, 14, {{128, 64}, {64, 1000}}).kernel("cutlass_80_tensorop", 40, 50);
  trace.op("aten::mm", 14, 16, {{77, 31}, {31, 5}}).kernel("cutlass_80_tensorop", 50, 60);
  EXPECT_THAT(ops_of(trace), ElementsAre("qkv", "fc1", "fc2", "head", ""));
}

// Tensor ranks of the plan have 500 words each; this trainer left the head whole.
TEST(Match, ProductsThatThePlanSplitsAreFoundWhole) {
  PlanShapes shapes = small_shapes();
  shapes.products.back().n = {500};
  shapes.unsplit = {{"head", 64, {1000}, {128}}};
  MadeTrace made;
  made.op("aten::mm", 0, 5, {{128, 64}, {64, 1000}}).kernel("sm90_xmma_gemm_bf16", 10, 20);
  made.op("aten::mm", 5, 9, {{128, 64}, {64, 160}}).kernel("nvjet_tst_128x256", 20, 30);
  const imports::KernelTrace trace = made.read();
  std::vector<std::string> whole, parts;
  for (const Match& match : match_kernels(trace, shapes)) (match.unsplit ? whole : parts).push_back(match.op);
  EXPECT_THAT(whole, ElementsAre("head"));
  EXPECT_THAT(parts, testing::Contains("fc1"));
}

// As many tokens as chose them: no number of rows is another op's.
TEST(Match, ExpertsHaveAnyNumberOfRows) {
  PlanShapes shapes = small_shapes();
  shapes.products.push_back({"expert_fc1", 64, {96, 48}, {32}, /*any_rows=*/true});
  shapes.products.push_back({"expert_fc2", 48, {64}, {32}, /*any_rows=*/true});
  shapes.expert_inner = {96, 48};
  MadeTrace made;
  made.op("aten::mm", 0, 5, {{37, 64}, {64, 48}}).kernel("gemm_1", 10, 20);
  made.op("aten::mul", 5, 6, {{37, 48}, {37, 48}}).kernel("elementwise", 20, 21);
  made.op("aten::mm", 6, 9, {{37, 48}, {48, 64}}).kernel("gemm_2", 21, 30);
  made.op("aten::add", 9, 10, {{37, 64}, {37, 64}}).kernel("elementwise", 30, 31);
  std::vector<std::string> ops;
  for (const Match& match : match_kernels(made.read(), shapes)) ops.push_back(match.op);
  EXPECT_THAT(ops, ElementsAre("expert_fc1", "activation", "expert_fc2", "route"));
}

// The query's matrix and the output's have one shape: the first product after an attention is its output's. Going back
// the output's gradients come last before the attention's.
TEST(Match, OfTwoProductsWithOneShapeTheOneAfterAttentionIsItsOutput) {
  const Dims square{{128, 64}, {64, 64}}, turned{{64, 128}, {128, 64}};
  MadeTrace trace;
  trace.op("aten::mm", 0, 1, square).kernel("gemm_q", 10, 11);
  trace.op("aten::_scaled_dot_product_flash_attention", 1, 2).kernel("flash_fwd_kernel", 11, 12);
  trace.op("aten::mm", 2, 3, square).kernel("gemm_o", 12, 13);
  trace.op("autograd::engine::evaluate_function: MmBackward0", 20, 25);
  trace.op("aten::mm", 21, 22, square).kernel("gemm_do", 30, 31);
  trace.op("aten::mm", 23, 24, turned).kernel("gemm_wo", 31, 32);
  trace.op("autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0", 25, 29);
  trace.op("aten::_scaled_dot_product_flash_attention_backward", 26, 28).kernel("flash_bwd_dq_dk_dv_loop", 32, 33);
  trace.op("autograd::engine::evaluate_function: MmBackward0", 30, 35);
  trace.op("aten::mm", 31, 32, square).kernel("gemm_dq", 33, 34);
  trace.op("aten::mm", 33, 34, turned).kernel("gemm_wq", 34, 35);
  EXPECT_THAT(ops_of(trace), ElementsAre("qkv", "attention", "attention_out", "attention_out_dgrad",
                                         "attention_out_wgrad", "attention_backward", "qkv_dgrad", "qkv_wgrad"));
}

// (64, 160) is the gradient of the first matrix, or of the second one's transpose: that of its node's other product.
TEST(Match, GradientsOfMatricesAreThoseOfTheInputsBesideThem) {
  MadeTrace trace;
  trace.op("autograd::engine::evaluate_function: MmBackward0", 0, 9);
  trace.op("aten::mm", 1, 2, {{64, 128}, {128, 160}}).kernel("gemm_a", 10, 11);
  trace.op("aten::mm", 3, 4, {{128, 64}, {64, 160}}).kernel("gemm_b", 11, 12);
  trace.op("autograd::engine::evaluate_function: MmBackward0", 10, 19);
  trace.op("aten::mm", 11, 12, {{64, 128}, {128, 160}}).kernel("gemm_c", 12, 13);
  trace.op("aten::mm", 13, 14, {{128, 160}, {160, 64}}).kernel("gemm_d", 13, 14);
  EXPECT_THAT(ops_of(trace), ElementsAre("fc2_wgrad", "fc2_dgrad", "fc1_wgrad", "fc1_dgrad"));
}

TEST(Match, PointwiseKernelsByWhatOnlyOnePartOfALayerHas) {
  const std::string pointwise = "void at::native::vectorized_elementwise_kernel<4>";
  MadeTrace trace;
  trace.op("aten::add", 0, 1, {{2, 64, 64}, {2, 64, 64}}).kernel(pointwise, 10, 11);    // the residual stream
  trace.op("aten::mul", 1, 2, {{2, 64, 64}, {64}}).kernel(pointwise, 11, 12);           // a norm's weight
  trace.op("aten::mul", 2, 3, {{2, 64, 160}, {2, 64, 160}}).kernel(pointwise, 12, 13);  // inside the MLP
  trace.op("aten::mul", 3, 4, {{2, 4, 64, 16}, {64, 16}}).kernel(pointwise, 13, 14);    // of heads
  trace.op("aten::div", 4, 5, {{2, 4, 64, 64}, {}}).kernel(pointwise, 14, 15);          // scores
  trace.op("aten::silu", 5, 6, {{2, 64, 160}}).kernel(pointwise, 15, 16);
  trace.op("aten::frobnicate", 6, 7, {{5, 7}}).kernel(pointwise, 16, 17);
  EXPECT_THAT(ops_of(trace),
              ElementsAre("bias_residual", "norm", "activation", "rotary", "attention", "activation", ""));
}

TEST(Match, WhatAnOptimizerCallsIsTheOptimizers) {
  MadeTrace trace;
  trace.range("Optimizer.step#AdamW.step", 0, 9);
  trace.op("aten::mul", 1, 2, {{2, 64, 160}}).kernel("vectorized_elementwise_kernel", 10, 11);
  trace.op("aten::_foreach_norm", 12, 13).kernel("multi_tensor_apply_kernel<LpNormFunctor>", 20, 21);
  trace.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 14, 18);
  trace.op("aten::add_", 15, 16, {{64, 64}}).kernel("vectorized_elementwise_kernel", 21, 22);
  EXPECT_THAT(ops_of(trace), ElementsAre("adamw", "gradient_norm", "add"));
}

TEST(Match, SaysWhatIsUnfusedAndWhatIsComputedAgain) {
  MadeTrace trace;
  trace.op("aten::bmm", 0, 1, {{8, 64, 16}, {8, 16, 64}}).kernel("gemm_scores", 10, 11);
  trace.op("aten::_softmax", 1, 2, {{2, 4, 64, 64}}).kernel("softmax_warp_forward", 11, 12);
  trace.op("CheckpointFunctionBackward", 5, 9);
  trace.op("aten::mm", 6, 7, {{128, 64}, {64, 160}}).kernel("gemm_again", 12, 13);
  const imports::KernelTrace read = trace.read();
  const std::vector<Match> matches = match_kernels(read, small_shapes());
  ASSERT_EQ(matches.size(), 3U);
  EXPECT_TRUE(matches[0].unfused && matches[1].unfused);
  EXPECT_EQ(matches[0].op, "attention");
  EXPECT_EQ(matches[2].op, "fc1");
  EXPECT_TRUE(matches[2].recomputed);
  EXPECT_FALSE(matches[0].recomputed);
}

// An operator on cores works where nothing that it called does: 0-2 and 8-10 of aten::mm; views are the host's time.
TEST(Match, OperatorsOnCoresWorkWhereTheyCallNone) {
  MadeTrace trace;
  trace.op("aten::linear", 0, 12, {{2, 64, 64}, {160, 64}});
  trace.op("aten::mm", 1, 11, {{128, 64}, {64, 160}});
  trace.op("aten::view", 3, 9, {{128, 64}});
  const imports::KernelTrace read = trace.read();
  EXPECT_TRUE(read.on_cores);
  double product = 0;
  int begun = 0;
  const std::vector<Match> matches = match_kernels(read, small_shapes());
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i].op != "fc1") continue;
    product += read.kernels[i].seconds;
    begun += read.kernels[i].begins ? 1 : 0;
  }
  EXPECT_NEAR(product, 4e-6, 1e-12);  // 1-3 and 9-11
  EXPECT_EQ(begun, 1);
}

TEST(Match, WithoutShapesProductsAreOne) {
  MadeTrace trace;
  trace.op("aten::mm", 0, 1).kernel("sm90_xmma_gemm_bf16", 10, 20);
  EXPECT_THAT(ops_of(trace), ElementsAre(kAnyProduct));
}

TEST(Meaning, NamesOfKernelsOfManyLibraries) {
  using enum Meaning;
  const std::vector<std::pair<std::string, Meaning>> known{
      {"void cutlass::device_kernel<flash::FlashAttnFwdSm90<>>", kFusedAttention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma", kFusedAttention},
      {"fmha_cutlassB_bf16_aligned_64x64_k64_sm80", kFusedAttention},
      {"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel", kNorm},
      {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel", kNorm},
      {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2", kNorm},
      {"triton_poi_fused_mul_silu_1", kActivation},
      {"multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", kOptimizer},
      {"void multi_tensor_apply_kernel<L2NormFunctor>", kGradientNorm},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", kCollective},
      {"void scaled_upper_triang_masked_softmax_warp_forward", kSoftmax},
      {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", kProduct},
      {"fused_rope_forward_kernel", kRotary},
      {"something_else", kUnknown}};
  for (const auto& [name, meaning] : known) EXPECT_EQ(meaning_of_kernel(name), meaning) << name;
  EXPECT_EQ(meaning_of_operator("aten::addcmul_"), kOptimizer);
  EXPECT_EQ(meaning_of_operator("autograd::engine::evaluate_function: SiluBackward0"), kActivation);
  EXPECT_FALSE(works("MmBackward0"));
  EXPECT_TRUE(works("fsdp::chunk_cat"));
}

}  // namespace
}  // namespace trivium::calibration::foreign
