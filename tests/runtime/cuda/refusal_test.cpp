// What is refused by name before a GPU is asked for anything.
#include "runtime/cuda/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "base/files.h"
#include "program/lower/lower.h"
#include "runtime/cuda/operations.h"
#include "tests/runtime/cuda/host_threads.h"

namespace trivium::runtime::cuda {
namespace {

using program::DType;

program::Job job_of(DType precision) {
  program::Job job;
  job.model.name = "toy";
  job.model.layers = 2, job.model.hidden = 32, job.model.heads = job.model.kv_heads = 4, job.model.head_dim = 8;
  job.model.ffn_hidden = 64, job.model.vocab = 61, job.model.max_sequence = 16;
  job.training.sequence = 16, job.training.global_batch = 4;
  job.plan.precision = precision;
  return job;
}

/// The first refusal of an op of the job, or "".
std::string refusal_for(const program::Job& job) {
  const auto program = std::get<program::Program>(program::lower(job));
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) {
      if (std::string why = refusal_of(program, op); !why.empty()) return why;
    }
  }
  return "";
}

TEST(CudaRefusal, TakesFp32And16BitsAlone) {
  EXPECT_EQ(refusal_for(job_of(DType::kFp32)), "");
  EXPECT_EQ(refusal_for(job_of(DType::kBf16)), "");
  EXPECT_EQ(refusal_for(job_of(DType::kFp16)), "");
  program::Job dropped = job_of(DType::kBf16);
  dropped.training.dropout = 0.1;
  EXPECT_EQ(refusal_for(dropped), "");
  EXPECT_EQ(refusal_for(job_of(DType::kFp64)),
            "the CUDA backend runs fp32, bf16 and fp16, not fp64; use --precision bf16");
  program::Job job = job_of(DType::kFp16);
  job.plan.stack = "megatron-deepspeed";
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("the megatron-deepspeed stack in fp16; use --stack trivium"));
}

TEST(CudaRefusal, NamesAdaptersBesideFrozenWeights) {
  program::Job job = job_of(DType::kBf16);
  for (const double alpha : {0.0, 4.0}) {
    job.training.lora = {.rank = 2, .alpha = alpha};
    EXPECT_THAT(refusal_for(job), testing::HasSubstr("no adapters next to frozen weights"));
  }
}

TEST(CudaRefusal, NamesParametersGatheredInEightBits) {
  program::Job job = job_of(DType::kBf16);
  job.plan.fp8 = program::Fp8::kCurrent;
  job.plan.data = 2, job.plan.zero_stage = 1;
  EXPECT_EQ(refusal_for(job), "");
  job.plan.fp8_parameter_gather = program::Fp8Gather::kOn;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("use --fp8-parameter-gather off"));
}

TEST(CudaRefusal, NamesPackedDocuments) {
  program::Job job = job_of(DType::kBf16);
  job.training.documents.lengths = {4};
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no attention to packed documents"));
}

TEST(CudaRefusal, NamesWhatItDoesNotReduceOrFuse) {
  program::Job job = job_of(DType::kBf16);
  job.plan.data = 2;
  job.plan.reduce_dtype = DType::kBf16;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("--reduce-dtype fp32"));
  job = job_of(DType::kBf16);
  job.model.linear_bias = job.model.qkv_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2};
  job.plan.data = job.plan.expert = 2;
  EXPECT_EQ(refusal_for(job), "");
  job.plan.expert_dispatch = program::ExpertDispatch::kAllToAll;
  EXPECT_EQ(refusal_for(job), "");
  job.plan.expert_dispatch = program::ExpertDispatch::kDeepEp;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("not by deepep; use --expert-dispatch all_to_all"));
  job.plan.expert_dispatch = program::ExpertDispatch::kStack;
  job.plan.overlap.expert = true;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("(overlap.expert); use --backend cpu"));
  job = job_of(DType::kBf16);
  job.model.heads = job.model.kv_heads = 1;
  job.model.head_dim = 288;
  job.plan.attention = program::Attention::kFlash;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("heads of up to 256, not 288"));
  job = job_of(DType::kBf16);
  job.model.window = models::Window{.keys = 8, .first_layer = 1};
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no attention with windows yet (of 8 keys)"));
  job = job_of(DType::kBf16);
  job.model.attention_sinks = true;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no attention with sinks yet"));
  job = job_of(DType::kBf16);
  job.model.activation = models::Activation::kClampedSwiglu;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no clamped SwiGLU yet"));
  job = job_of(DType::kBf16);
  job.model.logit_soft_cap = 30;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no soft caps yet"));
  job = job_of(DType::kBf16);
  job.model.embedding_scale = 6;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no scaled embeddings yet"));
  job = job_of(DType::kBf16);
  job.model.experts = models::Experts{.count = 4};
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no biases of experts yet"));
  job = job_of(DType::kBf16);
  job.plan.fp8 = program::Fp8::kNvfp4;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("supports fp8 delayed, current, block and mxfp8, not nvfp4"));
  for (const auto recipe :
       {program::Fp8::kBlock, program::Fp8::kMxfp8, program::Fp8::kDelayed, program::Fp8::kCurrent}) {
    job.plan.fp8 = recipe;
    EXPECT_EQ(refusal_for(job), "");
  }
  job.plan.micro_batch = 1, job.training.sequence = 8;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("takes tokens in multiples of 16, not 8"));
  job.training.sequence = 16, job.model.linear_bias = false, job.model.experts = models::Experts{.count = 4};
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("takes tokens of an expert in multiples of 16, not 5"));
  job.model.experts->capacity_factor = 4;
  EXPECT_EQ(refusal_for(job), "");
  job = job_of(DType::kFp32);
  job.plan.fp8 = program::Fp8::kCurrent;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("needs precision bf16, not fp32"));
  job = job_of(DType::kBf16);
  job.plan.moment_dtype = program::Moments::kBf16;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("moments in fp32, not bf16 yet; use --moment-dtype fp32"));
}

