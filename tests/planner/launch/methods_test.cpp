// Muon, LoRA and exchanges of context ranks in other trainers' files, both ways.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/export_parts.h"
#include "planner/launch/launch.h"
#include "program/lower/lower.h"
#include "program/plan/stack.h"

namespace trivium::planner::launch {
namespace {

using program::ContextMethod;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

program::Job llama_job() {
  program::Job job;
  job.model = models::load_model("llama3-8b");
  job.training.sequence = 8192;
  job.training.global_batch = 64;
  job.training.total_tokens = 8192 * 64 * 10;
  job.plan.tensor = 2, job.plan.data = 8;
  job.plan.sequence_parallel = true;
  job.plan.zero_stage = 1;
  job.plan.attention = program::Attention::kFlash;
  job.plan.stack = "megatron-core";
  return job;
}

program::Job muon_job(int zero_stage) {
  program::Job job = llama_job();
  job.plan.zero_stage = zero_stage;
  job.training.optimizer.kind = program::Update::kMuon;
  job.training.optimizer.muon_momentum = 0.9;
  job.training.optimizer.muon_iterations = 6;
  return job;
}

Launch file_with(const program::Job& job, Trainer trainer) {
  return export_plan(job, hardware::load_cluster("dgx-h100-80gb:2"), trainer);
}

Imported read_back(const std::string& text, Trainer trainer, int ranks = 16) {
  ImportRequest request;
  request.text = text;
  request.where = "launch";
  request.ranks = ranks;
  return import_plan(request, trainer);
}

TEST(MuonExport, IsReadBackAsItWas) {
  for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge}) {
    for (const int zero_stage : {0, 1}) {
      const program::Job job = muon_job(zero_stage);
      const Launch launch = file_with(job, trainer);
      const Imported back = read_back(launch.text, trainer);
      EXPECT_EQ(back.job.training.optimizer.kind, program::Update::kMuon) << launch.text;
      EXPECT_EQ(back.job.training.optimizer.muon_momentum, 0.9);
      EXPECT_EQ(back.job.training.optimizer.muon_iterations, 6);
      EXPECT_EQ(back.job.plan.zero_stage, zero_stage);
      for (const Loss& loss : back.losses) EXPECT_THAT(loss.field + loss.what, Not(HasSubstr("muon")));
      EXPECT_THAT(launch.losses, Contains(Field(&Loss::what, HasSubstr("gate and value of an MLP"))));
    }
  }
  EXPECT_THAT(file_with(muon_job(1), Trainer::kMegatron).text,
              AllOf(HasSubstr("--optimizer muon"), HasSubstr("--use-distributed-optimizer"),
                    HasSubstr("--muon-extra-scale-factor 0.2")));
  EXPECT_THAT(file_with(muon_job(1), Trainer::kMegatronBridge).text,
              AllOf(HasSubstr("cfg.optimizer.optimizer = \"dist_muon\""), HasSubstr("muon_momentum = 0.9\n"),
                    HasSubstr("cfg.ddp.use_distributed_optimizer = False"),
                    HasSubstr("cfg.optimizer.muon_tp_mode = \"duplicated\"")));
}

TEST(MuonExport, IsRefusedByNameWhereATrainerHasNone) {
  for (const TrainerVersion& trainer : trainers()) {
    const bool megatron = trainer.trainer == Trainer::kMegatron || trainer.trainer == Trainer::kMegatronBridge;
    EXPECT_THAT([&] { file_with(muon_job(2), trainer.trainer); },
                ThrowsMessage<base::Failure>(HasSubstr(megatron ? "optimizer: muon is not written with zero_stage 2"
                                                                : "optimizer: muon is not written for")));
  }
  program::Job half = muon_job(1);
  half.plan.precision = program::DType::kFp16;
  EXPECT_THAT([&] { file_with(half, Trainer::kMegatron); },
              ThrowsMessage<base::Failure>(HasSubstr("with precision fp16")));
}

