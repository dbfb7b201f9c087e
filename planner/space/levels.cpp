#include "planner/space/levels.h"

#include <algorithm>

namespace trivium::planner {

const std::vector<SearchedField>& searched_fields() {
  constexpr const char* kArithmetic = "they change the arithmetic";
  constexpr const char* kUnsearched = "set by hand alone";
  static const std::vector<SearchedField> kFields{{"tensor", Level::kSplit},
                                                  {"context", Level::kSplit},
                                                  {"context_method", Level::kSplit},
                                                  {"context_heads", Level::kSplit},
                                                  {"pipeline", Level::kSplit},
                                                  {"data", Level::kSplit},
                                                  {"expert", Level::kSplit},
                                                  {"expert_tensor", Level::kSplit},
                                                  {"expert_dispatch", Level::kSplit},
                                                  {"micro_batch", Level::kSplit},
                                                  {"replica_micro_batch", Level::kSplit},
                                                  {"placement", Level::kPlacement},
                                                  {"sequence_parallel", Level::kPlacement},
                                                  {"overlap.tensor", Level::kPlacement},
                                                  {"attention", Level::kPlacement},
                                                  {"schedule", Level::kSchedule},
                                                  {"virtual_stages", Level::kSchedule},
                                                  {"stage_nodes", Level::kSchedule},
                                                  {"overlap.expert", Level::kSchedule},
                                                  {"offload.activations", Level::kSchedule},
                                                  {"stage_layers", Level::kSchedule},
                                                  {"recompute", Level::kRecompute},
                                                  {"stage_recompute", Level::kRecompute},
                                                  {"recompute_modules", Level::kRecompute},
                                                  {"zero_stage", Level::kSharding},
                                                  {"shard_group", Level::kSharding},
                                                  {"overlap.gradient_reduction", Level::kSharding},
                                                  {"overlap.parameter_gather", Level::kSharding},
                                                  {"offload.optimizer", Level::kSharding},
                                                  {"compression", Level::kSharding},
                                                  {"precision", Level::kSplit, kArithmetic},
                                                  {"fp8", Level::kSplit, kArithmetic},
                                                  {"fp8_parameter_gather", Level::kSplit},
                                                  {"reduce_dtype", Level::kSplit, kArithmetic},
                                                  {"moment_dtype", Level::kSplit, kArithmetic},
                                                  {"top_k_share", Level::kSplit, kArithmetic},
                                                  {"bucket_bytes", Level::kSplit, kUnsearched},
                                                  {"recompute_layers", Level::kSplit, kUnsearched},
                                                  {"recompute_group", Level::kSplit, kUnsearched},
                                                  {"offload.gradients", Level::kSplit, kUnsearched},
                                                  {"offload.parameters", Level::kSplit, kUnsearched},
                                                  {"overlap.pipeline", Level::kSplit, kUnsearched},
                                                  {"scatter_gather", Level::kSplit, "as the stack does it"},
                                                  {"stack", Level::kSplit, "the software that runs the plan"}};
  return kFields;
}

const SearchedField& searched(std::string_view field) {
  const auto& all = searched_fields();
  return *std::find_if(all.begin(), all.end(), [&](const SearchedField& one) { return one.name == field; });
}

}  // namespace trivium::planner
