// YAML of other programs as jobs. Inputs follow public files that are named; what is expected was read from them by
// hand.
#include "planner/launch/forms/forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/load.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

ImportRequest yaml_request(const std::string& text, const char* model = nullptr, int ranks = 8) {
  ImportRequest request;
  request.text = text;
  request.where = "job.yaml";
  if (model != nullptr) request.model = models::load_model(model);
  request.ranks = ranks;
  request.devices_per_node = 8;
  return request;
}

Imported imported(const ImportRequest& request) { return import_plan(request, trainer_of(request)); }

std::string refusal(const ImportRequest& request) {
  try {
    imported(request);
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "read";
}

TEST(Yaml, KnowsItsLinesAliasesAndMerges) {
  const yaml::Node root = yaml::read("a: &x {k: 1, l: yes}\nb:\n  <<: *x\n  k: '2'\nc: [1, ~, three]\n", "f.yaml");
  ASSERT_NE(root.find("b"), nullptr);
  EXPECT_EQ(root.find("b")->text_at("k"), "2");
  EXPECT_EQ(root.find("b")->text_at("l"), "true");
  EXPECT_EQ(root.find("b")->find("k")->line, 4);
  const Script settings = yaml::settings_of(root);
  EXPECT_EQ(settings.arguments.back(), (Argument{"c", {"1", "", "three"}, 5}));
}

TEST(Yaml, RefusesWhatIsNoneAndWhatGrowsWithoutEnd) {
  const auto why = [](const std::string& text) -> std::string {
    try {
      yaml::read(text, "f.yaml");
    } catch (const base::Failure& failure) {
      return failure.what();
    }
    return "read";
  };
  EXPECT_THAT(why("a: 1\nb: [1\nc: }"), HasSubstr("f.yaml:3: not YAML"));
  EXPECT_THAT(why("a: *nothing\n"), HasSubstr("f.yaml:1"));
  EXPECT_THAT(why("a: &a [*a]\n"), HasSubstr("f.yaml:1"));
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1), name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [" + before;
    for (int k = 1; k < 10; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(why(bomb), HasSubstr("more than 100000 values"));
  EXPECT_THAT(why(std::string(200, '[')), HasSubstr("f.yaml:1"));
}

TEST(Yaml, OfNoKnownProgramIsNamed) {
  EXPECT_THAT(refusal(yaml_request("version: 2\njobs: {}\n")),
              AllOf(HasSubstr("job.yaml: this YAML (version, jobs) is not one of"), HasSubstr("accelerate")));
}

// accelerate, examples/torch_native_parallelism/configs/tp_hsdp.yaml: 8 processes, tensor 2, two replicas of two
// shards.
TEST(AccelerateYaml, OfHybridShards) {
  const Imported read = imported(
      yaml_request("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: "
                   "8\nfsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n"
                   "  fsdp_activation_checkpointing: true\nparallelism_config:\n"
                   "  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: 2\n"
                   "  parallelism_config_tp_size: 2\nodd_key: 7\n",
                   "llama3.2-1b"));
  const program::Plan& plan = read.job.plan;
  EXPECT_EQ(plan.tensor, 2);
  EXPECT_EQ(plan.data, 4);
  EXPECT_EQ(plan.shard_group, 2);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_EQ(plan.recompute, program::Recompute::kFull);
  EXPECT_EQ(plan.reduce_dtype, program::DType::kBf16);
  EXPECT_THAT(read.losses, Contains(AllOf(Field(&Loss::field, "odd_key"), Field(&Loss::what, HasSubstr("line 13")))));
}

// accelerate, examples/config_yaml_templates/fsdp.yaml has the names of PyTorch's first FSDP.
TEST(AccelerateYaml, OfTheFirstFsdpHasStrategies) {
  const auto with = [](const std::string& strategy) {
    return imported(yaml_request("distributed_type: FSDP\nmixed_precision: 'bf16'\nnum_machines: 2\nnum_processes: 16\n"
                                 "fsdp_config:\n  fsdp_sharding_strategy: " +
                                     strategy + "\n",
                                 "llama3.2-1b"))
        .job.plan;
  };
  EXPECT_EQ(with("FULL_SHARD").zero_stage, 3);
  EXPECT_EQ(with("SHARD_GRAD_OP").zero_stage, 2);
  EXPECT_EQ(with("NO_SHARD").zero_stage, 0);
  EXPECT_EQ(with("HYBRID_SHARD").shard_group, 8);
  EXPECT_EQ(with("4").shard_group, 8);
}

TEST(AccelerateYaml, OfDeepspeedIsItsJson) {
  ImportRequest request = yaml_request(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\nnum_processes: 4\n",
      "llama3.2-1b");
  EXPECT_THAT(refusal(request), HasSubstr("job.yaml:3: \"ds.json\" is not there"));
  request.surroundings.read_file = [](const std::string& name) {
    return name == "ds.json"
               ? std::optional<std::string>(R"({"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})")
               : std::nullopt;
  };
  const program::Plan plan = imported(request).job.plan;
  EXPECT_EQ(plan.data, 4);
  EXPECT_EQ(plan.zero_stage, 2);
  EXPECT_EQ(plan.precision, program::DType::kBf16);
  const Imported plugin = imported(yaml_request(
      "distributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 3\n"
      "  offload_optimizer_device: cpu\n  gradient_accumulation_steps: 4\n",
      "llama3.2-1b"));
  EXPECT_EQ(plugin.job.plan.zero_stage, 3);
  EXPECT_EQ(plugin.job.plan.offload.optimizer, program::Storage::kHost);
  EXPECT_EQ(plugin.job.training.global_batch, 8);
}

TEST(AccelerateYaml, NamesTheLineOfWhatItCannotRead) {
  EXPECT_THAT(refusal(yaml_request("distributed_type: XLA\nnum_processes: 8\n", "llama3.2-1b")),
              HasSubstr("job.yaml:1: distributed_type XLA is not read"));
  EXPECT_THAT(refusal(yaml_request("distributed_type: FSDP\nnum_processes: eight\n", "llama3.2-1b")),
              HasSubstr("job.yaml:2: num_processes must be a whole number"));
  EXPECT_THAT(refusal(yaml_request("distributed_type: FSDP\n")), HasSubstr("give --model"));
}

constexpr const char* kFunctionalTest = R"(ENV_VARS:
  CUDA_DEVICE_MAX_CONNECTIONS: 1
MODEL_ARGS:
  # as tests/functional_tests/test_cases/moe/gpt3_mcore_te_tp2_pp2_ep4_etp1_selective_recompute_experimental
  --num-layers: 16
  --moe-layer-freq: ([0]*3+[1]*13)
  --pipeline-model-parallel-layout: Et*3|(tt|)*6tmL
  --mtp-num-layers: 1
  --hidden-size: 1024
  --ffn-hidden-size: 4096
  --num-attention-heads: 32
  --seq-length: 4096
  --max-position-embeddings: 4096
  --position-embedding-type: rope
  --normalization: RMSNorm
  --swiglu: true
  --disable-bias-linear: true
  --untie-embeddings-and-output-weights: true
  --multi-latent-attention: true
  --qk-layernorm: true
  --q-lora-rank: 1536
  --kv-lora-rank: 512
  --qk-head-dim: 128
  --qk-pos-emb-head-dim: 64
  --v-head-dim: 128
  --num-experts: 32
  --moe-ffn-hidden-size: 1024
  --moe-router-topk: 4
  --tensor-model-parallel-size: 2
  --pipeline-model-parallel-size: 2
  --expert-model-parallel-size: 4
  --expert-tensor-parallel-size: 1
  --sequence-parallel: true
  --use-distributed-optimizer: true
  --micro-batch-size: 4
  --global-batch-size: 32
  --recompute-granularity: selective
  --recompute-modules: "[layernorm mla_up_proj mlp moe_act]"
  --attention-backend: unfused
  --seed: ${REPEAT}
  --use-flash-attn: false
  --bf16: true
TEST_TYPE: regular
)";

