// Which level of the space decides a field of the plan, or why none does.
#pragma once

#include <string_view>
#include <vector>

namespace trivium::planner {

/// The levels of planner/space/space.h.
enum class Level { kSplit, kPlacement, kSchedule, kRecompute, kSharding };
inline constexpr int kLevels = 5;

struct SearchedField {
  const char* name;             ///< of program::plan_fields
  Level level{};                ///< that opens it
  const char* never = nullptr;  ///< why no level does; null: `level` does
};

/// Every field of a plan, in the order of the levels.
const std::vector<SearchedField>& searched_fields();

const SearchedField& searched(std::string_view field);

}  // namespace trivium::planner
