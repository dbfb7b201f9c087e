// Names of the Program's enumerations, as they stand in files, records and tables.
#include <array>

#include "base/enum_name.h"
#include "program/ir/program.h"

namespace trivium::program {
std::string_view name_of(Group group) {
  static constexpr std::array<std::string_view, kGroups> kNames{
      "none",        "tensor",   "keys",      "context", "data",  "shard",         "replica",      "expert",
      "expert_data", "pipeline", "embedding", "model",   "world", "context_heads", "context_ring", "expert_tensor"};
  return base::name_at(kNames, group);
}

std::string_view name_of(Lane lane) {
  static constexpr std::array<std::string_view, kLanes> kNames{"compute", "tensor",  "pipeline", "data",
                                                               "copy",    "context", "expert"};
  return base::name_at(kNames, lane);
}

std::string_view name_of(Pass pass) {
  static constexpr std::array<std::string_view, 4> kNames{"forward", "recompute", "backward", "optimizer"};
  return base::name_at(kNames, pass);
}

std::string_view name_of(Space space) {
  static constexpr std::array<std::string_view, kSpaces> kNames{"parameters",
                                                                "gradients",
                                                                "optimizer",
                                                                "activations",
                                                                "workspace",
                                                                "tokens",
                                                                "delayed",
                                                                "staging",
                                                                "offloaded state",
                                                                "offloaded gradients",
                                                                "offloaded activations",
                                                                "scalars",
                                                                "gathered",
                                                                "offloaded parameters",
                                                                "workspace of forwards"};
  return base::name_at(kNames, space);
}

std::string_view name_of(TaskKind kind) {
  static constexpr std::array<std::string_view, 13> kNames{
      "forward",     "backward",        "backward_weights",  "send",
      "recv",        "gather_received", "reduce_gradients",  "gradient_norm",
      "norm_reduce", "optimizer",       "gather_parameters", "fetch",
      "store"};
  return base::name_at(kNames, kind);
}

}  // namespace trivium::program
