#include "planner/launch/patch/patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hardware_profiles/load.h"
#include "program/plan/fields.h"

namespace trivium::planner::launch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kShape =
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 "
    "--vocab-size 50257 --global-batch-size 64 --bf16 --attention-backend flash";

ImportRequest file_with(std::string text) {
  ImportRequest request;
  request.text = std::move(text);
  request.where = "train.sh";
  request.ranks = 16;
  request.devices_per_node = 8;
  return request;
}

/// The file changed for the plan that `change` makes of its own.
template <class Change>
Patch patched(const ImportRequest& request, Trainer trainer, const Change& change) {
  const program::Job today = import_plan(request, trainer).job;
  program::Job best = today;
  change(best.plan);
  best.plan.data = 16 / (best.plan.tensor * best.plan.context * best.plan.pipeline);
  return patch_launch(request, trainer, today, best, hardware::load_cluster("dgx-a100-80gb:2"));
}

std::string text_with(const std::string& lines, const std::string& options) {
  return lines + "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py " + kShape + " " + options + "\n";
}

TEST(PatchLaunch, ChangesTheDefaultWhereAVariableDecides) {
  const auto request = file_with(
      text_with("TP=${TP:-8}  # of a node\n", "--tensor-model-parallel-size $TP --micro-batch-size 1 \\\n  --lr 1"));
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) { plan.tensor = 4; });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_EQ(patch.text, text_with("TP=${TP:-4}  # of a node\n",
                                  "--tensor-model-parallel-size $TP --micro-batch-size 1 \\\n  --lr 1"));
}

// The variable also decides the batch, which must not change.
TEST(PatchLaunch, WritesTheValueWhereTheVariableDecidesMore) {
  const auto request = file_with("MBS=2\nACC=16\ntorchrun pretrain_gpt.py " + std::string(kShape) +
                                 " \\\n  --micro-batch-size $MBS --global-batch-size $((MBS * ACC))\n");
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) { plan.micro_batch = 1; });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_THAT(patch.text, HasSubstr("MBS=2\n"));
  EXPECT_THAT(patch.text, HasSubstr("--micro-batch-size 1 --global-batch-size $((MBS * ACC))"));
}

TEST(PatchLaunch, AddsAndRemovesOptionsOnLinesOfTheirOwn) {
  const std::string head = "ARGS=(\n  " + std::string(kShape) + "\n  --tensor-model-parallel-size 8\n";
  const std::string tail = ")\ntorchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py \"${ARGS[@]}\"\n";
  const auto request = file_with(head + "  --recompute-activations\n" + tail);
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) {
    plan.recompute = program::Recompute::kNone;
    plan.sequence_parallel = true;
    plan.zero_stage = 1;
  });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_EQ(patch.text, head + "  --sequence-parallel\n  --use-distributed-optimizer\n" + tail);
}

// The last line of a command has no backslash: the line before it loses its own.
TEST(PatchLaunch, RemovesTheLastLineOfACommand) {
  const auto request = file_with("torchrun pretrain_gpt.py " + std::string(kShape) +
                                 " \\\n  --tensor-model-parallel-size 2 \\\n  --sequence-parallel\necho done\n");
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) { plan.sequence_parallel = false; });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_THAT(patch.text, HasSubstr("--tensor-model-parallel-size 2\necho done\n"));
  EXPECT_THAT(patch.text, Not(HasSubstr("--sequence-parallel")));
}

TEST(PatchLaunch, KeepsOlderSpellings) {
  const auto request = file_with(text_with(
      "", "--model-parallel-size 2 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4"));
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) {
    plan.tensor = 4;
    plan.pipeline = 2;
  });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_THAT(patch.text, HasSubstr("--model-parallel-size 4 --pipeline-model-parallel-size 2 "
                                    "--num-layers-per-virtual-pipeline-stage 8"));
}

