#include "planner/launch/launch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/plan/job_json.h"
#include "tests/input_error.h"

namespace trivium::planner::launch {
namespace {

using program::Recompute;
using program::Schedule;
using program::Storage;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Narayanan et al. 2021: GPT-3 175B on 1,024 A100s.
program::Job gpt3() {
  program::Job job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = 2048;
  job.training.global_batch = 1536;
  job.training.total_tokens = 100 * 1536 * 2048;
  job.plan.tensor = 8;
  job.plan.pipeline = 16;
  job.plan.data = 8;
  job.plan.recompute = Recompute::kFull;
  job.plan.stack = "megatron-core";
  return job;
}

Launch exported(const program::Job& job, Trainer trainer) {
  const int nodes = (job.plan.ranks() + 7) / 8;
  return export_plan(job, hardware::load_cluster("dgx-a100-80gb:" + std::to_string(nodes)), trainer);
}

// One size for all replicas: what the files say adds up to the batch, or there is no file.
TEST(Export, ReplicasOfUnlikeMicroBatchesAreWrittenWithOne) {
  program::Job job;
  job.model = models::load_model("gpt2-124m");
  job.training.sequence = 1024;
  job.training.global_batch = 24;
  job.plan.data = 2;
  job.plan.replica_micro_batch = {8, 4};
  for (const TrainerVersion& trainer : trainers()) {
    SCOPED_TRACE(trainer.name);
    const Launch launch = exported(job, trainer.trainer);
    EXPECT_THAT(launch.losses, testing::Contains(testing::Field(&Loss::field, "replica_micro_batch")));
    if (trainer.trainer != Trainer::kDeepspeed) continue;
    EXPECT_THAT(launch.text, HasSubstr("\"train_batch_size\": 24"));
    EXPECT_THAT(launch.text, HasSubstr("\"train_micro_batch_size_per_gpu\": 4"));
    EXPECT_THAT(launch.text, HasSubstr("\"gradient_accumulation_steps\": 3"));
  }
  // Interleaved, the micro-batches of a replica come in multiples of the stages: six of one sample, not three of two.
  job.plan.pipeline = 2;
  job.plan.virtual_stages = 2;
  job.plan.schedule = Schedule::kInterleaved;
  job.training.global_batch = 12;
  job.plan.replica_micro_batch = {4, 2};
  const Launch interleaved = exported(job, Trainer::kMegatron);
  EXPECT_THAT(interleaved.text, HasSubstr("--micro-batch-size 1 "));
  job.plan = {};
  job.plan.data = 2;
  job.plan.replica_micro_batch = {2, 1};
  job.training.global_batch = 9;
  EXPECT_THROW(exported(job, Trainer::kMegatron), base::Failure);
}

ImportRequest request_of(std::string text) {
  ImportRequest request;
  request.text = std::move(text);
  request.where = "launch.sh";
  return request;
}

std::vector<std::string> fields(const std::vector<Loss>& losses) {
  std::vector<std::string> names;
  for (const Loss& loss : losses) names.push_back(loss.field);
  return names;
}

std::string message_of(const std::string& text, Imported (*import)(const ImportRequest&)) {
  return input_error([&] { import(request_of(text)); }, "no error");
}

void expect_same(const program::Job& read, const program::Job& written) {
  EXPECT_EQ(program::to_json(read.plan), program::to_json(written.plan));
  EXPECT_EQ(program::to_json(read.training), program::to_json(written.training));
  EXPECT_EQ(read.model, written.model);
}

TEST(MegatronExport, WritesThePublishedJob) {
  const Launch launch = exported(gpt3(), Trainer::kMegatron);
  EXPECT_THAT(launch.text,
              AllOf(HasSubstr("export CUDA_DEVICE_MAX_CONNECTIONS=1"), HasSubstr("--nnodes 128 --nproc-per-node 8"),
                    HasSubstr("--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --ffn-hidden-size 49152"),
                    HasSubstr("--tensor-model-parallel-size 8"), HasSubstr("--pipeline-model-parallel-size 16"),
                    HasSubstr("--micro-batch-size 1 --global-batch-size 1536"), HasSubstr("--recompute-method uniform"),
                    HasSubstr("--recompute-num-layers 1"), HasSubstr("--train-iters 100"), HasSubstr("--bf16")));
  EXPECT_THAT(launch.text, Not(HasSubstr("--sequence-parallel")));
  EXPECT_THAT(launch.losses, IsEmpty());
}

TEST(MegatronExport, NamesTheRecipeOfProductsIn8Bits) {
  program::Job job = gpt3();
  job.plan.fp8 = program::Fp8::kCurrent;
  EXPECT_THAT(exported(job, Trainer::kMegatron).text, HasSubstr("--fp8-format hybrid --fp8-recipe tensorwise"));
  job.plan.fp8 = program::Fp8::kMxfp8;
  EXPECT_THAT(exported(job, Trainer::kMegatron).text, HasSubstr("--fp8-format e4m3 --fp8-recipe mxfp8"));
  for (const Trainer other : {Trainer::kDeepspeed, Trainer::kTorchtitan, Trainer::kNemo, Trainer::kAccelerate}) {
    EXPECT_THAT(fields(exported(job, other).losses), ::testing::Contains("fp8"));
  }
}

// Megatron-Core asks for virtual stages where there is a pipeline, and for no full recomputation; so does `check`.
TEST(MegatronExport, SwitchesExchangesBesideOtherPassesOn) {
  program::Job job = gpt3();
  job.model = models::load_model("qwen3-30b-a3b");
  job.plan = {};
  job.plan.data = job.plan.expert = 8;
  job.plan.overlap.expert = true;
  const std::string text = exported(job, Trainer::kMegatron).text;
  EXPECT_THAT(text, AllOf(HasSubstr("--overlap-moe-expert-parallel-comm"), HasSubstr("--delay-wgrad-compute"),
                          HasSubstr("export CUDA_DEVICE_MAX_CONNECTIONS=8")));
  EXPECT_TRUE(import_megatron(request_of(text)).job.plan.overlap.expert);
  EXPECT_THAT(exported(job, Trainer::kMegatronBridge).text,
              HasSubstr("overlap_moe_expert_parallel_comm=True, delay_wgrad_compute=True"));
  for (const Trainer other : {Trainer::kDeepspeed, Trainer::kTorchtitan, Trainer::kNemo}) {
    EXPECT_THAT(fields(exported(job, other).losses), testing::Contains("overlap.expert"));
  }
  job.plan.overlap.expert = false;
  EXPECT_THAT(exported(job, Trainer::kMegatron).text, Not(HasSubstr("overlap-moe-expert-parallel-comm")));
}

// The dispatcher is Megatron-Bridge's setting; stacks that have another than an all-to-all read back as the field.
TEST(MegatronBridgeExport, NamesTheDispatcherThatTheStackHas) {
  program::Job job = gpt3();
  job.model = models::load_model("qwen3-30b-a3b");
  job.plan = {};
  job.plan.data = job.plan.expert = 8;
  const auto back = [&](const char* stack, const std::string& more) {
    job.plan.stack = stack;
    const Launch launch = exported(job, Trainer::kMegatronBridge);
    const program::Plan plan = import_plan(request_of(launch.text + more), Trainer::kMegatronBridge).job.plan;
    return fmt::format("{} {}", plan.stack, name_of(plan.expert_dispatch));
  };
  EXPECT_EQ(back("megatron-bridge", ""), "megatron-bridge stack");
  EXPECT_EQ(back("megatron-bridge-flex", ""), "megatron-bridge hybrid");
  EXPECT_EQ(back("megatron-bridge-flex", "cfg.model.cuda_graph_impl = \"full_iteration\"\n"),
            "megatron-bridge-graphs stack");
  EXPECT_THAT(fields(exported(job, Trainer::kMegatronBridge).losses), Not(testing::Contains("stack")));
  job.plan.stack = "megatron-bridge-graphs";
  EXPECT_THAT(fields(exported(job, Trainer::kMegatronBridge).losses), testing::Contains("stack"));
}

TEST(MegatronRoundTrip, GivesBackTheJob) {
  std::vector<program::Job> jobs(10, gpt3());
  jobs[1].plan.schedule = Schedule::kInterleaved;
  jobs[1].plan.virtual_stages = 3;
  jobs[1].plan.sequence_parallel = true;
  jobs[1].plan.recompute = Recompute::kSelective;
  jobs[1].plan.overlap = {true, true, false, true};
  jobs[1].plan.zero_stage = 1;
  jobs[2].plan.stage_layers = {5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7};
  jobs[2].plan.bucket_bytes = 4000;
  jobs[3].plan.pipeline = 1;
  jobs[3].plan.data = 128;
  jobs[3].plan.zero_stage = 3;
  jobs[3].plan.shard_group = 16;
  jobs[4].plan.precision = program::DType::kFp16;
  jobs[4].plan.reduce_dtype = program::DType::kFp16;
  jobs[4].plan.attention = program::Attention::kFlash;
  jobs[4].plan.placement = "tensor-context-pipeline-data";
  jobs[4].plan.offload.optimizer = Storage::kHost;
  jobs[5].plan.context = 2;
  jobs[5].plan.data = 4;
  jobs[5].plan.context_method = program::ContextMethod::kAllToAll;
  jobs[5].training.dropout = 0.1;
  jobs[6].model = models::load_model("llama2-70b");
  jobs[6].plan.tensor = 4;
  jobs[6].plan.pipeline = 4;
  jobs[7].plan.fp8 = program::Fp8::kDelayed;
  jobs[8].plan.fp8 = program::Fp8::kBlock;
  jobs[9].plan.zero_stage = 1;
  jobs[9].plan.moment_dtype = program::Moments::kBf16;
  for (const program::Job& job : jobs) {
    SCOPED_TRACE(program::summary(job.plan));
    const Imported read = import_megatron(request_of(exported(job, Trainer::kMegatron).text));
    expect_same(read.job, job);
    EXPECT_THAT(fields(read.losses), ElementsAre("line 8", "arguments"));  // Slurm is there; --eval-iters
  }
}

TEST(MegatronImport, ReadsVariablesArraysQuotesAndContinuedLines) {
  const Imported read = import_megatron(request_of(R"(#!/bin/bash
# --tensor-model-parallel-size 4 in a comment is none
TP=2; NODES=${NODES:-2}
MODEL_ARGS=(
  --num-layers 4 --hidden-size 64   # small
  --num-attention-heads 4
)
GPT_ARGS="--seq-length=128 --max-position-embeddings 128 \
  --micro-batch-size 2 --global-batch-size 16"
torchrun --nnodes $NODES --nproc_per_node=4 pretrain_gpt.py ${MODEL_ARGS[@]} $GPT_ARGS \
  --tensor-model-parallel-size $TP --vocab-size 1000 --bf16 --frobnicate 3 > log.txt
)"));
  EXPECT_EQ(read.job.plan.tensor, 2);
  EXPECT_EQ(read.job.plan.data, 4);  // 2 x 4 processes in pairs
  EXPECT_EQ(read.job.plan.micro_batch, 2);
  EXPECT_EQ(read.job.training.sequence, 128);
  EXPECT_EQ(read.job.model.ffn_hidden, 256);
  EXPECT_THAT(fields(read.losses), ElementsAre("--attention-backend", "--frobnicate"));
}

TEST(MegatronImport, ReadsTheTableOfArgumentsInALog) {
  const Imported read =
      import_megatron(request_of("using world size: 16\n"
                                 "------------------------ arguments ------------------------\n"
                                 "  attention_backend ............................... unfused\n"
                                 "  bf16 ............................................ True\n"
                                 "  encoder_num_layers .............................. 8\n"
                                 "  global_batch_size ............................... 32\n"
                                 "  hidden_size ..................................... 64\n"
                                 "  img_h ........................................... 224\n"
                                 "  max_position_embeddings ......................... 128\n"
                                 "  micro_batch_size ................................ 1\n"
                                 "  num_attention_heads ............................. 4\n"
                                 "  num_layers ...................................... 8\n"
                                 "  num_query_groups ................................ 1\n"
                                 "  pipeline_model_parallel_size .................... 4\n"
                                 "  seq_length ...................................... 128\n"
                                 "  virtual_pipeline_model_parallel_size ............ 2\n"
                                 "  vocab_size ...................................... 1000\n"
                                 "  world_size ...................................... 16\n"
                                 "-------------------- end of arguments ---------------------\n"));
  EXPECT_EQ(read.job.plan.pipeline, 4);
  EXPECT_EQ(read.job.plan.virtual_stages, 2);
  EXPECT_EQ(read.job.plan.schedule, Schedule::kInterleaved);
  EXPECT_EQ(read.job.plan.data, 4);
  EXPECT_EQ(read.job.model.kv_heads, 4);  // without --group-query-attention the groups are ignored there too
  EXPECT_THAT(read.losses, ElementsAre(Loss{"arguments", "2 others of the log were passed over"}));
}

TEST(MegatronImport, WritesLayoutsOut) {
  const std::string shape =
      "x --num-layers 30 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --vocab-size 1000 "
      "--nnodes 1 --nproc-per-node 4 --pipeline-model-parallel-size 4 --attention-backend flash ";
  EXPECT_THAT(import_megatron(request_of(shape + "--pipeline-model-parallel-layout 'Et*7|(t*8|)*2t*7,L'"))
                  .job.plan.stage_layers,
              ElementsAre(7, 8, 8, 7));
  EXPECT_THAT(import_megatron(request_of(shape + "--decoder-first-pipeline-num-layers 6")).job.plan.stage_layers,
              ElementsAre(6, 8, 8, 8));
  EXPECT_THAT(message_of(shape + "--pipeline-model-parallel-layout 'Et*7|t*8|t*15L'", import_megatron),
              HasSubstr("3 parts, which 4 stages do not share evenly"));
  EXPECT_THAT(message_of(shape + "--decoder-first-pipeline-num-layers 7", import_megatron), HasSubstr("a rest"));
  EXPECT_THAT(message_of(shape + "--pipeline-model-parallel-layout '((((((((((t*9)*9999'", import_megatron),
              HasSubstr("too deep"));
}

// A shipped model keeps its name when modules are added.
TEST(MegatronImport, ModulesOfMultiTokenPredictionAreReadAsTheyAreWritten) {
  program::Job job = gpt3();
  job.model = models::load_model("llama2-70b");
  job.model.mtp = models::MultiToken{.depth = 2, .loss_scale = 0.3};
  job.plan.tensor = job.plan.pipeline = 4;
  for (const bool uneven : {false, true}) {
    if (uneven) job.plan.stage_layers = {21, 21, 21, 17};
    for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge}) {
      SCOPED_TRACE(uneven ? "uneven stages" : "even stages");
      job.plan.stack = trainer == Trainer::kMegatron ? "megatron-core" : "megatron-bridge";
      ImportRequest request = request_of(exported(job, trainer).text);
      request.ranks = job.plan.ranks();
      const Imported read = trainer == Trainer::kMegatron ? import_megatron(request) : import_megatron_bridge(request);
      EXPECT_EQ(read.job.model, job.model);
      EXPECT_EQ(read.job.plan.stage_layers, job.plan.stage_layers);
    }
  }
  EXPECT_THAT(exported(job, Trainer::kMegatron).text,
              AllOf(HasSubstr("--mtp-num-layers 2 --mtp-loss-scaling-factor 0.3"), HasSubstr("|t*17,m*2,L")));
  for (const Trainer other : {Trainer::kDeepspeed, Trainer::kTorchtitan, Trainer::kFsdp2}) {
    EXPECT_THAT(fields(exported(job, other).losses), ::testing::Contains("mtp"));
  }
}

TEST(MegatronImport, LayoutsHaveTheModulesOfMultiTokenPredictionInTheLastPart) {
  const std::string shape =
      "x --num-layers 30 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --vocab-size 1000 "
      "--position-embedding-type rope --nnodes 1 --nproc-per-node 4 --pipeline-model-parallel-size 4 "
      "--attention-backend flash --pipeline-model-parallel-layout ";
  const std::string fits = "'Et*8|(t*8|)*2t*6mL'", early = "'Et*8|(t*8|)*2t*6m|L'";
  EXPECT_EQ(import_megatron(request_of(shape + fits + " --mtp-num-layers 1")).job.model.mtp_depth(), 1);
  EXPECT_THAT(message_of(shape + fits, import_megatron), HasSubstr("has 1 MTP layers; there are 0"));
  EXPECT_THAT(message_of(shape + early + " --mtp-num-layers 1", import_megatron), HasSubstr("before the last part"));
  EXPECT_THAT(message_of("x --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --mtp-num-layers 1",
                         import_megatron),
              HasSubstr("with learned positions"));
}

TEST(MegatronImport, NamesTheArgumentThatIsWrong) {
  EXPECT_THAT(message_of("python x.py --num-layers many", import_megatron),
              HasSubstr("launch.sh: --num-layers must be a whole number from 1 to 16777216, not \"many\""));
  EXPECT_THAT(message_of("python x.py --num-layers $LAYERS", import_megatron), HasSubstr("which the file never sets"));
  EXPECT_THAT(message_of("python x.py --num-layers", import_megatron), HasSubstr("--num-layers has no value"));
  EXPECT_THAT(message_of("", import_megatron), HasSubstr("no argument of a trainer is in it"));
  EXPECT_THAT(message_of("x --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --bf16 --fp16",
                         import_megatron),
              HasSubstr("exclude each other"));
  EXPECT_THAT(message_of("x --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --nnodes 3 "
                         "--nproc-per-node 1 --tensor-model-parallel-size 2",
                         import_megatron),
              HasSubstr("3 processes are not a multiple of tensor 2"));
}

TEST(DeepspeedRoundTrip, GivesBackTheJob) {
  std::vector<program::Job> jobs(3, gpt3());
  for (program::Job& job : jobs) {
    job.plan.stack = "megatron-deepspeed";
    job.plan.zero_stage = 1;  // as DeepSpeed's BF16_Optimizer does
  }
  jobs[1].plan.pipeline = 1;
  jobs[1].plan.data = 128;
  jobs[1].plan.zero_stage = 3;
  jobs[1].plan.shard_group = 16;
  jobs[1].plan.recompute = Recompute::kNone;
  jobs[1].plan.offload = {Storage::kHost, Storage::kHost, Storage::kDisk, Storage::kNone};
  jobs[1].plan.overlap.gradient_reduction = true;
  jobs[2].plan.schedule = Schedule::kZeroBubble;
  jobs[2].plan.zero_stage = 1;
  jobs[2].plan.bucket_bytes = 4000;
  jobs[2].plan.precision = jobs[2].plan.reduce_dtype = program::DType::kFp16;
  jobs[2].plan.attention = program::Attention::kFlash;
  for (const program::Job& job : jobs) {
    SCOPED_TRACE(program::summary(job.plan));
    const std::string text = exported(job, Trainer::kDeepspeed).text;
    EXPECT_TRUE(is_deepspeed(request_of(text)));
    ImportRequest request = request_of(text);
    request.model = job.model;  // the vocabulary comes from the tokenizer's files
    expect_same(import_deepspeed(request).job, job);
  }
}

TEST(DeepspeedImport, DerivesWhatTheJsonLeavesOut) {
  ImportRequest request = request_of(R"({
    "train_batch_size": 64, "gradient_accumulation_steps": 4, "train_micro_batch_size_per_gpu": "auto",
    "bfloat16": {"enabled": true}, "zero_optimization": {"stage": 2, "cpu_offload": true, "round_robin_gradients": true},
    "amp": {"enabled": false}})");
  request.model = models::load_model("gpt2-124m");
  request.ranks = 8;
  const Imported read = import_deepspeed(request);
  EXPECT_EQ(read.job.plan.micro_batch, 2);  // 64 / (4 x 8)
  EXPECT_EQ(read.job.plan.data, 8);
  EXPECT_EQ(read.job.plan.zero_stage, 2);
  EXPECT_EQ(read.job.plan.precision, program::DType::kBf16);
  EXPECT_EQ(read.job.plan.offload.optimizer, Storage::kHost);
  EXPECT_THAT(fields(read.losses),
              ElementsAre("zero_optimization.round_robin_gradients", "train_micro_batch_size_per_gpu", "amp"));
}

