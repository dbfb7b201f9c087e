// Files of programs that have no exporter here, and torchtitan's configurations by name. Inputs follow public files
// that are named; what is expected was read from them by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/load.h"
#include "planner/launch/forms/hub.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

ImportRequest foreign_request(const std::string& text, int ranks = 8) {
  ImportRequest request;
  request.text = text;
  request.where = "job";
  request.ranks = ranks;
  request.devices_per_node = 8;
  return request;
}

Imported imported_foreign(const ImportRequest& request) { return import_plan(request, trainer_of(request)); }

std::string refusal_of(const ImportRequest& request) {
  try {
    imported_foreign(request);
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "read";
}

TEST(Hub, NamesShippedShapesWhateverTheirTraining) {
  EXPECT_EQ(forms::model_of_hub("meta-llama/Llama-3.1-8B-Instruct")->name, "llama3.1-8b");
  EXPECT_EQ(forms::model_of_hub("NousResearch/Meta-Llama-3-8B")->name, "llama3-8b");
  EXPECT_EQ(forms::model_of_hub("Qwen/Qwen3-30B-A3B-Instruct-2507")->name, "qwen3-30b-a3b");
  EXPECT_EQ(forms::model_of_hub("gpt2")->name, "gpt2-124m");
  EXPECT_FALSE(forms::model_of_hub("meta-llama/Llama-2-7b-hf"));  // 4,096 positions: not LLaMA's
}

// nanotron, examples/config_tiny_llama.yaml: dp 4, tp 2, micro-batch 3.
TEST(NanotronYaml, OfATinyLlama) {
  const Imported read = imported_foreign(foreign_request(
      "general:\n  run: x\nmodel:\n  dtype: bfloat16\n  model_config:\n    hidden_size: 1024\n    intermediate_size: "
      "4096\n    is_llama_config: true\n    num_attention_heads: 16\n    num_hidden_layers: 28\n"
      "    num_key_value_heads: 2\n    rope_scaling: null\n    tie_word_embeddings: true\n    vocab_size: 128256\n"
      "    max_position_embeddings: 128256\noptimizer:\n  accumulate_grad_in_fp32: true\n  zero_stage: 0\n"
      "  learning_rate_scheduler:\n    learning_rate: 0.0003\nparallelism:\n  dp: 4\n  pp: 1\n  pp_engine: 1f1b\n"
      "  tp: 2\n  tp_mode: REDUCE_SCATTER\n  new_parallelism: 3\ntokens:\n  batch_accumulation_per_replica: 1\n"
      "  micro_batch_size: 3\n  sequence_length: 4096\n  train_steps: 2000\n"));
  const program::Job& job = read.job;
  EXPECT_EQ(job.plan.data, 4);
  EXPECT_EQ(job.plan.tensor, 2);
  EXPECT_TRUE(job.plan.sequence_parallel);
  EXPECT_EQ(job.training.global_batch, 12);
  EXPECT_EQ(job.training.total_tokens, 2000LL * 12 * 4096);
  EXPECT_EQ(job.model.kv_heads, 2);
  EXPECT_EQ(job.plan.reduce_dtype, program::DType::kFp32);
  EXPECT_THAT(read.losses, Contains(Field(&Loss::field, "parallelism.new_parallelism")));
}

// LLM Foundry, scripts/train/yamls/pretrain/mpt-7b.yaml.
TEST(FoundryYaml, OfMpt) {
  const program::Job job =
      imported_foreign(
          foreign_request("variables:\n  max_seq_len: 2048\nmax_seq_len: ${variables.max_seq_len}\nmodel:\n  name: "
                          "mpt_causal_lm\n  d_model: 4096\n  n_heads: 32\n  n_layers: 32\n  expansion_ratio: 4\n"
                          "  max_seq_len: ${variables.max_seq_len}\n  vocab_size: 50368\n  attn_config:\n"
                          "    attn_impl: flash\n    alibi: true\ntrain_loader:\n  name: text\noptimizer:\n"
                          "  name: decoupled_adamw\n  lr: 1.2e-4\n  betas:\n  - 0.9\n  - 0.95\n"
                          "max_duration: 63900ba\nglobal_train_batch_size: 1024\ndevice_train_microbatch_size: 8\n"
                          "precision: amp_bf16\nfsdp_config:\n  sharding_strategy: FULL_SHARD\n"
                          "  mixed_precision: PURE\n  activation_checkpointing: true\n",
                          64))
          .job;
  EXPECT_EQ(job.model.layers, 32);
  EXPECT_EQ(job.model.positions, models::Positions::kAlibi);
  EXPECT_EQ(job.model.ffn_hidden, 16384);
  EXPECT_EQ(job.training.sequence, 2048);
  EXPECT_EQ(job.training.total_tokens, 63900LL * 1024 * 2048);  // 134B
  EXPECT_EQ(job.plan.zero_stage, 3);
  EXPECT_EQ(job.plan.micro_batch, 8);
  EXPECT_EQ(job.plan.reduce_dtype, program::DType::kBf16);
  EXPECT_EQ(job.plan.recompute, program::Recompute::kFull);
}

// axolotl, examples/distributed-parallel/llama-3_1-8b-hsdp-tp.yaml: two replicas of four shards of tensor 2.
TEST(AxolotlYaml, OfHybridShardsAndTensorRanks) {
  const std::string text =
      "base_model: meta-llama/Llama-3.1-8B\ndp_shard_size: 4\ndp_replicate_size: 2\ntensor_parallel_size: 2\n"
      "fsdp_version: 2\nfsdp_config:\n  offload_params: false\n  reshard_after_forward: true\nsequence_len: 2048\n"
      "sample_packing: true\ngradient_accumulation_steps: 1\nmicro_batch_size: 1\nbf16: true\nodd_key: 1\n";
  const Imported read = imported_foreign(foreign_request(text, 16));
  EXPECT_EQ(read.job.model.name, "llama3.1-8b");
  EXPECT_EQ(read.job.plan.tensor, 2);
  EXPECT_EQ(read.job.plan.data, 8);
  EXPECT_EQ(read.job.plan.shard_group, 4);
  EXPECT_EQ(read.job.training.global_batch, 8);
  EXPECT_THAT(read.losses, Contains(Field(&Loss::what, HasSubstr("line 14: odd_key = 1"))));
  EXPECT_THAT(refusal_of(foreign_request(text, 8)), HasSubstr("job:2: dp_replicate_size 2 x dp_shard_size 4"));
  EXPECT_THAT(refusal_of(foreign_request("base_model: nobody/unknown-9B\nmicro_batch_size: 1\n")),
              HasSubstr("job:1: the shape of \"nobody/unknown-9B\" is not known"));
}

// torchtitan, models/llama3/config_registry.py: 65,536 tokens of 8,192 a micro-batch, tensor 8, all recomputed.
TEST(TorchtitanRegistry, IsNamedByTheCommandWhoseSettingsWin) {
  const std::string start =
      "torchrun --nnodes 4 --nproc_per_node=8 -m torchtitan.train --module llama3 --config llama3_70b";
  const program::Job job = imported_foreign(foreign_request(start + "\n", 32)).job;
  EXPECT_EQ(job.model.name, "llama3.1-70b");
  EXPECT_EQ(job.plan.tensor, 8);
  EXPECT_EQ(job.plan.data, 4);
  EXPECT_EQ(job.plan.micro_batch, 8);
  EXPECT_EQ(job.training.sequence, 8192);
  EXPECT_EQ(job.training.global_batch, 32);
  EXPECT_EQ(job.plan.recompute, program::Recompute::kFull);
  const program::Job changed =
      imported_foreign(foreign_request(start +
                                           " --parallelism.tensor_parallel_degree 4 --training.max_context_length 4096 "
                                           "--training.num_tokens_per_train_step 1048576\n",
                                       32))
          .job;
  EXPECT_EQ(changed.plan.tensor, 4);
  EXPECT_EQ(changed.plan.micro_batch, 16);
  EXPECT_EQ(changed.training.global_batch, 256);
  EXPECT_THAT(refusal_of(foreign_request("torchrun -m torchtitan.train --module qwen3_5 --config qwen35_9b\n")),
              HasSubstr("the configuration \"qwen35_9b\" of torchtitan is not known"));
}

TEST(TorchtitanFlavors, OfVersionTwoHaveShapes) {
  for (const char* flavor :
       {"llama4\"\nflavor = \"debugmodel", "qwen3\"\nflavor = \"debugmodel_moe", "deepseek_v3\"\nflavor = \"debugmodel",
        "gpt_oss\"\nflavor = \"debugmodel", "llama3\"\nflavor = \"8B_flex", "llama4\"\nflavor = \"17bx16e_irope"}) {
    EXPECT_EQ(refusal_of(foreign_request(std::string("[model]\nname = \"") + flavor + "\"\n[parallelism]\n")), "read")
        << flavor;
  }
}

// stanford_alpaca, README.md: LLaMA 7B on four A100 with FSDP; here by the name of a shipped shape.
TEST(HuggingFaceTrainer, OfAlpaca) {
  const Imported read = imported_foreign(foreign_request(
      "torchrun --nproc_per_node=4 --master_port=1 train.py --model_name_or_path huggyllama/llama-7b --data_path "
      "./a.json --bf16 True --output_dir o --num_train_epochs 3 --per_device_train_batch_size 4 "
      "--per_device_eval_batch_size 4 --gradient_accumulation_steps 8 --evaluation_strategy \"no\" "
      "--learning_rate 2e-5 --weight_decay 0. --warmup_ratio 0.03 --lr_scheduler_type \"cosine\" "
      "--fsdp \"full_shard auto_wrap\" --fsdp_transformer_layer_cls_to_wrap 'LlamaDecoderLayer' --tf32 True "
      "--model_max_length 512 --a_new_option 3\n"));
  EXPECT_EQ(read.job.model.name, "llama-7b");
  EXPECT_EQ(read.job.plan.data, 4);
  EXPECT_EQ(read.job.plan.zero_stage, 3);
  EXPECT_EQ(read.job.plan.micro_batch, 4);
  EXPECT_EQ(read.job.training.global_batch, 128);
  EXPECT_EQ(read.job.training.sequence, 512);
  EXPECT_EQ(read.job.plan.precision, program::DType::kBf16);
  EXPECT_THAT(read.losses, Contains(Field(&Loss::what, HasSubstr("--a-new-option 3 has no place"))));
}

// "auto" as transformers/integrations/deepspeed.py fills it in: the bucket is the square of the hidden width, 2,048.
TEST(HuggingFaceTrainer, FillsInDeepspeedsJson) {
  ImportRequest request = foreign_request(
      "deepspeed --num_gpus 8 train.py --deepspeed ds.json --model_name_or_path meta-llama/Llama-3.2-1B --bf16 "
      "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --gradient_checkpointing True --max_steps 10 "
      "--model_max_length 4096\n");
  EXPECT_THAT(refusal_of(request), HasSubstr("--deepspeed \"ds.json\" is not there"));
  request.surroundings.read_file = [](const std::string& name) -> std::optional<std::string> {
    if (name != "ds.json") return std::nullopt;
    return R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "train_batch_size": "auto",
               "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
               "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
               "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "overlap_comm": true}})";
  };
  const program::Job job = imported_foreign(request).job;
  EXPECT_EQ(job.model.name, "llama3.2-1b");
  EXPECT_EQ(job.plan.zero_stage, 3);
  EXPECT_EQ(job.plan.data, 8);
  EXPECT_EQ(job.plan.precision, program::DType::kBf16);
  EXPECT_EQ(job.plan.recompute, program::Recompute::kFull);
  EXPECT_EQ(job.plan.bucket_bytes, 2048LL * 2048 * 2);
  EXPECT_EQ(job.training.global_batch, 64);
  EXPECT_EQ(job.training.total_tokens, 10LL * 64 * 4096);
}

TEST(HuggingFaceTrainer, ReadsTheConfigurationOfAccelerate) {
  const std::string text =
      "cat > fsdp.yaml <<END\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 16\nfsdp_config:\n"
      "  fsdp_version: 2\n  fsdp_reshard_after_forward: false\nEND\n"
      "accelerate launch --config_file fsdp.yaml run_clm.py --model_name_or_path gpt2-xl "
      "--per_device_train_batch_size 8 --block_size 1024\n";
  const program::Job job = imported_foreign(foreign_request(text)).job;
  EXPECT_EQ(job.plan.data, 16);
  EXPECT_EQ(job.plan.zero_stage, 2);
  EXPECT_EQ(job.plan.precision, program::DType::kBf16);
  EXPECT_EQ(job.training.global_batch, 128);
}

// Megatron-Bridge, recipes/llama/h100/llama3.py: llama3_70b_pretrain_config is that for 32 H100, TP 4, PP 4 x 5, CP 2.
TEST(BridgeRecipe, IsCalledWithKeywordsAndThenChanged) {
  const std::string python =
      "from megatron.bridge.recipes.llama import llama3_70b_pretrain_config\n\ndef main():\n"
      "    cfg = llama3_70b_pretrain_config(tensor_model_parallel_size=8, global_batch_size=256)\n"
      "    cfg.train.micro_batch_size = 2\n    cfg.model.an_unknown_member = 3\n";
  const Imported read = imported_foreign(foreign_request(python, 64));
  EXPECT_EQ(read.job.model.name, "llama3-70b");
  EXPECT_EQ(read.job.plan.tensor, 8);
  EXPECT_EQ(read.job.plan.pipeline, 4);
  EXPECT_EQ(read.job.plan.virtual_stages, 5);
  EXPECT_EQ(read.job.plan.context, 2);
  EXPECT_EQ(read.job.plan.data, 1);
  EXPECT_EQ(read.job.plan.micro_batch, 2);
  EXPECT_EQ(read.job.training.global_batch, 256);
  EXPECT_EQ(read.job.training.sequence, 8192);
  EXPECT_TRUE(read.job.plan.overlap.tensor);
  EXPECT_THAT(read.losses, Contains(Field(&Loss::field, "cfg.model.an_unknown_member")));
}

TEST(BridgeRecipe, IsNamedByACommand) {
  const program::Job job =
      imported_foreign(foreign_request("./scripts/training/train.sh --nodes 128 --gpus-per-node 8 --recipe "
                                       "deepseek_v3_pretrain_config --dataset mock train.global_batch_size=2048\n"))
          .job;
  EXPECT_EQ(job.model.name, "deepseek-v3");
  EXPECT_EQ(job.plan.pipeline, 16);
  EXPECT_EQ(job.plan.expert, 64);
  EXPECT_EQ(job.plan.data, 32);
  EXPECT_EQ(job.plan.stage_layers.back(), 1);
  EXPECT_EQ(job.training.global_batch, 2048);
  EXPECT_THAT(refusal_of(foreign_request("cfg = step35_pretrain_config()\n")), HasSubstr("recipe"));
}

// BigScience, train/tr11-176B-ml/tr11-176B-ml.slurm on the 48 nodes of the main training (arXiv 2211.05100, table 3 and
// section 3.2): TP 4, PP 12, DP 8, micro-batch 2, batch 2,048, 70 layers of 14,336, ALiBi, a norm behind the embedding.
TEST(MegatronDeepspeedScript, OfBloom) {
  ImportRequest request = foreign_request(
      "#SBATCH --nodes=48\n#SBATCH --gres=gpu:8\nNNODES=$SLURM_NNODES\nGPT_ARGS=\" --pp-partition-method "
      "'type:transformer|embedding' --num-layers 70 --hidden-size 14336 --num-attention-heads 112 --seq-length 2048 "
      "--max-position-embeddings 2048 --micro-batch-size 2 --rampup-batch-size 192 16 9_765_625 --global-batch-size "
      "2048 --embed-layernorm --position-embedding-type alibi --checkpoint-activations --bf16\"\n"
      "cat <<EOT > ds.json\n{\"train_micro_batch_size_per_gpu\": 2, \"train_batch_size\": 2048, "
      "\"zero_optimization\": {\"stage\": 0}, \"bf16\": {\"enabled\": true}}\nEOT\n"
      "export CMD=\"torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py --tensor-model-parallel-size 4 "
      "--pipeline-model-parallel-size 12 $GPT_ARGS --deepspeed --deepspeed_config ds.json --zero-stage 0\"\n"
      "srun bash -c \"$CMD\"\n",
      384);
  const program::Job job = imported_foreign(request).job;
  EXPECT_EQ(job.model.layers, 70);
  EXPECT_EQ(job.model.hidden, 14'336);
  EXPECT_EQ(job.model.positions, models::Positions::kAlibi);
  EXPECT_TRUE(job.model.embedding_norm);
  EXPECT_EQ(job.plan.tensor, 4);
  EXPECT_EQ(job.plan.pipeline, 12);
  EXPECT_EQ(job.plan.data, 8);
  EXPECT_EQ(job.plan.micro_batch, 2);
  EXPECT_EQ(job.plan.stage_layers.front(), 5);
  EXPECT_EQ(job.training.global_batch, 2048);
}

}  // namespace
}  // namespace trivium::planner::launch
