// The script that fsdp2_export.cpp writes: its constants.
#include <cstdio>

#include "planner/launch/import_parts.h"

namespace trivium::planner::launch {
namespace {

using program::DType;
using program::Plan;

DType width_of(Settings& settings, const char* name) {
  const std::string text = settings.text({name}).value_or("bf16");
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kFp32}) {
    if (program::name_of(type) == text) return type;
  }
  settings.fail(std::string(name) + " is none of bf16, fp16 and fp32");
}

std::int64_t stated(Settings& settings, const char* name) {
  if (const auto value = settings.count({name})) return *value;
  settings.fail(std::string(name) + " is missing");
}

void read_optimizer(Settings& settings, program::Training& training) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  program::Optimizer& o = training.optimizer;
  o.learning_rate = settings.number({"LEARNING_RATE"}).value_or(o.learning_rate);
  o.min_learning_rate = settings.number({"MIN_LEARNING_RATE"}).value_or(o.min_learning_rate);
  o.warmup_steps = settings.count({"WARMUP"}, 0, kMost).value_or(0);
  o.epsilon = settings.number({"EPSILON"}).value_or(o.epsilon);
  o.weight_decay = settings.number({"WEIGHT_DECAY"}).value_or(o.weight_decay);
  o.clip_norm = settings.number({"CLIP"}).value_or(o.clip_norm);
  training.seed = static_cast<std::uint64_t>(settings.count({"SEED"}, 0, kMost).value_or(1234));
  const std::string betas = settings.text({"BETAS"}).value_or("");
  double first = 0, second = 0;
  if (std::sscanf(betas.c_str(), "(%lf, %lf)", &first, &second) == 2) o.beta1 = first, o.beta2 = second;
}

}  // namespace

Imported import_fsdp2(const ImportRequest& request) {
  Settings settings(read_assignments(request.text, request.where), request.where);
  if (!request.model) settings.fail("the file does not say the model; give --model");
  Imported imported;
  Plan& plan = imported.job.plan;
  program::Training& training = imported.job.training;
  imported.job.model = *request.model;
  plan.stack = "torchtitan-fsdp2-eager";
  plan.attention = program::Attention::kFlash;
  plan.data = static_cast<int>(stated(settings, "DATA"));
  plan.zero_stage = static_cast<int>(settings.count({"ZERO"}, 0, 3).value_or(3));
  const auto shard = static_cast<int>(settings.count({"SHARD"}).value_or(plan.data));
  if (plan.zero_stage > 0 && shard != plan.data) plan.shard_group = shard;
  plan.overlap.gradient_reduction = plan.data > 1;
  plan.overlap.parameter_gather = plan.zero_stage > 0;
  plan.micro_batch = static_cast<int>(stated(settings, "MICRO_BATCH"));
  const std::string recompute = settings.text({"RECOMPUTE"}).value_or("none");
  plan.recompute = recompute == "full" ? program::Recompute::kFull : program::Recompute::kNone;
  plan.precision = width_of(settings, "PRECISION");
  plan.reduce_dtype = width_of(settings, "REDUCE");
  training.global_batch = stated(settings, "GLOBAL_BATCH");
  training.sequence = request.sequence > 0 ? request.sequence : stated(settings, "SEQUENCE");
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
  training.total_tokens =
      settings.count({"STEPS"}, 0, kMostSteps).value_or(0) * training.global_batch * training.sequence;
  read_optimizer(settings, training);
  for (const char* of_the_script : {"GPU", "DEVICE", "WIDTHS"}) settings.find({of_the_script});
  lose_unread(settings, imported.losses);
  return imported;
}

}  // namespace trivium::planner::launch