TEST(DeepspeedImport, NamesThePlaceThatIsWrong) {
  const auto wrong = [](const std::string& json) {
    ImportRequest request = request_of(json);
    request.model = models::load_model("gpt2-124m");
    request.ranks = 8;
    try {
      import_deepspeed(request);
    } catch (const base::Failure& failure) {
      return failure.error().message;
    }
    return std::string("no error");
  };
  EXPECT_THAT(wrong(R"({"zero_optimization": {"stage": 5}})"), HasSubstr("launch.sh#/zero_optimization/stage: "));
  EXPECT_THAT(
      wrong(R"({"train_batch_size": 60, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})"),
      HasSubstr("#/train_batch_size: 60 is not micro-batch 2 x accumulation 4 x data 8 = 64"));
  EXPECT_THAT(wrong("{\"a\": <HERE>}"), HasSubstr("placeholders of a template must be filled in first"));
  EXPECT_THAT(message_of("{}", import_deepspeed), HasSubstr("does not say the model; give --model"));
}

TEST(TorchtitanExport, SaysWhatItCannot) {
  program::Job job = gpt3();
  job.plan.stage_layers = {5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7};
  const Launch launch = exported(job, Trainer::kTorchtitan);
  EXPECT_THAT(launch.text, AllOf(HasSubstr("local_batch_size = 192\n"), HasSubstr("pipeline_parallel_degree = 16\n"),
                                 HasSubstr("[\"tok_embeddings\", \"layers.0\", \"layers.1\", \"layers.2\", "
                                           "\"layers.3\", \"layers.4\"],\n"),
                                 HasSubstr("\"layers.95\", \"norm\", \"output\"],\n"), HasSubstr("mode = \"full\"")));
  EXPECT_THAT(fields(launch.losses), ElementsAre("model", "zero_stage", "sequence_parallel", "attention"));
  job.model = models::load_model("llama2-70b");
  job.plan = {};
  job.plan.zero_stage = 3;
  job.plan.data = 16;
  job.plan.attention = program::Attention::kFlash;
  EXPECT_THAT(exported(job, Trainer::kTorchtitan).losses, IsEmpty());
}

