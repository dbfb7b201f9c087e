// Modules that selective recomputation drops, in other trainers' files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/export_parts.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {
namespace {

using program::Module;
using program::Recompute;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

program::Job modular_job(std::vector<Module> modules) {
  program::Job job;
  job.model = models::load_model("mixtral-8x7b");
  job.training.sequence = 4096;
  job.training.global_batch = 256;
  job.plan.data = job.plan.expert = 8;
  job.plan.attention = program::Attention::kFlash;
  job.plan.recompute = Recompute::kSelective;
  job.plan.recompute_modules = std::move(modules);
  job.plan.stack = "megatron-core";
  return job;
}

Launch launched(const program::Job& job, Trainer trainer) {
  return export_plan(job, hardware::load_cluster("dgx-h100-80gb:1"), trainer);
}

Imported back(const std::string& text, Trainer trainer) {
  ImportRequest request;
  request.text = text;
  request.where = "launch";
  return import_plan(request, trainer);
}

TEST(RecomputeModulesExport, GoThereAndBack) {
  const std::vector<Module> modules{Module::kLayerNorm, Module::kMixtureActivation};
  const program::Job job = modular_job(modules);
  for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge}) {
    const Launch launch = launched(job, trainer);
    EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "recompute_modules"))));
    EXPECT_EQ(back(launch.text, trainer).job.plan.recompute_modules, modules);
  }
  EXPECT_THAT(launched(job, Trainer::kMegatron).text, HasSubstr("--recompute-modules layernorm moe_act"));
  EXPECT_THAT(launched(job, Trainer::kMegatronBridge).text,
              HasSubstr("recompute_modules = [\"layernorm\", \"moe_act\"]"));
  EXPECT_THAT(launched(job, Trainer::kNemo).text, HasSubstr("recompute_modules = [\"layernorm\", \"moe_act\"]"));
}

// The core alone is what selective recomputation is; trainers that recompute nothing have no modules either.
TEST(RecomputeModulesExport, OfTheCoreAloneAreNone) {
  const Launch launch = launched(modular_job({}), Trainer::kMegatron);
  EXPECT_THAT(launch.text, Not(HasSubstr("--recompute-modules")));
  EXPECT_THAT(back(launch.text + " --recompute-modules core_attn", Trainer::kMegatron).job.plan.recompute_modules,
              IsEmpty());
  const program::Job job = modular_job({Module::kMixture});
  const auto plan = as_launched(job, launched(job, Trainer::kDeepspeed).losses);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->recompute, Recompute::kNone);
  EXPECT_THAT(plan->recompute_modules, IsEmpty());
}

// Megatron's block method: the first layers of every chunk.
TEST(RecomputeLayersExport, GoThereAndBack) {
  program::Job job = modular_job({});
  job.plan.recompute = Recompute::kFull;
  job.plan.recompute_layers = 3;
  job.plan.pipeline = 4, job.plan.data = job.plan.expert = 2;
  for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge}) {
    const Launch launch = launched(job, trainer);
    EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "recompute_layers"))));
    EXPECT_EQ(back(launch.text, trainer).job.plan.recompute_layers, 3);
  }
  EXPECT_THAT(launched(job, Trainer::kMegatron).text, HasSubstr("--recompute-method block --recompute-num-layers 3"));
  EXPECT_THAT(launched(job, Trainer::kDeepspeed).losses, Contains(Field(&Loss::field, "recompute_layers")));
}

// Megatron's uniform method: layers between two checkpoints.
TEST(RecomputeGroupExport, GoesThereAndBack) {
  program::Job job = modular_job({});
  job.plan.recompute = Recompute::kFull;
  job.plan.recompute_group = 3;
  job.plan.pipeline = 4, job.plan.data = job.plan.expert = 2;
  for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge, Trainer::kDeepspeed}) {
    const Launch launch = launched(job, trainer);
    EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "recompute_group"))));
    const Imported imported = back(launch.text, trainer);
    EXPECT_EQ(imported.job.plan.recompute_group, 3) << launch.text;
    EXPECT_EQ(imported.job.plan.recompute_layers, 0);
    EXPECT_THAT(imported.losses, Not(Contains(Field(&Loss::field, HasSubstr("num-layers")))));
  }
  EXPECT_THAT(launched(job, Trainer::kMegatron).text, HasSubstr("--recompute-method uniform --recompute-num-layers 3"));
  EXPECT_THAT(launched(job, Trainer::kNemo).text,
              AllOf(HasSubstr("recompute_method = \"uniform\""), HasSubstr("recompute_num_layers = 3")));
  EXPECT_THAT(launched(job, Trainer::kAccelerate).text, HasSubstr("megatron_lm_recompute_num_layers: 3"));
  for (const Trainer trainer : {Trainer::kTorchtitan, Trainer::kFsdp2}) {
    const auto plan = as_launched(job, launched(job, trainer).losses);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->recompute_group, 1);
  }
}

TEST(RecomputeModulesImport, NamesWhatNoPlanRecomputes) {
  const std::string text = launched(modular_job({Module::kMixture}), Trainer::kMegatron).text;
  const std::string other = std::string(text).replace(text.find("modules moe"), 11, "modules moe mamba");
  const Imported imported = back(other, Trainer::kMegatron);
  EXPECT_EQ(imported.job.plan.recompute_modules, std::vector{Module::kMixture});
  EXPECT_THAT(imported.losses, Contains(Field(&Loss::field, "--recompute-modules")));
}

}  // namespace
}  // namespace trivium::planner::launch
