// What measured trials say of the plans that were not measured yet.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trivium::planner {

/// A plan of a job on one machine. Seconds of an iteration.
struct TrialTime {
  double predicted_s = 0;
  std::optional<double> measured_s;
  bool failed = false;  ///< it did not run there, and is none of the answers
};

/// Standard deviations of log(measured / predicted): what all plans of the job share, what each has of its own, and
/// what a measurement of a few steps is off by.
struct TrialErrors {
  double shared = 0, own = 0, noise = 0;
};

/// Of each plan: the time to be expected, the deviation of its logarithm, and the probability that it is the fastest.
struct TrialBelief {
  std::vector<double> expected_s, deviation, fastest;
};

/// Errors are normal, a sum of the shared part and the plan's own; measurements tell the shared part (conditional
/// normal distribution), which moves the plans that were not measured. Precondition: every time is above 0, every
/// deviation 0 or more, `own` above 0.
TrialBelief belief_of(std::span<const TrialTime> plans, const TrialErrors& errors);

/// The plan to measure next: of those that were not, that which is the likeliest to be the fastest; nothing where all
/// were, or where a measured one is the fastest with the probability asked for.
std::optional<std::size_t> next_trial(std::span<const TrialTime> plans, const TrialErrors& errors, double probability);

/// The measured plan that is the likeliest to be the fastest; nothing where none was measured.
std::optional<std::size_t> best_trial(std::span<const TrialTime> plans, const TrialErrors& errors);

}  // namespace trivium::planner
