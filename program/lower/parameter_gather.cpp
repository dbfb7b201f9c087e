#include "program/lower/parameter_gather.h"

#include <fmt/format.h>

#include "program/lower/layout.h"

namespace trivium::program {
namespace {

/// Never in 8 bits: adapters, routers, what makes latents and heads of them, projections of multi-token prediction.
bool is_wide(const Parameter& p) {
  return is_adapter(p.name) || p.name.find(".mtp.") != std::string::npos || p.name.ends_with("router.weight") ||
         p.name.ends_with("latents.weight") || p.name.ends_with("_heads.weight");
}

}  // namespace

bool is_cast(const Parameter& p) { return p.layer >= 0 && p.decayed && !is_wide(p); }

std::int64_t cast_numbers(const ChunkTemplate& kind, const Bucket& bucket) {
  std::int64_t numbers = 0;
  for (const Parameter& p : kind.parameters) {
    const bool held = p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
    if (held && is_cast(p)) numbers += p.local_rows * p.local_columns;
  }
  return numbers;
}

bool keeps_parameters_in_8_bits(const Plan& plan, const StackTraits& stack) {
  if (plan.fp8 == Fp8::kNone || plan.fp8 == Fp8::kNvfp4) return false;
  if (plan.fp8_parameter_gather != Fp8Gather::kStack) return plan.fp8_parameter_gather == Fp8Gather::kOn;
  return stack.parameters_in_8_bits && plan.fp8 != Fp8::kBlock;
}

bool gathers_in_8_bits(const Plan& plan, const StackTraits& stack) {
  return keeps_parameters_in_8_bits(plan, stack) && plan.fp8 != Fp8::kMxfp8 && plan.zero_stage < 3;
}

std::optional<Infeasible> check_parameter_gather(const Job& job) {
  const Plan& plan = job.plan;
  if (plan.fp8_parameter_gather != Fp8Gather::kOn) return std::nullopt;
  const auto without = [](const std::string& what) {
    return Infeasible{"fp8_parameter_gather-supported", "fp8_parameter_gather is not implemented: " + what};
  };
  if (plan.fp8 == Fp8::kNone) {
    return Infeasible{"fp8_parameter_gather-needs-fp8",
                      "fp8_parameter_gather on: no product reads parameters in 8 bits; use fp8 current, or off"};
  }
  if (plan.zero_stage == 0) {
    return Infeasible{"fp8_parameter_gather-needs-zero",
                      "fp8_parameter_gather on: without ZeRO no parameters are gathered, and no rank has them in fp32; "
                      "use zero_stage 1, or off"};
  }
  if (plan.fp8 == Fp8::kNvfp4) return without("parameters in 4 bits; use fp8 mxfp8, or off");
  if (plan.zero_stage == 3)
    return without("zero_stage 3, whose passes cast what they gather; use zero_stage 2, or off");
  if (job.training.lora.used()) return without("frozen parameters beside adapters (lora_rank); use off");
  if (job.training.optimizer.kind == Update::kMuon) return without("optimizer muon; use adamw, or off");
  if (plan.offload.optimizer != Storage::kNone) {
    return without("offload.optimizer, whose host steps parameters in 16 bits; use none, or off");
  }
  return std::nullopt;
}

}  // namespace trivium::program