TEST(FunctionalTest, OfMegatronIsItsArguments) {
  const program::Job job = imported(yaml_request(kFunctionalTest)).job;
  EXPECT_EQ(job.model.layers, 16);
  ASSERT_TRUE(job.model.experts);
  EXPECT_EQ(job.model.experts->dense_layers, 3);
  EXPECT_EQ(job.model.latent->query_rank, 1536);
  EXPECT_EQ(job.model.mtp_depth(), 1);
  EXPECT_EQ(job.plan.data, 2);
  EXPECT_EQ(job.plan.expert, 4);
  EXPECT_EQ(job.plan.virtual_stages, 4);
  EXPECT_THAT(job.plan.stage_layers, ElementsAre(3, 2, 2, 2, 2, 2, 2, 1));
  EXPECT_EQ(job.plan.recompute_modules.size(), 4);
  EXPECT_EQ(job.plan.attention, program::Attention::kUnfused);
}

TEST(FunctionalTest, OfOtherModelsIsRefused) {
  const std::string start =
      "MODEL_ARGS:\n  --num-layers: 24\n  --hidden-size: 1024\n  --num-attention-heads: 16\n"
      "  --seq-length: 512\n  --micro-batch-size: 4\n";
  EXPECT_THAT(refusal(yaml_request(start + "  --data-path: x/some_text_sentence\n")), HasSubstr("BERT"));
  EXPECT_THAT(refusal(yaml_request(start + "  --hybrid-layer-pattern: M-M*\n")), HasSubstr("Mamba"));
  EXPECT_THAT(refusal(yaml_request(start + "  --img-h: 336\n")), HasSubstr("images"));
  EXPECT_THAT(refusal(yaml_request(start + "  --num-tokens-to-generate: 30\n")), HasSubstr("inference"));
  EXPECT_THAT(refusal(yaml_request("MODEL_ARGS:\n  trainer.devices: 8\n")), HasSubstr("job.yaml:1: MODEL_ARGS"));
  EXPECT_EQ(refusal(yaml_request(start + "  --model-provider: gpt\n")), "read");
}