// PyTorch's names; parts come in the order of the model, and torchtitan places them in a V by the schedule.
TEST(TorchtitanRoundTrip, GivesBackSchedulesInAV) {
  program::Job job;
  job.model = models::load_model("llama3-8b");
  job.training.sequence = 8192;
  job.training.global_batch = 16;
  job.plan.pipeline = 4;
  job.plan.virtual_stages = 2;
  for (const auto& [schedule, name] :
       {std::pair{Schedule::kZbv, "ZBVZeroBubble"}, {Schedule::kDualPipeV, "DualPipeV"}}) {
    job.plan.schedule = schedule;
    const Launch launch = exported(job, Trainer::kTorchtitan);
    EXPECT_THAT(launch.text, HasSubstr(fmt::format("pipeline_parallel_schedule = \"{}\"\n", name)));
    EXPECT_THAT(fields(launch.losses), Not(::testing::Contains("schedule")));
    ImportRequest request = request_of(launch.text);
    const program::Plan read = import_torchtitan(request).job.plan;
    EXPECT_EQ(read.schedule, schedule);
    EXPECT_EQ(read.virtual_stages, 2);
    for (const Trainer other : {Trainer::kMegatron, Trainer::kNemo, Trainer::kDeepspeed}) {
      EXPECT_THAT(fields(exported(job, other).losses), ::testing::Contains("schedule"));
    }
  }
  job.training.global_batch = 7;
  EXPECT_THAT(fields(exported(job, Trainer::kTorchtitan).losses), ::testing::Contains("schedule"));
}

