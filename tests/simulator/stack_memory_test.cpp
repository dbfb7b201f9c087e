// Memory that stacks do not hold of what the Program has.
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "program/lower/lower.h"
#include "simulator/analytic/cost_estimator.h"
#include "simulator/memory/memory.h"
#include "simulator/predict/simulate.h"
#include "tests/simulator/prepared.h"

namespace trivium::simulator {
namespace {

program::Job job_of(const std::string& model, const std::string& stack, program::Fp8 recipe) {
  program::Job job;
  job.model = models::load_model(model);
  job.training.sequence = 128;
  job.training.global_batch = 8;
  job.plan.data = 2;
  job.plan.zero_stage = 1;
  job.plan.precision = program::DType::kBf16;
  job.plan.fp8 = recipe;
  job.plan.stack = stack;
  return job;
}

StageMemory first_stage(const program::Job& job) {
  const auto program = std::get<program::Program>(program::lower(job));
  return memory_of(program, hardware::load_cluster("dgx-h100:1")).front();
}

// Of 12 h^2 numbers a layer, Megatron-Bridge has the 8 bits of both casts, and other stacks 16 bits beside them.
TEST(StackMemory, ParametersGatheredInEightBitsHaveNoOtherCopy) {
  const auto parameters = [](const char* stack, program::Fp8 recipe) {
    return first_stage(job_of("gpt-tiny", stack, recipe)).parameters;
  };
  const std::int64_t in_16_bits = 2 * 4 * 12 * 128 * 128;
  for (const program::Fp8 recipe : {program::Fp8::kCurrent, program::Fp8::kDelayed, program::Fp8::kMxfp8}) {
    EXPECT_EQ(parameters("megatron-core", recipe) - parameters("megatron-bridge", recipe), in_16_bits);
  }
  for (const program::Fp8 recipe : {program::Fp8::kBlock, program::Fp8::kNvfp4, program::Fp8::kNone}) {
    EXPECT_EQ(parameters("megatron-core", recipe), parameters("megatron-bridge", recipe));
  }
}

TEST(StackMemory, PlansSayWhetherParametersAreGatheredInEightBits) {
  using program::Fp8Gather;
  const auto parameters = [](const char* stack, Fp8Gather gather, const char* cluster = "dgx-h100:1") {
    program::Job job = job_of("gpt-tiny", stack, program::Fp8::kBlock);
    job.plan.fp8_parameter_gather = gather;
    return memory_of(std::get<program::Program>(program::lower(job)), hardware::load_cluster(cluster))
        .front()
        .parameters;
  };
  const std::int64_t in_16_bits = 2 * 4 * 12 * 128 * 128;
  for (const char* stack : {"megatron-bridge", "trivium"}) {
    const std::int64_t wide = parameters(stack, Fp8Gather::kStack);
    EXPECT_EQ(parameters(stack, Fp8Gather::kOff), wide);
    EXPECT_EQ(wide - parameters(stack, Fp8Gather::kOn), in_16_bits);
    EXPECT_EQ(parameters(stack, Fp8Gather::kOn, "generic-cpu:1"), parameters(stack, Fp8Gather::kOff, "generic-cpu:1"));
  }
}

// A step that waits for its gathers takes less time; on cores it does what it did.
TEST(StackMemory, GathersInEightBitsAreFaster) {
  using program::Fp8Gather;
  const auto iteration = [](program::Fp8 recipe, Fp8Gather gather, const char* machines) {
    program::Job job = job_of("llama3-8b", "megatron-core", recipe);
    job.model.layers = 2;
    job.plan.fp8_parameter_gather = gather;
    const hardware::Cluster cluster = hardware::load_cluster(machines);
    return iteration_ps(prepared(job, cluster), {}).value_or_throw();
  };
  for (const program::Fp8 recipe : {program::Fp8::kCurrent, program::Fp8::kDelayed, program::Fp8::kBlock}) {
    const auto wide = iteration(recipe, Fp8Gather::kOff, "dgx-h100:1");
    EXPECT_LT(iteration(recipe, Fp8Gather::kOn, "dgx-h100:1"), wide) << name_of(recipe);
    EXPECT_EQ(iteration(recipe, Fp8Gather::kOn, "generic-cpu:1"), iteration(recipe, Fp8Gather::kOff, "generic-cpu:1"));
  }
  EXPECT_EQ(iteration(program::Fp8::kMxfp8, Fp8Gather::kOn, "dgx-b200:1"),
            iteration(program::Fp8::kMxfp8, Fp8Gather::kOff, "dgx-b200:1"));
}

TEST(StackMemory, SearchesCountTheSame) {
  for (const char* model : {"gpt-tiny", "moe-tiny"}) {
    program::Job job = job_of(model, "megatron-bridge", program::Fp8::kMxfp8);
    job.model.layers = 10;
    job.plan.pipeline = 2;
    job.plan.schedule = program::Schedule::k1f1b;
    if (job.model.experts) job.plan.expert = 2;
    const hardware::Cluster cluster = hardware::load_cluster("dgx-h100:1");
    const auto estimated = CostEstimator(job, cluster).memory(job.plan);
    const auto exact = memory_of(std::get<program::Program>(program::lower(job)), cluster);
    ASSERT_EQ(estimated.size(), exact.size());
    for (std::size_t s = 0; s < exact.size(); ++s) EXPECT_EQ(estimated[s].parameters, exact[s].parameters) << model;
  }
}

TEST(StackMemory, MegatronCoreKeepsGradientsInTheTypeInWhichItReducesThem) {
  const auto gradients = [](const char* stack, program::DType reduce) {
    program::Job job = job_of("gpt-tiny", stack, program::Fp8::kNone);
    job.plan.reduce_dtype = reduce;
    return first_stage(job).gradients;
  };
  using program::DType;
  for (const char* stack : {"megatron-core", "megatron-bridge"}) {
    EXPECT_EQ(gradients(stack, DType::kFp32), 2 * gradients(stack, DType::kBf16)) << stack;
  }
  EXPECT_EQ(gradients("trivium", DType::kFp32), gradients("trivium", DType::kBf16));
}

}  // namespace
}  // namespace trivium::simulator
