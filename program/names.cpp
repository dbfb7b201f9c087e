// Names of the program's enumerations, as they stand in files, records and tables.
#include <array>

#include "program/program.h"

namespace trivium::program {
namespace {

template <class Enum, std::size_t N>
std::string_view pick(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

}  // namespace

std::string_view name_of(DType type) {
  static constexpr std::array<std::string_view, 6> kNames{"fp64", "fp32", "bf16", "fp16", "int32", "uint8"};
  return pick(kNames, type);
}

std::string_view name_of(Schedule value) {
  static constexpr std::array<std::string_view, 5> kNames{"sequential", "gpipe", "1f1b", "interleaved", "zero_bubble"};
  return pick(kNames, value);
}

std::string_view name_of(Recompute value) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "selective", "full"};
  return pick(kNames, value);
}

std::string_view name_of(Attention value) {
  static constexpr std::array<std::string_view, 2> kNames{"unfused", "flash"};
  return pick(kNames, value);
}

std::string_view name_of(Storage value) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "host", "disk"};
  return pick(kNames, value);
}

std::string_view name_of(Compression value) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "fp16", "top_k"};
  return pick(kNames, value);
}

std::string_view name_of(ContextMethod value) {
  static constexpr std::array<std::string_view, 2> kNames{"ring", "all_to_all"};
  return pick(kNames, value);
}

std::string_view name_of(ScatterGather value) {
  static constexpr std::array<std::string_view, 3> kNames{"stack", "on", "off"};
  return pick(kNames, value);
}

std::string_view name_of(Group group) {
  static constexpr std::array<std::string_view, 13> kNames{"none",      "tensor",  "keys",   "context",     "data",
                                                           "shard",     "replica", "expert", "expert_data", "pipeline",
                                                           "embedding", "model",   "world"};
  return pick(kNames, group);
}

std::string_view name_of(Lane lane) {
  static constexpr std::array<std::string_view, kLanes> kNames{"compute", "tensor", "pipeline",
                                                               "data",    "copy",   "context"};
  return pick(kNames, lane);
}

std::string_view name_of(Pass pass) {
  static constexpr std::array<std::string_view, 4> kNames{"forward", "recompute", "backward", "optimizer"};
  return pick(kNames, pass);
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
  return pick(kNames, space);
}

std::string_view name_of(TaskKind kind) {
  static constexpr std::array<std::string_view, 13> kNames{
      "forward",     "backward",        "backward_weights",  "send",
      "recv",        "gather_received", "reduce_gradients",  "gradient_norm",
      "norm_reduce", "optimizer",       "gather_parameters", "fetch",
      "store"};
  return pick(kNames, kind);
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
  return pick(kNames, kind);
}

bool is_communication(OpKind kind) { return kind >= OpKind::kAllReduce; }

}  // namespace trivium::program