TEST(MuonImport, SaysWhatDiffersThere) {
  std::string text = file_with(muon_job(0), Trainer::kMegatron).text;
  const auto with = [&](const std::string& more) {
    std::string changed = text;
    return read_back(changed.replace(changed.find("--optimizer muon"), 16, more), Trainer::kMegatron);
  };
  EXPECT_EQ(with("--optimizer dist_muon").job.plan.zero_stage, 1);
  EXPECT_THAT(with("--optimizer muon --muon-nesterov").losses, Contains(Field(&Loss::field, "--muon-nesterov")));
  const Imported lion = with("--optimizer lion");
  EXPECT_EQ(lion.job.training.optimizer.kind, program::Update::kAdamW);
  EXPECT_THAT(lion.losses, Contains(Field(&Loss::what, "lion taken as AdamW")));
  text.replace(text.find("duplicated"), 10, "blockwise");
  EXPECT_THAT(with("--optimizer muon").losses, Contains(Field(&Loss::field, "--muon-tp-mode")));
}

TEST(LoraExport, IsReadBackAsItWas) {
  program::Job job = llama_job();
  job.training.lora = {.rank = 16, .alpha = 32, .fc1 = false, .fc2 = false};
  const Launch launch = file_with(job, Trainer::kMegatronBridge);
  EXPECT_THAT(launch.text,
              AllOf(HasSubstr("cfg.peft = LoRA(target_modules=[\"linear_qkv\", \"linear_proj\"], dim=16, alpha=32)"),
                    HasSubstr("    finetune(config=cfg"), HasSubstr("import os\n"),
                    HasSubstr("cfg.checkpoint.pretrained_checkpoint")));
  EXPECT_EQ(read_back(launch.text, Trainer::kMegatronBridge).job.training.lora, job.training.lora);
  job.training.lora = {.rank = 8};
  EXPECT_EQ(read_back(file_with(job, Trainer::kMegatronBridge).text, Trainer::kMegatronBridge).job.training.lora,
            job.training.lora);
  job.training.lora.alpha = 1.5;
  EXPECT_THAT([&] { file_with(job, Trainer::kMegatronBridge); },
              ThrowsMessage<base::Failure>(HasSubstr("lora_alpha: 1.5 is no whole number")));
}

TEST(LoraExport, NamesTheProjectionsOfLatentAttentionAndSaysHowExpertsDiffer) {
  program::Job job = llama_job();
  job.model = models::load_model("deepseek-v2-lite");
  job.model.mtp.reset();
  job.training.lora = {.rank = 16, .alpha = 32};
  const Launch lite = file_with(job, Trainer::kMegatronBridge);
  EXPECT_THAT(lite.text, HasSubstr("LoRA(target_modules=[\"linear_q_proj\", \"linear_kv_down_proj\", "
                                   "\"linear_kv_up_proj\", \"linear_proj\", \"linear_fc1\", \"linear_fc2\"]"));
  EXPECT_THAT(lite.losses, Contains(Field(&Loss::what, HasSubstr("every expert has adapters of its own here"))));
  EXPECT_EQ(read_back(lite.text, Trainer::kMegatronBridge).job.training.lora, job.training.lora);
  job.model = models::load_model("deepseek-v3");
  job.model.mtp.reset();
  job.training.lora.fc1 = job.training.lora.fc2 = false;
  const Launch v3 = file_with(job, Trainer::kMegatronBridge);
  EXPECT_THAT(v3.text, HasSubstr("[\"linear_q_down_proj\", \"linear_q_up_proj\", \"linear_kv_down_proj\", "
                                 "\"linear_kv_up_proj\", \"linear_proj\"]"));
  EXPECT_THAT(v3.losses, Contains(Field(&Loss::what, HasSubstr("two down projections"))));
  EXPECT_EQ(read_back(v3.text, Trainer::kMegatronBridge).job.training.lora, job.training.lora);
}