/// What a job is told on a GPU with tensor cores for 16 bits, or without.
std::string slow_path_for(const program::Job& job, bool has_tiles = true) {
  return slow_path_of(std::get<program::Program>(program::lower(job)), has_tiles);
}

// What has no fused kernel is products of matrices, but for dropout and rings.
TEST(CudaSlowPath, IsToldWhereAttentionGoesRowByRow) {
  const auto goes_by_rows = [](const std::string& why) {
    return testing::AllOf(testing::StartsWith("attention " + why), testing::HasSubstr("row by row"));
  };
  program::Job job = job_of(DType::kBf16);
  job.training.dropout = 0.1;
  EXPECT_EQ(slow_path_for(job, false), "") << "products of matrices on any GPU";
  job.plan.attention = program::Attention::kFlash;
  EXPECT_EQ(slow_path_for(job), "");
  EXPECT_THAT(slow_path_for(job, false), goes_by_rows("on a GPU older than sm_80"));
  EXPECT_THAT(slow_path_for(job, false), testing::HasSubstr("--attention unfused"));
  job.training.dropout = 0;
  EXPECT_EQ(slow_path_for(job, false), "");
  job.model.heads = job.model.kv_heads = 1;
  job.model.head_dim = 84;
  EXPECT_EQ(slow_path_for(job), "");
  job.training.dropout = 0.1;
  EXPECT_THAT(slow_path_for(job), goes_by_rows("with heads of 84"));
  job.model.head_dim = 80;
  EXPECT_EQ(slow_path_for(job), "");
  job = job_of(DType::kFp32);
  job.plan.attention = program::Attention::kFlash;
  EXPECT_EQ(slow_path_for(job), "");
  job.plan.context = 2;
  EXPECT_THAT(slow_path_for(job), goes_by_rows("in fp32"));
  job.plan.precision = DType::kBf16;
  EXPECT_EQ(slow_path_for(job), "");
  job.training.dropout = 0.1;
  EXPECT_THAT(slow_path_for(job), goes_by_rows("with dropout around a ring"));
}

// Blocks have products from Hopper on, those of MXFP8 from Blackwell on.
TEST(CudaSlowPath, IsToldWhereCodesAreReadBack) {
  program::Job job = job_of(DType::kBf16);
  const auto told = [&](program::Fp8 recipe, ScaledProducts scaled) {
    job.plan.fp8 = recipe;
    return read_back_of(std::get<program::Program>(program::lower(job)), scaled);
  };
  for (const auto scaled : {ScaledProducts::kNone, ScaledProducts::kBlocks128, ScaledProducts::kBlocks32}) {
    EXPECT_EQ(told(program::Fp8::kNone, scaled), "");
    EXPECT_EQ(told(program::Fp8::kCurrent, scaled), "");
  }
  EXPECT_THAT(told(program::Fp8::kBlock, ScaledProducts::kNone), testing::HasSubstr("by the scales of fp8 block"));
  EXPECT_EQ(told(program::Fp8::kBlock, ScaledProducts::kBlocks128), "");
  EXPECT_EQ(told(program::Fp8::kBlock, ScaledProducts::kBlocks32), "");
  EXPECT_THAT(told(program::Fp8::kMxfp8, ScaledProducts::kNone), testing::HasSubstr("by the scales of fp8 mxfp8"));
  EXPECT_THAT(told(program::Fp8::kMxfp8, ScaledProducts::kBlocks128),
              testing::HasSubstr("of the same numbers in bf16"));
  EXPECT_EQ(told(program::Fp8::kMxfp8, ScaledProducts::kBlocks32), "");
}

