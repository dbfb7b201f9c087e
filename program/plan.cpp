#include "program/plan.h"

#include <fmt/format.h>

namespace trivium::program {

std::string summary(const Plan& plan) {
  std::string text = fmt::format("TP{}", plan.tensor);
  if (plan.sequence_parallel) text += " SP";
  if (plan.context > 1) text += fmt::format(" CP{}", plan.context);
  text += fmt::format(" PP{}", plan.pipeline);
  if (plan.virtual_stages > 1) text += fmt::format("x{}", plan.virtual_stages);
  text += fmt::format(" DP{}", plan.data);
  if (plan.zero_stage > 0) text += fmt::format(" ZeRO-{}", plan.zero_stage);
  text += fmt::format(" mb{}", plan.micro_batch);
  if (plan.pipeline > 1) text += fmt::format(" {}", name_of(plan.schedule));
  return text + fmt::format(" recompute={}", name_of(plan.recompute));
}

std::int64_t micro_batches(const Plan& plan, std::int64_t global_batch) {
  return global_batch / (static_cast<std::int64_t>(plan.data) * plan.micro_batch);
}

}  // namespace trivium::program