TEST(LoraImport, ReadsAttentionsTargetsAsTheModelHasThem) {
  program::Job job = llama_job();
  job.model = models::load_model("deepseek-v3");
  job.model.mtp.reset();
  job.training.lora.rank = 16;
  const std::string text = file_with(job, Trainer::kMegatronBridge).text;
  const auto begin = text.find("LoRA("), end = text.find('\n', begin);
  const auto with = [&](const std::string& peft) {
    std::string changed = text;
    return read_back(changed.replace(begin, end - begin, peft), Trainer::kMegatronBridge);
  };
  EXPECT_FALSE(with("LoRA(dim=16, alpha=16)").job.training.lora.qkv);  // linear_qkv, which it has not
  EXPECT_TRUE(with("LoRA(dim=16, alpha=16)").job.training.lora.fc1);
  EXPECT_FALSE(with("LoRA(target_modules=[\"linear_qkv\", \"linear_proj\"], dim=16)").job.training.lora.qkv);
  const Imported some = with("LoRA(target_modules=[\"linear_q_down_proj\"], dim=16)");
  EXPECT_TRUE(some.job.training.lora.qkv);
  EXPECT_THAT(some.losses, Contains(Field(&Loss::what, HasSubstr("some projections of latent attention alone"))));
}

TEST(LoraExport, IsRefusedByNameWhereATrainerHasNone) {
  program::Job job = llama_job();
  job.training.lora.rank = 8;
  for (const TrainerVersion& trainer : trainers()) {
    if (trainer.trainer == Trainer::kMegatronBridge) continue;
    EXPECT_THAT([&] { file_with(job, trainer.trainer); },
                ThrowsMessage<base::Failure>(HasSubstr("lora_rank: adapters are not written for")));
  }
}

program::Job context_job(ContextMethod method) {
  program::Job job = llama_job();
  job.plan.data = 4, job.plan.context = 2;
  job.plan.context_method = method;
  return job;
}

// torchtitan's two rotate methods both move keys and values; its all-to-all sends them to the next rank.
TEST(ContextExport, OfTorchtitanIsARing) {
  const Launch ring = file_with(context_job(ContextMethod::kRing), Trainer::kTorchtitan);
  EXPECT_THAT(ring.losses, Not(Contains(Field(&Loss::field, "context_method"))));
  EXPECT_EQ(read_back(ring.text, Trainer::kTorchtitan).job.plan.context_method, ContextMethod::kRing);
  const Launch heads = file_with(context_job(ContextMethod::kAllToAll), Trainer::kTorchtitan);
  EXPECT_THAT(heads.losses, Contains(AllOf(Field(&Loss::field, "context_method"), Field(&Loss::becomes, "ring"))));
}

TEST(ContextExport, OfRingsWhoseRanksExchangeHeadsIsMegatronsA2aAndP2p) {
  program::Job job = context_job(ContextMethod::kRing);
  job.plan.context = 4, job.plan.data = 2, job.plan.context_heads = 2;
  for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge}) {
    const Launch launch = file_with(job, trainer);
    EXPECT_THAT(launch.text, HasSubstr("a2a+p2p"));
    EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "context_heads"))));
    const Imported back = read_back(launch.text, trainer);
    EXPECT_EQ(back.job.plan.context_heads, 2) << launch.text;
    EXPECT_EQ(back.job.plan.context, 4);
    for (const Loss& loss : back.losses) EXPECT_THAT(loss.field, Not(HasSubstr("context")));
  }
  EXPECT_THAT(file_with(job, Trainer::kMegatron).text, HasSubstr("--hierarchical-context-parallel-sizes 2 2"));
  EXPECT_THAT(file_with(job, Trainer::kTorchtitan).losses,
              Contains(AllOf(Field(&Loss::field, "context_heads"), Field(&Loss::becomes, "1"))));
}

