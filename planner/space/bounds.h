// Constraints and a trainer's rules as a search checks them: fields looked up once, for many plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/space/constraints.h"
#include "planner/space/trainers.h"
#include "program/plan/fields.h"

namespace trivium::planner {

/// All of some constraints.
class Bounds {
 public:
  void add(const Constraint& constraint);
  /// The job must outlive the bounds.
  void add(const TrainerRule& rule, const program::Job& job) {
    rules_.push_back(&rule);
    job_ = &job;
  }
  bool none() const { return checks_.empty() && rules_.empty(); }
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
  std::vector<const TrainerRule*> rules_;
  const program::Job* job_ = nullptr;  ///< of the rules
};

}  // namespace trivium::planner