// Megatron-LM's examples/gpt3/gpt_config.yaml, which ran until 2026.
TEST(MegatronYaml, HasMembersOfConfigurations) {
  const Imported read = imported(
      yaml_request("language_model:\n  num_layers: 24\n  hidden_size: 1024\n  num_attention_heads: 16\n"
                   "  num_query_groups: null\n  add_bias_linear: False\n  activation_func: swiglu\n"
                   "model_parallel:\n  tensor_model_parallel_size: 2\n  sequence_parallel: True\n  bf16: True\n"
                   "  overlap_p2p_comm: False\nmicro_batch_size: 2\nglobal_batch_size: 128\nseq_length: 4096\n"
                   "max_position_embeddings: 4096\nposition_embedding_type: rope\nrotary_percent: 0.5\n"
                   "untie_embeddings_and_output_weights: True\nuse_distributed_optimizer: False\n"));
  EXPECT_FALSE(read.job.model.linear_bias);
  EXPECT_TRUE(read.job.model.gated());
  EXPECT_EQ(read.job.model.rotary.share, 0.5);
  EXPECT_EQ(read.job.plan.tensor, 2);
  EXPECT_EQ(read.job.plan.data, 4);
  EXPECT_EQ(read.job.plan.zero_stage, 0);
  EXPECT_FALSE(read.job.plan.overlap.pipeline);
  EXPECT_EQ(read.job.training.global_batch, 128);
}