program::Job mixture_job(program::ExpertDispatch dispatch, const char* stack) {
  program::Job job = llama_job();
  job.model = models::load_model("qwen3-30b-a3b");
  job.plan.tensor = 1, job.plan.data = job.plan.expert = 16;
  job.plan.sequence_parallel = false;
  job.plan.expert_dispatch = dispatch;
  job.plan.stack = stack;
  return job;
}

// Pairs of four tensor ranks split experts: an option of Megatron's trainers both ways, which others do not have.
TEST(ExpertTensorExport, IsMegatronsExpertTensorSizeBothWays) {
  program::Job job = mixture_job(program::ExpertDispatch::kStack, "megatron-core");
  job.plan.tensor = 4, job.plan.data = job.plan.expert = 4, job.plan.sequence_parallel = true;
  const std::tuple<Trainer, const char*, const char*> kOptions[] = {
      {Trainer::kMegatron, "--expert-tensor-parallel-size {}", "megatron-core"},
      {Trainer::kMegatronBridge, "cfg.model.expert_tensor_parallel_size = {}", "megatron-bridge"}};
  for (const auto& [trainer, option, stack] : kOptions) {
    for (const int size : {1, 2, 4, 0}) {
      job.plan.expert_tensor = size;
      job.plan.stack = stack;
      ASSERT_FALSE(program::check(job));
      const Launch launch = file_with(job, trainer);
      const bool named = launch.text.find(fmt::format(fmt::runtime(option), size)) != std::string::npos;
      EXPECT_EQ(named, size == 1 || size == 2 || (size == 4 && trainer == Trainer::kMegatronBridge)) << launch.text;
      EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "expert_tensor"))));
      EXPECT_EQ(read_back(launch.text, trainer).job.plan.expert_tensor, size == 4 ? 0 : size) << launch.text;
    }
  }
  job.plan.expert_tensor = 2;
  EXPECT_THAT(file_with(job, Trainer::kNemo).text, HasSubstr("expert_tensor_parallel_size = 2"));
  for (const Trainer other : {Trainer::kTorchtitan, Trainer::kDeepspeed}) {
    EXPECT_THAT(file_with(job, other).losses,
                Contains(AllOf(Field(&Loss::field, "expert_tensor"), Field(&Loss::becomes, "0"))));
  }
  job.plan.expert_tensor = 1;
  EXPECT_THAT(file_with(job, Trainer::kTorchtitan).losses, Not(Contains(Field(&Loss::field, "expert_tensor"))));
}

TEST(DispatchExport, IsMegatronsDispatcherBothWays) {
  using program::ExpertDispatch;
  const std::pair<ExpertDispatch, const char*> kWays[] = {
      {ExpertDispatch::kStack, ""}, {ExpertDispatch::kDeepEp, "deepep"}, {ExpertDispatch::kHybrid, "hybridep"}};
  for (const auto& [dispatch, backend] : kWays) {
    const Launch launch = file_with(mixture_job(dispatch, "megatron-core"), Trainer::kMegatron);
    const std::string type = *backend == 0 ? "alltoall" : "flex";
    EXPECT_THAT(launch.text, HasSubstr("--moe-token-dispatcher-type " + type));
    const bool named = launch.text.find(std::string("--moe-flex-dispatcher-backend ") + backend) != std::string::npos;
    EXPECT_EQ(named, *backend != 0);
    EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "expert_dispatch"))));
    const Imported back = read_back(launch.text, Trainer::kMegatron);
    EXPECT_EQ(back.job.plan.expert_dispatch, dispatch) << launch.text;
    for (const Loss& loss : back.losses) EXPECT_THAT(loss.field, Not(HasSubstr("dispatcher")));
  }
}

