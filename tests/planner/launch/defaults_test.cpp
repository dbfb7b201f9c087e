// What a launch file holds that nobody chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/launch/launch.h"

namespace trivium::planner::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

program::Job gpt3_on_1024() {
  program::Job job;
  job.model = models::load_model("gpt3-175b");
  job.training.sequence = 2048;
  job.training.global_batch = 1536;
  job.plan.tensor = 8;
  job.plan.pipeline = 16;
  job.plan.data = 8;
  return job;
}

Launch exported_on_128(const program::Job& job, Trainer trainer, const std::set<std::string>& chosen = {}) {
  return export_plan(job, hardware::load_cluster("dgx-a100-80gb:128"), trainer, chosen);
}

// What nobody chose is told by field, in the file too; what the file does not hold is not.
TEST(ExportDefaults, SaysWhichSettingsOfTheFileNobodyChose) {
  program::Job job = gpt3_on_1024();
  job.training.optimizer.warmup_steps = 2000;
  const Launch launch = exported_on_128(job, Trainer::kMegatron);
  EXPECT_THAT(launch.defaults,
              ElementsAre(Setting{"dropout", "0"}, Setting{"learning_rate", "0.0003"},
                          Setting{"min_learning_rate", "3e-05"}, Setting{"beta1", "0.9"}, Setting{"beta2", "0.95"},
                          Setting{"epsilon", "1e-08"}, Setting{"weight_decay", "0.1"}, Setting{"clip_norm", "1"}));
  EXPECT_THAT(launch.text, HasSubstr("\n# Trivium's defaults: dropout 0, learning_rate 0.0003, "));

  // torchtitan's file has no dropout and no rate at the end of the decay; accelerate's has no optimizer at all.
  std::vector<std::string> titan;
  for (const Setting& setting : exported_on_128(job, Trainer::kTorchtitan).defaults) titan.push_back(setting.field);
  EXPECT_THAT(titan, ElementsAre("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "clip_norm"));
  EXPECT_THAT(exported_on_128(job, Trainer::kAccelerate).text, Not(HasSubstr("defaults: learning")));

  // What the user gave is chosen, though it is what would have been taken.
  const Launch given = exported_on_128(job, Trainer::kTorchtitan,
                                       {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "clip_norm"});
  EXPECT_THAT(given.defaults, IsEmpty());
  EXPECT_THAT(given.text, Not(HasSubstr("defaults")));
}

}  // namespace
}  // namespace trivium::planner::launch
