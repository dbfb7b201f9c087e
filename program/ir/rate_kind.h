// What measured rates are kept by: op kinds, attention apart by its kernels.
#pragma once

#include <string_view>

#include "program/ir/op.h"

namespace trivium::program {

/// An op kind, of attention with the kernels that it runs: unfused ones read and write scores that flash does not have.
struct RateKind {
  OpKind kind{};
  bool flash = false;  ///< of kAttention and kAttentionBackward alone
  auto operator<=>(const RateKind&) const = default;
};

constexpr bool has_flash_rates(OpKind kind) { return kind == OpKind::kAttention || kind == OpKind::kAttentionBackward; }

constexpr RateKind rate_kind_of(const Op& op) { return {op.kind, op.flash && has_flash_rates(op.kind)}; }

/// The same op in the other kernels; of kinds that have no others, itself.
constexpr RateKind other_kernels(RateKind of) { return {of.kind, has_flash_rates(of.kind) && !of.flash}; }

/// As profiles have it: that of the op kind, or "flash_attention", "flash_attention_backward".
std::string_view name_of(RateKind kind);

}  // namespace trivium::program
