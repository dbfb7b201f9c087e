// What other trainers can run, as rules over the fields of a plan: the spaces of `plan --for`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "planner/space/levels.h"
#include "program/plan/job.h"

namespace trivium::planner {

/// What a trainer asks: a predicate on the plan, or on the plan and the job that it is for, whose own plan it ignores.
class Condition {
 public:
  template <class Predicate>
  constexpr Condition(Predicate predicate) {  // NOLINT(google-explicit-constructor): rules are written as lambdas
    if constexpr (std::is_invocable_v<Predicate, const program::Plan&>) {
      of_plan_ = predicate;
    } else {
      of_job_ = predicate;
    }
  }
  bool operator()(const program::Plan& plan, const program::Job& job) const {
    return of_plan_ != nullptr ? of_plan_(plan) : of_job_(plan, job);
  }

 private:
  bool (*of_plan_)(const program::Plan&) = nullptr;
  bool (*of_job_)(const program::Plan&, const program::Job&) = nullptr;
};

/// One thing a trainer asks of a plan. `holds` reads fields that the level of `field`, or one above it, decides; of a
/// rule on the last level it may read no field of the schedule.
struct TrainerRule {
  const char* field;  ///< of program::plan_fields, that goes lost or comes out otherwise where the rule does not hold
  const char* says;   ///< what the trainer does: "ZeRO 2 and 3 without a pipeline"
  Condition holds;
  bool alone = false;  ///< `holds` reads `field` and, next to it, nothing that a search opens
};

/// The plans a trainer can run.
struct TrainerSpace {
  std::string_view trainer;  ///< as `plan --for` and `export --to` name it
  std::string_view stack;    ///< of program::all_stacks, as which its plans are priced
  std::span<const TrainerRule> rules;
  // Whether its files say how such weights are trained (launch/methods.cpp).
  bool writes_muon = false, writes_adapters = false;
  bool whole_key_heads = false;      ///< tensor ranks must divide the heads of keys
  bool ties_within_a_stage = false;  ///< tied embeddings need embedding and head in one stage
  bool gathers_mixtures = true;      ///< ZeRO 3 of models with mixture layers, however their experts are spread
};

std::span<const TrainerSpace> trainer_spaces();
/// Null for a name that no trainer has.
const TrainerSpace* find_trainer_space(std::string_view trainer);

/// The first rule that a plan for the job's model and training breaks; null where the trainer can run it.
const TrainerRule* broken_rule(const TrainerSpace& space, const program::Plan& plan, const program::Job& job);

/// Why Megatron's optimizer would keep the plan's moments in fp32 if it were asked for bf16; empty: it would not.
/// Source: optimizer_config.py at the version in planner/launch/launch.cpp (dtypes of moments are those of the
/// precision-aware optimizer, which is distributed; what runs on the host is PyTorch's own AdamW).
std::string_view widens_moments_in_megatron(const program::Plan& plan);

/// Orders of ranks that trainers have, innermost dimension first.
inline constexpr std::string_view kDataInsidePipeline = "tensor-context-data-pipeline";
inline constexpr std::string_view kPipelineInsideData = "tensor-context-pipeline-data";

/// Whether ranks come out as `order` has them; dimensions of one rank do not count.
bool has_order(const program::Plan& plan, std::string_view order);

}  // namespace trivium::planner
