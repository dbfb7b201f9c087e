#include "planner/space/levels.h"

#include <algorithm>

namespace trivium::planner {

const std::vector<SearchedField>& searched_fields() {
  constexpr const char* kArithmetic = "they change the arithmetic";
  constexpr const char* kUnsearched = "set by hand alone";
  static const std::vector<SearchedField> kFields{{"tensor", Level::kSplit},
                                                  {"context", Level::kSplit},
                                                  {"context_method", Level::kSplit},
                                                  {"pipeline", Level::kSplit},
                                                  {"data", Level::kSplit},
                                                  {"expert", Level::kSplit},
                                                  {"micro_batch", Level::kSplit},
                                                  {"replica_micro_batch", Level::kSplit},
                                                  {"placement", Level::kLayout},
                                                  {"sequence_parallel", Level::kLayout},
                                                  {"overlap.tensor", Level::kLayout},
                                                  {"attention", Level::kLayout},
                                                  {"schedule", Level::kShape},
                                                  {"virtual_stages", Level::kShape},
                                                  {"stage_nodes", Level::kShape},
                                                  {"offload.activations", Level::kShape},
                                                  {"stage_layers", Level::kShape},
                                                  {"recompute", Level::kKeeping},
                                                  {"stage_recompute", Level::kKeeping},
                                                  {"zero_stage", Level::kState},
                                                  {"shard_group", Level::kState},
                                                  {"overlap.gradient_reduction", Level::kState},
                                                  {"overlap.parameter_gather", Level::kState},
                                                  {"offload.optimizer", Level::kState},
                                                  {"compression", Level::kState},
                                                  {"precision", Level::kSplit, kArithmetic},
                                                  {"reduce_dtype", Level::kSplit, kArithmetic},
                                                  {"top_k_share", Level::kSplit, kArithmetic},
                                                  {"bucket_bytes", Level::kSplit, kUnsearched},
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
