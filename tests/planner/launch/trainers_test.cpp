// The spaces of `plan --for` against what export and import say of their plans.
#include "planner/space/trainers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/launch.h"
#include "planner/search/search.h"
#include "planner/space/space.h"
#include "planner/space/usual_bounds.h"
#include "program/plan/job_json.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::planner {
namespace {

using testing::IsEmpty;

constexpr int kPlans = 1000;

SearchRequest request_for(const TrainerSpace& trainer, const std::string& model) {
  SearchRequest request;
  request.job.model = models::load_model(model);
  request.job.training.sequence = 8192;
  request.job.training.global_batch = 96;
  request.job.training.total_tokens = 1000 * 96 * 8192;
  request.job.plan.stack = trainer.stack;
  request.job.plan.attention = program::Attention::kFlash;
  request.cluster = hardware::load_cluster("dgx-h100-80gb:4");
  return for_trainer(std::move(request), trainer);
}

/// A plan of the space, every choice of a level as likely as the others.
program::Plan any_plan(const Space& space, const SearchRequest& request, std::mt19937& random) {
  const auto any = [&](const auto& all) {
    return all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
  };
  for (;;) {
    const program::Plan split = any(space.splits());
    const auto layouts = space.layouts(split);
    if (layouts.empty()) continue;
    const PlacementChoice layout = any(layouts);
    const auto shapes = space.shapes(split, layout);
    if (shapes.empty()) continue;
    const ScheduleChoice shape = any(shapes);
    const auto states = space.states(split, layout, shape);
    const auto kept = space.recompute_choices(split, shape);
    if (states.empty() || kept.empty()) continue;
    program::Plan plan = with(with(with(with(split, layout), shape), any(kept)), any(states));
    const std::int64_t layers = request.job.model.layers;
    if (shape.balanced || layers % plan.chunks() != 0) {
      plan.stage_layers.assign(static_cast<std::size_t>(plan.chunks()), static_cast<int>(layers / plan.chunks()));
      plan.stage_layers.back() += static_cast<int>(layers % plan.chunks());
      if (plan.chunks() > 1 && plan.stage_layers.front() > 1) --plan.stage_layers.front(), ++plan.stage_layers.back();
    }
    return plan;
  }
}

class TrainerSpaces : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// Whatever the space holds the file says, and reading it back gives the same plan.
TEST_P(TrainerSpaces, AreWhatTheFilesSay) {
  const auto [name, model] = GetParam();
  const TrainerSpace& trainer = *find_trainer_space(name);
  const SearchRequest request = request_for(trainer, model);
  const Space space(request);
  const launch::Trainer to = launch::find_trainer(name)->trainer;
  std::mt19937 random(7);
  for (int i = 0; i < kPlans; ++i) {
    program::Job job = request.job;
    job.plan = any_plan(space, request, random);
    SCOPED_TRACE(program::summary(job.plan));
    ASSERT_EQ(broken_rule(trainer, job.plan, job), nullptr);
    const launch::Launch written = launch::export_plan(job, request.cluster, to);
    for (const launch::Loss& loss : written.losses) ADD_FAILURE() << loss.field << ": " << loss.what;
    launch::ImportRequest read;
    read.text = written.text;
    read.where = "launch";
    read.ranks = job.plan.ranks();
    if (to == launch::Trainer::kFsdp2) read.model = job.model;
    ASSERT_EQ(launch::trainer_of(read), to);
    const launch::Imported imported = launch::import_plan(read, to);
    ASSERT_EQ(program::to_json(imported.job.plan), program::to_json(job.plan));
    ASSERT_EQ(imported.job.model, job.model);
    ASSERT_EQ(imported.job.training.global_batch, job.training.global_batch);
    ASSERT_EQ(imported.job.training.sequence, job.training.sequence);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, TrainerSpaces,
                         testing::Values(std::tuple{"megatron", "llama3-8b"}, std::tuple{"megatron", "qwen3-30b-a3b"},
                                         std::tuple{"megatron-bridge", "llama3.1-8b"},
                                         std::tuple{"megatron-bridge", "mixtral-8x7b"},
                                         std::tuple{"torchtitan", "llama3.1-8b"},
                                         std::tuple{"torchtitan", "qwen3-30b-a3b"},
                                         std::tuple{"deepspeed", "llama3-8b"}, std::tuple{"deepspeed", "llama-33b"},
                                         std::tuple{"fsdp2", "llama3-8b"}, std::tuple{"fsdp2", "mixtral-8x7b"}));

// pytorch/torchtitan#1373: FSDP 8 with EP 2, the experts of two neighbours sharded over four. With context ranks these
// share the experts there, which is refused.
TEST(TorchtitanSpace, WritesAndReadsSpreadExpertsInsideFsdp) {
  program::Job job = request_for(*find_trainer_space("torchtitan"), "qwen3-30b-a3b").job;
  job.plan.data = 8, job.plan.expert = 2, job.plan.zero_stage = 3;
  job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
  const launch::Launch written =
      launch::export_plan(job, hardware::load_cluster("dgx-h100-80gb:1"), launch::Trainer::kTorchtitan);
  EXPECT_THAT(written.losses, IsEmpty());
  EXPECT_THAT(written.text, testing::HasSubstr("data_parallel_replicate_degree = 1\ndata_parallel_shard_degree = 8\n"));
  EXPECT_THAT(written.text, testing::HasSubstr("expert_parallel_degree = 2\n"));
  launch::ImportRequest read;
  read.text = written.text;
  read.where = "launch";
  read.ranks = 8;
  EXPECT_EQ(program::to_json(launch::import_plan(read, launch::Trainer::kTorchtitan).job.plan),
            program::to_json(job.plan));
  constexpr std::string_view kContext = "context_parallel_degree = 1";
  read.text.replace(read.text.find(kContext), kContext.size(), "context_parallel_degree = 2");
  read.ranks = 16;
  EXPECT_THROW(launch::import_plan(read, launch::Trainer::kTorchtitan), base::Failure);
}

std::string broken_field(const char* trainer, const program::Job& job) {
  const TrainerRule* rule = broken_rule(*find_trainer_space(trainer), job.plan, job);
  return rule == nullptr ? "" : rule->field;
}

launch::Imported read_back(const launch::Launch& written, int ranks) {
  launch::ImportRequest read;
  read.text = written.text;
  read.where = "launch";
  read.ranks = ranks;
  return launch::import_plan(read, launch::Trainer::kTorchtitan);
}

// torch/distributed/pipelining/schedules.py, Schedule1F1B: 96 samples over 4 replicas are 24 micro-batches of one, and
// three of eight, too few for eight stages. Interleaved1F1B takes whole rounds of the stages, which plans have anyway.
TEST(TorchtitanSpace, FeedsEveryStage) {
  program::Job job = request_for(*find_trainer_space("torchtitan"), "llama3.1-8b").job;
  job.plan.pipeline = 8, job.plan.data = 4, job.plan.zero_stage = 1;
  job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
  EXPECT_EQ(broken_field("torchtitan", job), "");
  job.plan.micro_batch = 3;  // 8 micro-batches
  EXPECT_EQ(broken_field("torchtitan", job), "");
  job.plan.micro_batch = 8;
  EXPECT_EQ(broken_field("torchtitan", job), "schedule");
  const launch::Launch written =
      launch::export_plan(job, hardware::load_cluster("dgx-h100-80gb:4"), launch::Trainer::kTorchtitan);
  ASSERT_EQ(written.losses.size(), 1U);
  EXPECT_EQ(written.losses.front().what, "1f1b wants 8 micro-batches there, one for every stage; there are 3");
  job.plan.virtual_stages = 2, job.plan.schedule = program::usual_schedule(2);
  EXPECT_EQ(broken_field("torchtitan", job), "");
}

// torch/distributed/pipelining/stage.py, backward_maybe_with_nosync: gradients of stages are whole until the last one.
TEST(TorchtitanSpace, SharesTheStateAloneBetweenReplicasOfAStage) {
  SearchRequest request = request_for(*find_trainer_space("torchtitan"), "llama3.1-8b");
  program::Job job = request.job;
  job.plan.pipeline = 2, job.plan.data = 16, job.plan.zero_stage = 1;
  job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
  EXPECT_EQ(broken_field("torchtitan", job), "");
  const launch::Launch staged = launch::export_plan(job, request.cluster, launch::Trainer::kTorchtitan);
  EXPECT_THAT(staged.losses, IsEmpty());
  EXPECT_THAT(staged.text, testing::HasSubstr("fsdp_reshard_after_forward = \"never\"\n"));
  EXPECT_EQ(read_back(staged, 32).job.plan.zero_stage, 1);
  for (const int stage : {2, 3}) {
    job.plan.zero_stage = stage;
    EXPECT_EQ(broken_field("torchtitan", job), "zero_stage");
    const launch::Launch lost = launch::export_plan(job, request.cluster, launch::Trainer::kTorchtitan);
    ASSERT_EQ(lost.losses.size(), 1U);
    EXPECT_EQ(lost.losses.front().field, "zero_stage");
  }
  job.plan.pipeline = 1, job.plan.data = 32, job.plan.zero_stage = 1;
  EXPECT_EQ(broken_field("torchtitan", job), "zero_stage");
}

// torchtitan/components/quantization/float8.py and mx.py.
TEST(TorchtitanSpace, HasTheEightBitsOfItsConverters) {
  program::Job dense = request_for(*find_trainer_space("torchtitan"), "llama3.1-8b").job;
  dense.plan.data = 32, dense.plan.zero_stage = 3;
  dense.plan.overlap.gradient_reduction = dense.plan.overlap.parameter_gather = true;
  for (const program::Fp8 recipe : {program::Fp8::kNone, program::Fp8::kCurrent, program::Fp8::kMxfp8}) {
    dense.plan.fp8 = recipe;
    EXPECT_EQ(broken_field("torchtitan", dense), "") << name_of(recipe);
  }
  for (const program::Fp8 recipe : {program::Fp8::kDelayed, program::Fp8::kBlock, program::Fp8::kNvfp4}) {
    dense.plan.fp8 = recipe;
    EXPECT_EQ(broken_field("torchtitan", dense), "fp8") << name_of(recipe);
  }
  program::Job mixture = request_for(*find_trainer_space("torchtitan"), "qwen3-30b-a3b").job;
  mixture.plan = dense.plan;
  for (program::Job* job : {&dense, &mixture}) {
    job->plan.tensor = 2, job->plan.data = 16, job->plan.sequence_parallel = true;
    job->plan.fp8 = program::Fp8::kMxfp8;
    EXPECT_EQ(broken_field("torchtitan", *job), "tensor");
    job->plan.fp8 = program::Fp8::kCurrent;
    EXPECT_EQ(broken_field("torchtitan", *job), "");
    job->plan.pipeline = 2, job->plan.data = 8, job->plan.zero_stage = 1;
  }
  EXPECT_EQ(broken_field("torchtitan", dense), "");
  EXPECT_EQ(broken_field("torchtitan", mixture), "pipeline");
}

TEST(TorchtitanSpace, WritesAndReadsEightBits) {
  for (const program::Fp8 recipe : {program::Fp8::kCurrent, program::Fp8::kMxfp8}) {
    program::Job job = request_for(*find_trainer_space("torchtitan"), "llama3.1-8b").job;
    job.plan.data = 16, job.plan.zero_stage = 3, job.plan.fp8 = recipe;
    job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
    const hardware::Cluster cluster = hardware::load_cluster("dgx-b200:2");
    const launch::Launch written = launch::export_plan(job, cluster, launch::Trainer::kTorchtitan);
    EXPECT_THAT(written.losses, IsEmpty());
    const std::string kind = recipe == program::Fp8::kCurrent ? "float8" : "mx";
    EXPECT_THAT(written.text, testing::HasSubstr("converters = [\"quantize.linear." + kind +
                                                 "\"]\n\n# with torchao 0.16\n[quantize.linear." + kind +
                                                 "]\nfilter_fqns = [\"output\"]\n"));
    EXPECT_EQ(program::to_json(read_back(written, 16).job.plan), program::to_json(job.plan));
    job.model = models::load_model("qwen3-30b-a3b");
    EXPECT_THAT(launch::export_plan(job, cluster, launch::Trainer::kTorchtitan).text,
                testing::HasSubstr("[quantize.grouped_mm." + kind + "]\nfqns = [\"experts\"]\n"));
  }
}

// Widths of torchtitan/models/llama4/model/model.py, TransformerBlock: 16,384 of dense MLPs, which one routed and one
// shared expert halve.
TEST(TorchtitanExport, WritesLlama4AsItsOwnClass) {
  for (const char* name : {"llama4-scout", "llama4-maverick"}) {
    program::Job job = request_for(*find_trainer_space("torchtitan"), name).job;
    job.plan.data = 32, job.plan.zero_stage = 3;
    job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
    const launch::Launch written =
        launch::export_plan(job, hardware::load_cluster("dgx-h100-80gb:4"), launch::Trainer::kTorchtitan);
    EXPECT_THAT(written.text, testing::HasSubstr("from torchtitan.models.llama4 import TransformerModelArgs"));
    for (const launch::Loss& loss : written.losses) EXPECT_NE(loss.field, "experts") << loss.what;
    const models::Model read = read_back(written, 32).job.model;
    ASSERT_TRUE(read.experts) << name;
    EXPECT_EQ(read.ffn_hidden, 8192);
    EXPECT_EQ(read.experts->shared_hidden, 8192);
    EXPECT_EQ(read.experts->count, job.model.experts->count);
    EXPECT_EQ(read.experts->every, job.model.experts->every);
    EXPECT_EQ(read.rotary, job.model.rotary);
    EXPECT_EQ(read.dense_hidden(), read.experts->every > 1 ? 16384 : read.ffn_hidden);
    EXPECT_EQ(models::count_parameters(read).total, models::count_parameters(job.model).total) << name;
  }
}

// torchtitan/models/deepseek_v3: latents and the first dense layers are said, too.
TEST(TorchtitanExport, WritesLatentsInTheirOwnClass) {
  for (const char* name : {"deepseek-v3", "deepseek-v2-lite", "kimi-k2"}) {
    program::Job job = request_for(*find_trainer_space("torchtitan"), name).job;
    job.plan.data = 32, job.plan.zero_stage = 3;
    job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
    const launch::Launch written =
        launch::export_plan(job, hardware::load_cluster("dgx-h100-80gb:4"), launch::Trainer::kTorchtitan);
    for (const launch::Loss& loss : written.losses) ADD_FAILURE() << name << ": " << loss.field << ": " << loss.what;
    models::Model read = read_back(written, 32).job.model;
    EXPECT_EQ(read.latent, job.model.latent) << name;
    read.experts->correction_bias = job.model.experts->correction_bias;  // a buffer there, whatever the model
    EXPECT_EQ(models::count_parameters(read).total, models::count_parameters(job.model).total) << name;
    EXPECT_NEAR(read.attention_scale, job.model.attention_scale, 1e-6 * job.model.attention_scale) << name;
  }
}

// Transformer Engine's attention with context ranks is fused, and its exchange of heads divides those of keys: 8 of
// them over two tensor ranks are four.
TEST(MegatronSpace, SplitsContextsAsTransformerEngineDoes) {
  program::Job job = request_for(*find_trainer_space("megatron"), "llama3-8b").job;
  job.plan.tensor = 2, job.plan.context = 4, job.plan.data = 4;
  job.plan.context_method = program::ContextMethod::kAllToAll;
  EXPECT_EQ(broken_field("megatron", job), "");
  job.plan.context = 8, job.plan.data = 2;
  EXPECT_EQ(broken_field("megatron", job), "context");
  job.plan.context_method = program::ContextMethod::kRing;
  EXPECT_EQ(broken_field("megatron", job), "");
  job.plan.context_heads = 4;
  EXPECT_EQ(broken_field("megatron", job), "");
  job.plan.attention = program::Attention::kUnfused;
  EXPECT_EQ(broken_field("megatron", job), "attention");
}

// PyTorch's trainers have fused attention alone and always overlap, whatever a profile of cores prefers.
TEST(TrainerSpace, HoldsPlansOnCoresToo) {
  for (const char* name : {"fsdp2", "torchtitan", "deepspeed", "megatron"}) {
    const TrainerSpace& trainer = *find_trainer_space(name);
    SearchRequest request = request_for(trainer, "llama3-8b");
    request.cluster = hardware::load_cluster("generic-cpu");
    request.cluster.groups.front().node.devices = 2;
    request.job.plan.attention = program::Attention::kUnfused;
    request.job.plan.precision = program::DType::kFp32;
    const Space space(request);
    std::mt19937 random(7);
    EXPECT_EQ(broken_rule(trainer, any_plan(space, request, random), request.job), nullptr) << name;
  }
}

// ZeRO is chosen after the moments are given: the rule on both must not be asked before.
TEST(TrainerSpace, FindsPlansWithNarrowMoments) {
  for (const char* name : {"megatron", "megatron-bridge"}) {
    const TrainerSpace& trainer = *find_trainer_space(name);
    SearchRequest request = request_for(trainer, "llama3-8b");
    request.job.plan.moment_dtype = program::Moments::kBf16;
    request.fixed.insert("moment_dtype");
    const Space space(request);
    ASSERT_FALSE(space.splits().empty()) << name;
    std::mt19937 random(7);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(any_plan(space, request, random).zero_stage, 1) << name;
  }
}

TEST(TrainerSpace, RefusesWhatIsFixedToAnotherValue) {
  const TrainerSpace& trainer = *find_trainer_space("fsdp2");
  SearchRequest request = request_for(*find_trainer_space("megatron"), "llama3-8b");
  request.job.plan.tensor = 8;
  request.fixed.insert("tensor");
  try {
    for_trainer(request, trainer);
    FAIL() << "no error";
  } catch (const base::Failure& failure) {
    EXPECT_EQ(failure.error().kind, base::ErrorKind::kUsage);
    EXPECT_EQ(failure.error().message, "--for fsdp2: tensor 8: replicas alone");
  }
}

std::string refusal_of(const program::Job& job, const char* trainer) {
  SearchRequest request = request_for(*find_trainer_space(trainer), "llama3-8b");
  request.job.plan.precision = job.plan.precision;
  request.job.plan.moment_dtype = job.plan.moment_dtype;
  request.job.training.optimizer = job.training.optimizer;
  request.job.training.lora = job.training.lora;
  try {
    for_trainer(request, *find_trainer_space(trainer));
  } catch (const base::Failure& failure) {
    return failure.error().message;
  }
  return "";
}

// What no search opens decides though it is not fixed: a plan file has it.
TEST(TrainerSpace, RefusesWhatIsNeverSearched) {
  program::Job job;
  job.plan.precision = program::DType::kBf16;
  job.plan.moment_dtype = program::Moments::kBf16;
  EXPECT_EQ(refusal_of(job, "megatron"), "");
  EXPECT_EQ(refusal_of(job, "fsdp2"), "--for fsdp2: moment_dtype bf16: moments stay in fp32");
  job.plan.precision = program::DType::kFp32;
  for (const std::string name : {"megatron", "megatron-bridge"}) {
    EXPECT_EQ(refusal_of(job, name.c_str()),
              "--for " + name + ": moment_dtype bf16: moments in bf16 beside 16-bit parameters alone");
  }
  job = {};
  EXPECT_EQ(refusal_of(job, "megatron"), "");
  job.training.optimizer.kind = program::Update::kMuon;
  EXPECT_EQ(refusal_of(job, "megatron"), "");
  EXPECT_EQ(refusal_of(job, "torchtitan"), "--for torchtitan: optimizer muon: its files are not written with it");
  job = {};
  job.training.lora.rank = 8;
  EXPECT_EQ(refusal_of(job, "megatron-bridge"), "");
  EXPECT_EQ(refusal_of(job, "megatron"), "--for megatron: lora_rank: its files are not written with adapters");
}

// Megatron-Core's are those of its distributed optimizer; the others have no dtype of moments.
TEST(TrainerSpace, HasNarrowMomentsWhereItsTrainerHas) {
  for (const TrainerSpace& trainer : trainer_spaces()) {
    const program::Job job;
    program::Plan plan;
    plan.moment_dtype = program::Moments::kBf16;
    plan.zero_stage = 1;
    const auto refused = [&] {
      program::Plan wide = plan;
      wide.moment_dtype = program::Moments::kFp32;
      return std::ranges::any_of(
          trainer.rules, [&](const TrainerRule& rule) { return !rule.holds(plan, job) && rule.holds(wide, job); });
    };
    const bool is_megatron = std::string_view(trainer.trainer).starts_with("megatron");
    EXPECT_EQ(refused(), !is_megatron) << trainer.trainer;
    plan.zero_stage = 0;
    EXPECT_TRUE(refused()) << trainer.trainer;
    plan.moment_dtype = program::Moments::kFp32;
    EXPECT_FALSE(refused()) << trainer.trainer;
  }
}

// torchtitan's run of 405B on 512 H100 (TP8 PP8 DP8, 32,768 tokens, full recomputation, float8) held 75.3 GiB, the
// allocator's own peak (validation/runs_modern/torchtitan_h100_h200.csv, TT-405B-g512-cp1-s32768): 7 billion parameters
// a rank with whole gradients. Gradients in shards, ZeRO 2, come out a fifth below it.
TEST(TrainerStack, HoldsWholeGradientsInStages) {
  program::Job job;
  job.model = models::load_model("llama3.1-405b");
  job.training.sequence = 32'768;
  job.training.global_batch = 64;
  job.plan.stack = find_trainer_space("torchtitan")->stack;
  job.plan.tensor = 8, job.plan.pipeline = 8, job.plan.data = 8, job.plan.sequence_parallel = true;
  job.plan.attention = program::Attention::kFlash, job.plan.recompute = program::Recompute::kFull;
  job.plan.fp8 = program::Fp8::kCurrent;
  job.plan.overlap.gradient_reduction = job.plan.overlap.parameter_gather = true;
  const hardware::Cluster cluster = hardware::load_cluster("grand-teton-h100-96gb-500w:64");
  const auto peak_gib = [&](int stage) {
    job.plan.zero_stage = stage;
    std::int64_t most = 0;
    const simulator::Prepared prepared = simulator::prepared(job, cluster);
    for (const simulator::StageMemory& one : prepared.memory()) most = std::max(most, one.total());
    return static_cast<double>(most) / (1 << 30);
  };
  EXPECT_EQ(broken_field("torchtitan", (job.plan.zero_stage = 1, job)), "");
  EXPECT_NEAR(peak_gib(1), 75.3, 0.05 * 75.3);
  EXPECT_LT(peak_gib(2), 0.82 * 75.3);
}

// Megatron-Core updates an offloaded state on the host: 15.5 s for 35 billion parameters on two hosts of eight.
TEST(TrainerStack, RunsAnOffloadedOptimizerOnTheHost) {
  program::Job job;
  job.model = models::load_model("llama3-8b");
  job.training.sequence = 8192;
  job.training.global_batch = 32;
  job.plan.tensor = 4;
  job.plan.sequence_parallel = true;
  job.plan.data = 2;
  job.plan.zero_stage = 1;
  job.plan.attention = program::Attention::kFlash;
  job.plan.offload.optimizer = program::Storage::kHost;
  const hardware::Cluster cluster = hardware::load_cluster("dgx-h100-80gb:1");
  const auto seconds = [&](const char* stack, program::Storage storage) {
    job.plan.stack = stack;
    job.plan.offload.optimizer = storage;
    return simulator::simulate(simulator::prepared(job, cluster), {}).value_or_throw().iteration_s;
  };
  const double here = seconds("megatron-core", program::Storage::kNone);
  const double there = seconds("megatron-core", program::Storage::kHost);
  const double update = 8.03e9 / 8 / (35e9 / 2 / 8 / 15.5);  // a rank's eighth of the parameters
  EXPECT_GT(there, here + 0.9 * update);
  EXPECT_LT(there, here + 1.3 * update);
  // Our own runtime brings the state to the device.
  const double ours = seconds("trivium", program::Storage::kHost);
  EXPECT_LT(ours, seconds("trivium", program::Storage::kNone) + 0.2 * update);
}

}  // namespace
}  // namespace trivium::planner