TEST(CudaRefusal, NamesLatentAttentionAndTodaysRouters) {
  program::Job job = job_of(DType::kBf16);
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2};
  EXPECT_EQ(refusal_for(job), "");
  job.model.experts->dropless = true;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("or dropless experts yet; use --backend cpu"));
  job = job_of(DType::kBf16);
  job.model.positions = models::Positions::kRotary;
  job.model.qkv_bias = false;
  job.model.latent = models::Latent{8, 8, 4, 4, 4};
  job.model.head_dim = 8;
  EXPECT_EQ(refusal_for(job), "the CUDA backend has no latent attention yet; use --backend cpu");
}

TEST(CudaRefusal, NamesWhatLlama4AndGrokAdd) {
  program::Job job = job_of(DType::kBf16);
  job.model.positions = models::Positions::kRotary;
  job.model.plain_head_norms = true;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no norms of heads without weights yet"));
  job.model.plain_head_norms = false;
  job.model.window = models::Window{.keys = 16, .full_every = 2, .chunked = true, .plain_full = true};
  EXPECT_EQ(refusal_for(job), "");
  job.model.temperature = models::Temperature{.slope = 0.1, .run = 8};
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no queries that grow with their position yet"));
  job = job_of(DType::kBf16);
  job.model.linear_bias = false;
  job.model.experts = models::Experts{.count = 4, .top_k = 2, .scales_input = true};
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no gates on what experts read yet"));
  job = job_of(DType::kBf16);
  job.model.logit_scale = 0.5;
  EXPECT_THAT(refusal_for(job), testing::HasSubstr("no factors on logits yet"));
}

// Every op kind that computes has a emulated in both types, and so a kernel: the table is the device's. Casts to 8
// bits, latent attention, dropless experts, biases of experts and growing queries, which are refused by name, have none
// yet.
TEST(CudaOperations, CoverEveryKindThatComputes) {
  for (int kind = 0; kind < program::kOpKinds; ++kind) {
    program::Op op;
    op.kind = static_cast<program::OpKind>(kind);
    const bool found =
        (row_operation<Bf16, HostLauncher>(op) != nullptr) + (attention_operation<Bf16, HostLauncher>(op) != nullptr) +
            (state_operation<Bf16, HostLauncher>(op) != nullptr) + (wire_operation<HostLauncher>(op) != nullptr) ==
        1;
    static const std::set<program::OpKind> kRefused = {
        program::OpKind::kQuantize,           program::OpKind::kRecordLargest, program::OpKind::kLatentNorm,
        program::OpKind::kLatentNormBackward, program::OpKind::kLatentHeads,   program::OpKind::kLatentHeadsBackward,
        program::OpKind::kCountRows,          program::OpKind::kExpertBias,    program::OpKind::kExpertBiasBackward,
        program::OpKind::kScaleQueries,       program::OpKind::kMuonMomentum,  program::OpKind::kMuonStep};
    const bool computes = !program::is_communication(op.kind) && !kRefused.contains(op.kind);
    EXPECT_EQ(found, computes) << name_of(op.kind);
  }
}

// The page's table begins each row with what a refusal says.
TEST(CudaRefusal, StandsInTheDocs) {
  const std::string top = TRIVIUM_SOURCE_DIR;
  const std::string page = base::read_file(top + "/docs/explanation/cuda.md");
  const std::string source =
      std::regex_replace(base::read_file(top + "/runtime/cuda/refusal.cpp"), std::regex("\"\\s*\n\\s*\""), "");
  const std::regex refusal("\"the CUDA backend(?:'s)? ([^\"]+)\"");
  int refusals = 0;
  for (auto at = std::sregex_iterator(source.begin(), source.end(), refusal); at != std::sregex_iterator(); ++at) {
    const std::string said = at->str(1);
    const std::string words = said.substr(0, said.find_first_of(",;:({"));
    const std::string row = std::regex_replace(words, std::regex("( yet)? *$"), "");
    EXPECT_NE(page.find("\n| " + row), std::string::npos) << row;
    ++refusals;
  }
  EXPECT_GE(refusals, 28);
}

}  // namespace
}  // namespace trivium::runtime::cuda
