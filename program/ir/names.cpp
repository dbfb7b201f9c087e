// Names of the Program's enumerations, as they stand in files, records and tables.
#include <array>

#include "base/enum_name.h"
#include "program/ir/program.h"

namespace trivium::program {
std::string_view name_of(Group group) {
  static constexpr std::array<std::string_view, 13> kNames{"none",      "tensor",  "keys",   "context",     "data",
                                                           "shard",     "replica", "expert", "expert_data", "pipeline",
                                                           "embedding", "model",   "world"};
  return base::name_at(kNames, group);
}

std::string_view name_of(Lane lane) {
  static constexpr std::array<std::string_view, kLanes> kNames{"compute", "tensor", "pipeline",
                                                               "data",    "copy",   "context"};
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
                                                                "gathered"};
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

std::string_view name_of(OpKind kind) {
  static constexpr std::array<std::string_view, kOpKinds> kNames{"embedding",
                                                                 "embedding_backward",
                                                                 "position",
                                                                 "position_backward",
                                                                 "norm",
                                                                 "norm_backward",
                                                                 "matmul",
                                                                 "matmul_dgrad",
                                                                 "matmul_wgrad",
                                                                 "rotary",
                                                                 "rotary_backward",
                                                                 "attention",
                                                                 "attention_backward",
                                                                 "bias_residual",
                                                                 "bias_residual_backward",
                                                                 "activation",
                                                                 "activation_backward",
                                                                 "loss_max",
                                                                 "loss_sums",
                                                                 "loss",
                                                                 "loss_backward",
                                                                 "add",
                                                                 "gradient_norm",
                                                                 "adamw",
                                                                 "zero_gradients",
                                                                 "split_kv",
                                                                 "join_kv",
                                                                 "attention_block",
                                                                 "attention_block_backward",
                                                                 "pack_heads",
                                                                 "unpack_heads",
                                                                 "pack_tokens",
                                                                 "unpack_tokens",
                                                                 "route",
                                                                 "route_backward",
                                                                 "spill",
                                                                 "dispatch",
                                                                 "dispatch_backward",
                                                                 "combine",
                                                                 "combine_backward",
                                                                 "place_rows",
                                                                 "pick_rows",
                                                                 "expert_matmul",
                                                                 "expert_matmul_dgrad",
                                                                 "expert_matmul_wgrad",
                                                                 "compress",
                                                                 "decompress",
                                                                 "fetch",
                                                                 "store",
                                                                 "all_reduce",
                                                                 "reduce_scatter",
                                                                 "all_gather",
                                                                 "all_to_all",
                                                                 "ring_shift",
                                                                 "send",
                                                                 "recv"};
  return base::name_at(kNames, kind);
}

bool is_communication(OpKind kind) { return kind >= OpKind::kAllReduce; }

}  // namespace trivium::program