// Four stages, the last of which holds the head alone: nothing stands for its layers, and it is read back.
TEST(MegatronExport, GivesALastStageTheLossAlone) {
  program::Job job = gpt3();
  job.plan.pipeline = 4;
  job.plan.stage_layers = {32, 32, 32, 0};
  const Launch launch = exported(job, Trainer::kMegatron);
  EXPECT_THAT(launch.text, HasSubstr("Et*32|t*32|t*32|L"));
  EXPECT_THAT(launch.text, Not(HasSubstr("t*0")));
}

TEST(NemoExport, SetsTheStrategy) {
  const Launch launch = exported(gpt3(), Trainer::kNemo);
  EXPECT_THAT(launch.text, AllOf(HasSubstr("num_nodes=128, num_gpus_per_node=8"),
                                 HasSubstr("strategy.tensor_model_parallel_size = 8\n"),
                                 HasSubstr("strategy.pipeline_model_parallel_size = 16\n"),
                                 HasSubstr("virtual_pipeline_model_parallel_size = None\n"),
                                 HasSubstr("recompute_granularity = \"full\"\n")));
  EXPECT_THAT(fields(launch.losses), ElementsAre("model.vocab"));
}

TEST(AccelerateExport, PicksTheFormThatCarriesThePlan) {
  EXPECT_THAT(exported(gpt3(), Trainer::kAccelerate).text,
              AllOf(HasSubstr("distributed_type: MEGATRON_LM\n"), HasSubstr("num_processes: 1024\n"),
                    HasSubstr("  megatron_lm_num_micro_batches: 192\n")));
  program::Job job = gpt3();
  job.plan.pipeline = 1;
  job.plan.data = 128;
  job.plan.zero_stage = 3;
  job.plan.shard_group = 16;
  EXPECT_THAT(exported(job, Trainer::kAccelerate).text,
              AllOf(HasSubstr("distributed_type: FSDP\n"), HasSubstr("_dp_replicate_size: 8\n"),
                    HasSubstr("_dp_shard_size: 16\n"), HasSubstr("_tp_size: 8\n")));
}

