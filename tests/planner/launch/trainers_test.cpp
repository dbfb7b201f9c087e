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
    ASSERT_EQ(broken_rule(trainer, job.plan), nullptr);
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
    EXPECT_EQ(broken_rule(trainer, any_plan(space, request, random)), nullptr) << name;
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
    program::Plan plan;
    plan.moment_dtype = program::Moments::kBf16;
    plan.zero_stage = 1;
    const auto refused = [&] {
      program::Plan wide = plan;
      wide.moment_dtype = program::Moments::kFp32;
      return std::ranges::any_of(trainer.rules,
                                 [&](const TrainerRule& rule) { return !rule.holds(plan) && rule.holds(wide); });
    };
    const bool is_megatron = std::string_view(trainer.trainer).starts_with("megatron");
    EXPECT_EQ(refused(), !is_megatron) << trainer.trainer;
    plan.zero_stage = 0;
    EXPECT_TRUE(refused()) << trainer.trainer;
    plan.moment_dtype = program::Moments::kFp32;
    EXPECT_FALSE(refused()) << trainer.trainer;
  }
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