// Megatron-LM refuses its FSDP with one connection.
TEST(PatchLaunch, FsdpTakesTheOneConnectionAway) {
  const auto request = file_with(text_with("export CUDA_DEVICE_MAX_CONNECTIONS=1\n", "--use-distributed-optimizer"));
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) { plan.zero_stage = 3; });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_THAT(patch.text, Not(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS")));
  EXPECT_THAT(patch.text, HasSubstr("--use-megatron-fsdp"));
}

// The stage is decided in two places by one variable; 0 meant 1 with a pipeline in bf16.
TEST(PatchLaunch, ChangesDeepspeedsJsonInsideTheScript) {
  const auto request = file_with(
      "ZERO_STAGE=0\nPP=2\ncat >ds.json <<EOT\n{\n  \"train_batch_size\": 64,\n  \"zero_optimization\": {\n"
      "    \"stage\": $ZERO_STAGE\n  },\n  \"bf16\": {\"enabled\": true}\n}\nEOT\n"
      "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py " +
      std::string(kShape) +
      " \\\n  --deepspeed --deepspeed_config ds.json --zero-stage=$ZERO_STAGE "
      "--pipeline-model-parallel-size $PP\n");
  const Patch patch = patched(request, Trainer::kDeepspeed, [](program::Plan& plan) {
    plan.pipeline = 1;
    plan.overlap.gradient_reduction = true;
  });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_THAT(patch.text, HasSubstr("ZERO_STAGE=1\nPP=1\n"));
  EXPECT_THAT(patch.text, HasSubstr("\"stage\": $ZERO_STAGE"));
  EXPECT_THAT(patch.text, HasSubstr("    \"overlap_comm\": true,\n"));
  EXPECT_THAT(patch.text, HasSubstr("--no-pipeline-parallel"));
}

TEST(PatchLaunch, ChangesKeysOfToml) {
  ImportRequest request = file_with(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 1  # samples\nseq_len = 8192\n"
      "global_batch_size = 64\n\n[parallelism]\ndata_parallel_shard_degree = -1\ntensor_parallel_degree = 1\n");
  const Patch patch = patched(request, Trainer::kTorchtitan, [](program::Plan& plan) {
    plan.tensor = 2;
    plan.sequence_parallel = true;
    plan.micro_batch = 2;
  });
  EXPECT_THAT(patch.text, HasSubstr("local_batch_size = 2  # samples\n"));
  EXPECT_THAT(patch.text, HasSubstr("tensor_parallel_degree = 2\n"));
  EXPECT_THAT(patch.text, HasSubstr("data_parallel_shard_degree = -1\n"));
}

TEST(PatchLaunch, ChangesArgumentLinesOfYaml) {
  ImportRequest request = file_with(
      "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 32\n  --hidden-size: 4096\n  --num-attention-heads: 32\n"
      "  --seq-length: 2048\n  --max-position-embeddings: 2048\n  --vocab-size: 50257\n  --global-batch-size: 64\n"
      "  --tensor-model-parallel-size: 8  # of a node\n  --sequence-parallel: true\n  --bf16: true\n");
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) {
    plan.tensor = 2;
    plan.sequence_parallel = false;
    plan.zero_stage = 1;
  });
  EXPECT_TRUE(patch.by_hand.empty() && patch.differs.empty());
  EXPECT_THAT(patch.text, HasSubstr("  --tensor-model-parallel-size: 2  # of a node\n"
                                    "  --use-distributed-optimizer: true\n  --bf16: true\n"));
}

// The log of a run: nothing of it starts a training again.
TEST(PatchLaunch, SaysWhatToSetByHandWhereNoLineDecides) {
  const auto request = file_with(
      "------------------------ arguments ------------------------\n  num_layers ...................... 32\n"
      "  hidden_size ..................... 4096\n  num_attention_heads ............. 32\n"
      "  seq_length ...................... 2048\n  max_position_embeddings ......... 2048\n"
      "  padded_vocab_size ............... 50304\n  global_batch_size ............... 64\n"
      "  tensor_model_parallel_size ...... 8\n  bf16 ............................ True\n"
      "-------------------- end of arguments ---------------------\n");
  const Patch patch = patched(request, Trainer::kMegatron, [](program::Plan& plan) { plan.tensor = 4; });
  ASSERT_FALSE(patch.by_hand.empty());
  EXPECT_EQ(text_of(patch.by_hand.front()), "--tensor-model-parallel-size 8 -> 4");
  EXPECT_EQ(patch.text, request.text);
}

}  // namespace
}  // namespace trivium::planner::launch