TEST(Export, SaysWhatOfAModelsLayersGoesLost) {
  program::Job job = gpt3();
  for (const Trainer trainer : {Trainer::kMegatron, Trainer::kDeepspeed, Trainer::kNemo, Trainer::kTorchtitan}) {
    job.model = models::load_model("gpt-oss-20b");
    EXPECT_THAT(fields(exported(job, trainer).losses), testing::Contains("window"));
    if (trainer == Trainer::kTorchtitan) continue;  // which names the model as a whole
    EXPECT_THAT(fields(exported(job, trainer).losses), testing::IsSupersetOf({"attention_sinks", "activation"}));
    job.model = models::load_model("gemma2-2b");
    EXPECT_THAT(fields(exported(job, trainer).losses),
                testing::IsSupersetOf({"branch_norms", "soft caps", "embedding_scale", "window"}));
  }
}

TEST(Export, SaysEveryFieldThatGoesLost) {
  program::Job job = gpt3();
  job.plan.schedule = Schedule::kGpipe;
  job.plan.compression = program::Compression::kTopK;
  job.plan.offload = {Storage::kDisk, Storage::kHost, Storage::kHost, Storage::kDisk};
  job.plan.stage_recompute.assign(16, Recompute::kNone);
  job.plan.stage_recompute[0] = Recompute::kFull;
  job.plan.placement = "data-tensor-context-pipeline";
  job.training.total_tokens = 0;
  EXPECT_THAT(fields(exported(job, Trainer::kMegatron).losses),
              ElementsAre("placement", "schedule", "compression", "offload.optimizer", "offload.activations",
                          "offload.gradients", "offload.parameters", "total_tokens", "stage_recompute"));
  for (const TrainerVersion& trainer : trainers()) {
    const std::vector<std::string> lost = fields(exported(job, trainer.trainer).losses);
    for (const char* field : {"placement", "compression", "stage_recompute"}) {
      EXPECT_THAT(lost, testing::Contains(field)) << trainer.name;
    }
  }
}

}  // namespace
}  // namespace trivium::planner::launch
