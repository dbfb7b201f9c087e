// Bounds a user sets on the search space: fields that stay below, above or away from a value.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "program/plan/plan.h"

namespace trivium::planner {

/// One bound on a plan field. `kForbid` without a value forbids the feature: `offload`, `overlap.tensor`, `context`.
struct Constraint {
  enum class Kind : std::uint8_t { kMin, kMax, kForbid };
  Kind kind = Kind::kMax;
  std::string field;  ///< of program::plan_fields, or "offload" or "overlap" for all their members
  std::string value;
  bool by_default = false;  ///< of closed_unless_allowed, not given by the user

  std::string text() const;  ///< as the user gave it: "--max pipeline=16"
  std::string lifted()
      const;  ///< what a user does to be rid of it: "without --max pipeline=16", "with --allow compression"
  bool allows(const program::Plan& plan) const;
};

/// From "pipeline=16" or, for kForbid, also "offload". Errors: Failure(kUsage) for an unknown field (with a
/// suggestion), a field that has no order, a value that the field does not take.
Constraint parse_constraint(Constraint::Kind kind, const std::string& text);

/// "tensor=8" as field and value. `option` names it in errors. Errors: Failure(kUsage).
std::pair<std::string, std::string> parse_assignment(const std::string& option, const std::string& text);

/// What searches leave out unless it is allowed or one of its fields is in `fixed`: `compression`, `overlap.tensor`,
/// `overlap.expert`, `recompute_modules`, `context_heads`, `expert_dispatch`, `expert_tensor` (of which 0 and 1 are
/// searched) and `fp8_parameter_gather`. Compression may change what is learnt, and not every trainer overlaps tensor
/// collectives or exchanges, recomputes by module, exchanges heads within rings, has DeepEP, splits experts over some
/// of the tensor ranks or keeps parameters in 8 bits; all make the search far longer. Errors: Failure(kUsage) where
/// `allowed` names anything else.
std::vector<Constraint> closed_unless_allowed(const std::vector<std::string>& allowed,
                                              const std::set<std::string>& fixed);

/// The first constraint that does not allow the plan; null where all do.
const Constraint* broken_by(const std::vector<Constraint>& constraints, const program::Plan& plan);

}  // namespace trivium::planner
