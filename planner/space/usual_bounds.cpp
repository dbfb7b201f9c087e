#include "planner/space/usual_bounds.h"

#include <algorithm>

#include "program/plan/stack.h"

namespace trivium::planner {

std::vector<Constraint> usual_bounds(const hardware::Cluster& cluster, const std::string& stack,
                                     const std::vector<std::string>& allowed, const std::set<std::string>& fixed) {
  std::vector<Constraint> constraints = closed_unless_allowed(allowed, fixed);
  const program::StackTraits* traits = program::find_stack(stack);
  const auto open = [&](bool has, const char* field) {
    if (has) std::erase_if(constraints, [&](const Constraint& constraint) { return constraint.field == field; });
  };
  open(traits != nullptr && traits->hidden_tensor > 0, "overlap.tensor");
  open(traits != nullptr && traits->pairs_passes, "overlap.expert");
  const bool is_allowed = std::find(allowed.begin(), allowed.end(), "offload") != allowed.end();
  const bool is_fixed =
      std::any_of(fixed.begin(), fixed.end(), [](const std::string& field) { return field.starts_with("offload."); });
  if (!cluster.homogeneous() && !is_allowed && !is_fixed) {
    constraints.push_back({Constraint::Kind::kForbid, "offload", "", true});
  }
  return constraints;
}

}  // namespace trivium::planner
