// Names of a plan's enumerations, as they stand in files, records and tables.
#include <array>

#include "base/enum_name.h"
#include "program/plan/plan.h"

namespace trivium::program {
std::string_view name_of(DType type) {
  static constexpr std::array<std::string_view, 6> kNames{"fp64", "fp32", "bf16", "fp16", "int32", "uint8"};
  return base::name_at(kNames, type);
}

std::string_view name_of(Recompute value) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "selective", "full"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Module value) {
  static constexpr std::array<std::string_view, kModules> kNames{"core_attn", "mlp",     "moe",        "shared_experts",
                                                                 "layernorm", "moe_act", "mla_up_proj"};
  return base::name_at(kNames, value);
}

std::optional<Module> module_named(std::string_view name) {
  for (int i = 0; i < kModules; ++i) {
    if (name_of(static_cast<Module>(i)) == name) return static_cast<Module>(i);
  }
  return std::nullopt;
}

std::string_view name_of(Attention value) {
  static constexpr std::array<std::string_view, 2> kNames{"unfused", "flash"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Storage value) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "host", "disk"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Compression value) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "fp16", "top_k"};
  return base::name_at(kNames, value);
}

std::string_view name_of(ContextMethod value) {
  static constexpr std::array<std::string_view, 2> kNames{"ring", "all_to_all"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Update value) {
  static constexpr std::array<std::string_view, 2> kNames{"adamw", "muon"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Moments value) {
  static constexpr std::array<std::string_view, 2> kNames{"fp32", "bf16"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Fp8 recipe) {
  static constexpr std::array<std::string_view, 6> kNames{"none", "delayed", "current", "block", "mxfp8", "nvfp4"};
  return base::name_at(kNames, recipe);
}

std::string_view name_of(ExpertDispatch value) {
  static constexpr std::array<std::string_view, 4> kNames{"stack", "all_to_all", "deepep", "hybrid"};
  return base::name_at(kNames, value);
}

std::string_view name_of(Fp8Gather value) {
  static constexpr std::array<std::string_view, 3> kNames{"stack", "on", "off"};
  return base::name_at(kNames, value);
}

std::string_view name_of(ScatterGather value) {
  static constexpr std::array<std::string_view, 3> kNames{"stack", "on", "off"};
  return base::name_at(kNames, value);
}

}  // namespace trivium::program
