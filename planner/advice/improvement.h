// What a job gains over the plan that it runs today: the best plan, and the way there one change at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/advice/studies.h"
#include "program/plan/differences.h"

namespace trivium::planner {

/// One change on the way from today's plan to the best.
struct ImprovementStep {
  program::Plan before, after;
  std::vector<program::Difference> changes;  ///< fields that change, without `data`, which follows from the others
  double gain_s = 0;                         ///< of the expected time of an iteration; below 0: it is slower alone
};

struct Improvement {
  std::optional<Candidate> today;  ///< predicted, whether it fits or not
  std::string refused, rule;       ///< why today's plan cannot be, and the rule; empty: it can
  std::string too_big;             ///< why it does not fit the memory by the prediction; empty: it fits
  SearchResult found;
  std::optional<Candidate> best;
  std::vector<ImprovementStep> steps;  ///< each after those before it; their gains add up to gain_s()
  double probability = 0;              ///< that the best plan is faster than today's when both are measured

  double gain_s() const;         ///< of the expected time of an iteration
  bool is_worth_trying() const;  ///< the gain is more than noise, or today's plan cannot be
};

/// Today's plan is predicted on `cluster` as it is; `request` is what was searched with `found` as the answer, and may
/// leave devices room.
/// Steps: one field, or the smallest group of fields that only work together, is changed at a time, the largest gain
/// first; plans that break a rule, or do not fit where both ends do, are skipped. Errors: Failure(kInterrupted).
Improvement improvement(const program::Job& today, const hardware::Cluster& cluster, const SearchRequest& request,
                        SearchResult found, const Effort& effort);

/// What today's plan uses of the features that searches leave out by default, for `allowed` of usual_bounds(): the best
/// plan may use them, too.
std::vector<std::string> features_of(const program::Plan& today);

}  // namespace trivium::planner
