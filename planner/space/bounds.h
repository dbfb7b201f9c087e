// Constraints as a search checks them: fields looked up once, for many plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/space/constraints.h"
#include "program/plan/fields.h"

namespace trivium::planner {

/// All of some constraints.
class Bounds {
 public:
  void add(const Constraint& constraint);
  bool none() const { return checks_.empty(); }
  /// Whether all of them allow the plan.
  bool allow(const program::Plan& plan) const;

 private:
  struct Check {
    Constraint::Kind kind{};
    std::string (*text)(const program::Plan&) = nullptr;
    std::string value;        ///< not to be taken, or alone to be taken
    std::int64_t number = 0;  ///< of kMin and kMax
    bool alone = false;
  };
  std::vector<Check> checks_;
};

}  // namespace trivium::planner