// Megatron-Bridge's flex dispatcher is a stack of its own, of HybridEP.
TEST(DispatchExport, IsMegatronBridgesStackOrSaidBesideIt) {
  using program::ExpertDispatch;
  const auto back = [](ExpertDispatch dispatch, const char* stack) {
    const Launch launch = file_with(mixture_job(dispatch, stack), Trainer::kMegatronBridge);
    return read_back(launch.text, Trainer::kMegatronBridge).job.plan;
  };
  const auto way = [&](const program::Plan& plan) { return program::stack_of(plan).expert_dispatch; };
  EXPECT_EQ(way(back(ExpertDispatch::kStack, "megatron-bridge")), ExpertDispatch::kAllToAll);
  EXPECT_EQ(way(back(ExpertDispatch::kHybrid, "megatron-bridge")), ExpertDispatch::kHybrid);
  EXPECT_EQ(way(back(ExpertDispatch::kStack, "megatron-bridge-flex")), ExpertDispatch::kHybrid);
  EXPECT_EQ(way(back(ExpertDispatch::kAllToAll, "megatron-bridge-flex")), ExpertDispatch::kAllToAll);
  const program::Plan deepep = back(ExpertDispatch::kDeepEp, "megatron-bridge");
  EXPECT_EQ(deepep.stack, "megatron-bridge");
  EXPECT_EQ(deepep.expert_dispatch, ExpertDispatch::kDeepEp);
  EXPECT_EQ(way(back(ExpertDispatch::kDeepEp, "megatron-bridge-flex")), ExpertDispatch::kDeepEp);
}

TEST(DispatchExport, IsLostWhereATrainerHasNone) {
  using program::ExpertDispatch;
  const auto losses = [](ExpertDispatch dispatch) {
    return file_with(mixture_job(dispatch, "torchtitan-fsdp2"), Trainer::kTorchtitan).losses;
  };
  EXPECT_THAT(losses(ExpertDispatch::kDeepEp),
              Contains(AllOf(Field(&Loss::field, "expert_dispatch"), Field(&Loss::becomes, "all_to_all"))));
  EXPECT_THAT(losses(ExpertDispatch::kAllToAll), Not(Contains(Field(&Loss::field, "expert_dispatch"))));
  std::string text = file_with(mixture_job(ExpertDispatch::kStack, "megatron-core"), Trainer::kMegatron).text;
  text.replace(text.find("-type alltoall"), 14, "-type allgather");
  EXPECT_THAT(read_back(text, Trainer::kMegatron).losses, Contains(Field(&Loss::field, "--moe-token-dispatcher-type")));
}

program::Job fp8_job(program::Fp8 recipe, program::Fp8Gather gather, const char* stack) {
  program::Job job = llama_job();
  job.plan.fp8 = recipe;
  job.plan.fp8_parameter_gather = gather;
  job.plan.stack = stack;
  return job;
}

TEST(ParameterGatherExport, IsMegatronsFlagBothWays) {
  using program::Fp8;
  using program::Fp8Gather;
  for (const Fp8 recipe : {Fp8::kDelayed, Fp8::kCurrent, Fp8::kBlock, Fp8::kMxfp8}) {
    for (const Fp8Gather gather : {Fp8Gather::kStack, Fp8Gather::kOn}) {
      const Launch launch = file_with(fp8_job(recipe, gather, "megatron-core"), Trainer::kMegatron);
      const bool on = gather == Fp8Gather::kOn;
      EXPECT_EQ(launch.text.find("--fp8-param-gather") != std::string::npos, on);
      const Imported back = read_back(launch.text, Trainer::kMegatron);
      EXPECT_EQ(back.job.plan.fp8_parameter_gather, gather) << launch.text;
      for (const Loss& loss : back.losses) EXPECT_THAT(loss.field, Not(HasSubstr("param")));
    }
  }
  std::string text = file_with(fp8_job(Fp8::kCurrent, Fp8Gather::kOn, "megatron-core"), Trainer::kMegatron).text;
  text.replace(text.find("--use-distributed-optimizer"), 27, "--no-one-knows-this-option");
  const Imported whole = read_back(text, Trainer::kMegatron);
  EXPECT_EQ(whole.job.plan.fp8_parameter_gather, Fp8Gather::kStack);
  EXPECT_THAT(whole.losses, Contains(Field(&Loss::field, "--fp8-param-gather")));
}