// GPT-NeoX, configs/20B.yml: braces, comments and commas at the ends of lists. Black et al. 2022 (arXiv 2204.06745,
// section 2): 44 layers of 6,144, 64 heads, a quarter of the components turn, attention and MLP in parallel.
constexpr const char* kNeox = R"(# DISCLAIMER
{
  "pipe_parallel_size": 4,
  "model-parallel-size": 2,
  "num_layers": 44, "hidden_size": 6144, "num_attention_heads": 64,
  "seq_length": 2048, "max_position_embeddings": 2048,
  "pos_emb": "rotary", "rotary_pct": 0.25, "no_weight_tying": true, "gpt_j_residual": true,
  "tokenizer_type": "HFTokenizer",
  "optimizer": {"type": "Adam", "params": {"lr": 0.97e-4, "betas": [0.9, 0.95], "eps": 1.0e-8,}},
  "zero_optimization": {"stage": 1, "overlap_comm": True, "reduce_bucket_size": 1260000000,},
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 32,
  "checkpoint_activations": true, "checkpoint_num_layers": 1,
  "fp16": {"enabled": true, "loss_scale": 0},
  "train_iters": 150000, "warmup": 0.01, "a_new_key": 5,
}
)";

TEST(NeoxYaml, OfTheModelOfTwentyBillionParameters) {
  const Imported read = imported(yaml_request(kNeox, nullptr, 96));
  const program::Job& job = read.job;
  EXPECT_EQ(job.model.layers, 44);
  EXPECT_EQ(job.model.ffn_hidden, 24576);
  EXPECT_EQ(job.model.rotary.share, 0.25);
  EXPECT_TRUE(job.model.parallel_block);
  EXPECT_FALSE(job.model.shared_norm);
  EXPECT_FALSE(job.model.tied_embeddings);
  EXPECT_EQ(job.plan.tensor, 2);
  EXPECT_EQ(job.plan.pipeline, 4);
  EXPECT_EQ(job.plan.data, 12);
  EXPECT_EQ(job.plan.zero_stage, 1);
  EXPECT_EQ(job.plan.precision, program::DType::kFp16);
  EXPECT_EQ(job.plan.recompute, program::Recompute::kFull);
  EXPECT_EQ(job.training.global_batch, 1536);  // 4 x 32 x 12; the paper: 1,538 of 2,048 tokens
  EXPECT_EQ(job.training.optimizer.warmup_steps, 1500);
  EXPECT_EQ(job.training.optimizer.beta2, 0.95);
  EXPECT_THAT(read.losses, Contains(Field(&Loss::what, HasSubstr("line 14: a_new_key = 5"))));
}

// configs/llama2/70B.yml says 86016 for a width of 28672: a third of it (megatron/model/transformer.py, ParallelMLP).
TEST(NeoxYaml, HasGatedWidthsThreeTimesAsWide) {
  const models::Model model =
      imported(yaml_request("num_layers: 80\nhidden_size: 8192\nintermediate_size: 86016\nnum_attention_heads: 64\n"
                            "num_kv_heads: 8\nseq_length: 4096\nmax_position_embeddings: 4096\npos_emb: rotary\n"
                            "norm: rmsnorm\nactivation: swiglu\nuse_bias_in_attn_linear: false\n"
                            "use_bias_in_mlp: false\nno_weight_tying: true\nmodel_parallel_size: 8\n"
                            "attention_config: [[[\"flash\"], 80]]\ntrain_micro_batch_size_per_gpu: 1\n"))
          .job.model;
  EXPECT_EQ(model.ffn_hidden, 28672);
  EXPECT_EQ(model.kv_heads, 8);
}

TEST(NeoxYaml, OfOtherLayersIsRefused) {
  EXPECT_THAT(refusal(yaml_request("num_layers: 2\nhidden_size: 64\nnum_attention_heads: 4\nseq_length: 32\n"
                                   "attention_config: [[[\"mamba\"], 2]]\ntrain_micro_batch_size_per_gpu: 1\n")),
              HasSubstr("layers of mamba are not modelled"));
  EXPECT_THAT(refusal(yaml_request("num_layers: 2\nhidden_size: -64\nmodel_parallel_size: 1\n")),
              HasSubstr("job.yaml:2: hidden_size"));
}

}  // namespace
}  // namespace trivium::planner::launch
