// Moments in 16 bits in other trainers' files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/export_parts.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {
namespace {

using program::Moments;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

program::Job narrow_job() {
  program::Job job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = 2048;
  job.training.global_batch = 1536;
  job.plan.tensor = 8, job.plan.pipeline = 16, job.plan.data = 8;
  job.plan.zero_stage = 1;
  job.plan.moment_dtype = Moments::kBf16;
  job.plan.stack = "megatron-core";
  return job;
}

Launch written(const program::Job& job, Trainer trainer) {
  return export_plan(job, hardware::load_cluster("dgx-h100-80gb:128"), trainer);
}

ImportRequest request_with(std::string text) {
  ImportRequest request;
  request.text = std::move(text);
  request.where = "launch";
  return request;
}

TEST(NarrowMomentsExport, AreThoseOfThePrecisionAwareOptimizer) {
  const Launch launch = written(narrow_job(), Trainer::kMegatron);
  EXPECT_THAT(launch.text, AllOf(HasSubstr("--use-precision-aware-optimizer"), HasSubstr("--exp-avg-dtype bf16"),
                                 HasSubstr("--exp-avg-sq-dtype bf16")));
  EXPECT_THAT(launch.losses, Not(Contains(Field(&Loss::field, "moment_dtype"))));
  const Launch bridge = written(narrow_job(), Trainer::kMegatronBridge);
  EXPECT_THAT(bridge.text, AllOf(HasSubstr("import torch\n"), HasSubstr("cfg.optimizer.exp_avg_dtype = torch.bfloat16"),
                                 HasSubstr("cfg.optimizer.use_precision_aware_optimizer = True")));
  for (const auto& [trainer, text] :
       {std::pair{Trainer::kMegatron, launch.text}, {Trainer::kMegatronBridge, bridge.text}}) {
    EXPECT_EQ(import_plan(request_with(text), trainer).job.plan.moment_dtype, Moments::kBf16);
  }
}

TEST(NarrowMomentsExport, AreLostWhereATrainerKeepsThemIn32Bits) {
  for (const Trainer trainer : {Trainer::kDeepspeed, Trainer::kTorchtitan, Trainer::kNemo, Trainer::kAccelerate}) {
    const Launch launch = written(narrow_job(), trainer);
    EXPECT_THAT(launch.losses, Contains(AllOf(Field(&Loss::field, "moment_dtype"), Field(&Loss::becomes, "fp32"))));
    EXPECT_EQ(as_launched(narrow_job(), launch.losses)->moment_dtype, Moments::kFp32);
  }
  program::Job whole = narrow_job(), away = narrow_job();
  whole.plan.zero_stage = 0;
  away.plan.offload.optimizer = program::Storage::kHost;
  for (const program::Job& job : {whole, away}) {
    for (const Trainer trainer : {Trainer::kMegatron, Trainer::kMegatronBridge}) {
      const Launch launch = written(job, trainer);
      EXPECT_THAT(launch.losses, Contains(Field(&Loss::field, "moment_dtype")));
      EXPECT_THAT(launch.text, Not(HasSubstr("bfloat16")));
      EXPECT_THAT(launch.text, Not(HasSubstr("exp-avg-dtype")));
    }
  }
}

TEST(NarrowMomentsImport, NeedThePrecisionAwareOptimizerOnTheDevice) {
  const std::string text = written(narrow_job(), Trainer::kMegatron).text;
  const auto without = [&](const std::string& part, const std::string& instead) {
    std::string changed = text;
    changed.replace(changed.find(part), part.size(), instead);
    return import_plan(request_with(changed), Trainer::kMegatron);
  };
  for (const Imported& read :
       {without("--use-precision-aware-optimizer", ""), without("--exp-avg-dtype bf16", "--exp-avg-dtype fp8"),
        without("--use-precision", "--optimizer-cpu-offload --use-precision")}) {
    EXPECT_EQ(read.job.plan.moment_dtype, Moments::kFp32);
    EXPECT_THAT(read.losses, Contains(Field(&Loss::field, "--exp-avg-dtype")));
  }
}

}  // namespace
}  // namespace trivium::planner::launch