// Its recipes gather so themselves, but for blocks.
TEST(ParameterGatherExport, IsSaidToMegatronBridgeWhereItsRecipeSaysOtherwise) {
  using program::Fp8;
  using program::Fp8Gather;
  for (const Fp8 recipe : {Fp8::kDelayed, Fp8::kCurrent, Fp8::kBlock, Fp8::kMxfp8}) {
    for (const Fp8Gather gather : {Fp8Gather::kStack, Fp8Gather::kOn, Fp8Gather::kOff}) {
      const program::Job job = fp8_job(recipe, gather, "megatron-bridge");
      const Launch launch = file_with(job, Trainer::kMegatronBridge);
      const bool usual = gather == Fp8Gather::kStack || (gather == Fp8Gather::kOn) == (recipe != Fp8::kBlock);
      EXPECT_EQ(launch.text.find("fp8_param_gather = ") == std::string::npos, usual);
      const Imported back = read_back(launch.text, Trainer::kMegatronBridge);
      EXPECT_EQ(back.job.plan.fp8, recipe);
      EXPECT_EQ(back.job.plan.precision, program::DType::kBf16);
      EXPECT_EQ(back.job.plan.fp8_parameter_gather, usual ? Fp8Gather::kStack : gather) << launch.text;
      for (const Loss& loss : back.losses) EXPECT_THAT(loss.field, Not(HasSubstr("precision")));
    }
  }
  EXPECT_THAT(file_with(fp8_job(Fp8::kCurrent, Fp8Gather::kOn, "torchtitan-fsdp2"), Trainer::kTorchtitan).losses,
              Contains(AllOf(Field(&Loss::field, "fp8_parameter_gather"), Field(&Loss::becomes, "off"))));
}

TEST(ContextImport, SaysWhatIsNeitherARingNorHeadsAllToAll) {
  const std::string text = file_with(context_job(ContextMethod::kRing), Trainer::kMegatron).text;
  const auto with = [&](const std::string& type) {
    std::string changed = text;
    return read_back(changed.replace(changed.find("--cp-comm-type p2p"), 18, "--cp-comm-type " + type),
                     Trainer::kMegatron);
  };
  EXPECT_THAT(with("p2p").losses, Not(Contains(Field(&Loss::field, "--cp-comm-type"))));
  EXPECT_EQ(with("a2a").job.plan.context_method, ContextMethod::kAllToAll);
  const Imported both = with("a2a+p2p --hierarchical-context-parallel-sizes 1 2");
  EXPECT_EQ(both.job.plan.context_method, ContextMethod::kRing);
  EXPECT_EQ(both.job.plan.context_heads, 1);
  EXPECT_THAT([&] { with("a2a+p2p --hierarchical-context-parallel-sizes 2 2"); },
              ThrowsMessage<base::Failure>(HasSubstr("that make up 2 context ranks")));
  EXPECT_THAT(with("allgather").losses, Contains(Field(&Loss::field, "--cp-comm-type")));
  EXPECT_THAT(with("p2p a2a").losses, Contains(Field(&Loss::what, HasSubstr("from layer to layer"))));
  std::string bridge = file_with(context_job(ContextMethod::kRing), Trainer::kMegatronBridge).text;
  bridge.replace(bridge.find("\"p2p\""), 5, "\"allgather\"");
  EXPECT_THAT(read_back(bridge, Trainer::kMegatronBridge).losses,
              Contains(Field(&Loss::field, "cfg.model.cp_comm_type")));
}

}  // namespace
}  // namespace trivium::planner::launch
