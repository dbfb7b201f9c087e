// How tokens travel to experts of other ranks, and back.
#pragma once

#include <cstdint>
#include <string_view>

namespace trivium::program {

/// Megatron-Core's moe_token_dispatcher_type and moe_flex_dispatcher_backend. All give the same values.
enum class ExpertDispatch : std::uint8_t {
  kStack,     ///< as the stack does it
  kAllToAll,  ///< a row for every expert that a token chose, by an all-to-all (NCCL)
  kDeepEp,    ///< DeepEP: a token once to every rank that has experts of it, and once to its node
  kHybrid     ///< HybridEP: so, too, and rows are placed as they arrive
};
std::string_view name_of(ExpertDispatch value);  ///< "stack" "all_to_all" "deepep" "hybrid"

/// Whether a token is sent once to a rank, however many of its experts that has.
constexpr bool sends_once(ExpertDispatch how) {
  return how == ExpertDispatch::kDeepEp || how == ExpertDispatch::kHybrid;
}

}  // namespace trivium::program
