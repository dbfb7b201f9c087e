// What a search learned of each plan, and the refusals told by family.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search.h"

namespace trivium::planner {

constexpr const char* kMemoryRule = "memory";  ///< of simulator::out_of_memory

/// What is known of a plan so far.
struct Verdict {
  std::optional<program::Infeasible> refused;  ///< with an empty reason: by a bound on its memory
  std::int64_t bound_ps = 0;                   ///< no iteration of the plan is shorter
  std::int64_t iteration_ps = -1;              ///< -1: not played
};

/// Refused plans by family and rule, in the order of enumeration, each with the reason of its first plan; memory that
/// was only bounded is worked out for those.
std::vector<Rejected> rejections(const SearchRequest& request, const std::vector<program::Plan>& plans,
                                 const std::vector<Verdict>& verdicts, int threads);

}  // namespace trivium::planner
