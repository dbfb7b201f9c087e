// The parts of a layer that selective recomputation can drop.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace trivium::program {

/// What is dropped after the forward and made again before the backward of its layer, as Megatron-Core's
/// `--recompute-modules` has it. The first four run whole once more, as checkpoints of modules do; of the others only
/// outputs are dropped.
enum class Module : std::uint8_t {
  kCoreAttention,      ///< scores, softmax and weighted values
  kMlp,                ///< of dense layers
  kMixture,            ///< router, exchanges and experts, with what every token visits
  kSharedExperts,      ///< the MLP that every token visits
  kLayerNorm,          ///< outputs of the norms before attention and MLP
  kMixtureActivation,  ///< outputs of the experts' activation
  kLatentUp            ///< heads made of latents, rotary positions included
};
inline constexpr int kModules = 7;

/// A set of modules.
class ModuleSet {
 public:
  constexpr ModuleSet() = default;
  constexpr ModuleSet(std::initializer_list<Module> modules) {
    for (const Module module : modules) insert(module);
  }
  constexpr void insert(Module module) { bits_ |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(module)); }
  constexpr bool has(Module module) const { return (bits_ >> static_cast<unsigned>(module) & 1U) != 0; }
  static constexpr ModuleSet all() {
    ModuleSet modules;
    for (int i = 0; i < kModules; ++i) modules.insert(static_cast<Module>(i));
    return modules;
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int bits() const { return bits_; }
  constexpr bool operator==(const ModuleSet&) const = default;

 private:
  std::uint8_t bits_ = 0;
};

/// "core_attn" "mlp" "moe" "shared_experts" "layernorm" "moe_act" "mla_up_proj", as Megatron-Core has them.
std::string_view name_of(Module value);

/// Nothing for a name that no module has.
std::optional<Module> module_named(std::string_view name);

}  // namespace trivium::program
