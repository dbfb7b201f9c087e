#include "runtime/executor/training_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace trivium::runtime {
namespace {

constexpr std::int64_t kCooldownShare = 10;  // of all steps, one in so many

/// What is left of the way from the minimum to the full rate: 1 at the start, 0 at the end of `span` steps.
double left_of(const TrainingSchedule& training_schedule, std::int64_t done, std::int64_t span) {
  const double share = static_cast<double>(done) / static_cast<double>(span);
  switch (training_schedule.decay) {
    case Decay::kConstant:
      return 1;
    case Decay::kLinear:
      return 1 - share;
    case Decay::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * share));
    case Decay::kWsd: {
      const std::int64_t wanted = training_schedule.cooldown_steps > 0
                                      ? training_schedule.cooldown_steps
                                      : std::max<std::int64_t>(1, span / kCooldownShare);
      const std::int64_t cooldown = std::min(span, wanted), stable = span - cooldown;
      if (done < stable) return 1;
      return 1 - std::sqrt(static_cast<double>(done - stable) / static_cast<double>(cooldown));
    }
  }
  return 1;
}

double scale_of(const TrainingSchedule& training_schedule, double batch) {
  if (training_schedule.scaling == RateScaling::kNone) return 1;
  const double ratio = batch / static_cast<double>(training_schedule.base_batch);
  return training_schedule.scaling == RateScaling::kLinear ? ratio : std::sqrt(ratio);
}

}  // namespace

std::string_view name_of(Decay decay) {
  constexpr std::array<std::string_view, 4> kNames{"cosine", "constant", "linear", "wsd"};
  return kNames[static_cast<std::size_t>(decay)];
}

std::string_view name_of(RateScaling scaling) {
  constexpr std::array<std::string_view, 3> kNames{"none", "linear", "sqrt"};
  return kNames[static_cast<std::size_t>(scaling)];
}

std::int64_t batch_at(const BatchRamp& ramp, std::int64_t global_batch, std::int64_t step) {
  if (ramp.start == 0) return global_batch;
  // Compared by division: increments times steps may leave 64 bits.
  const std::int64_t rises = step / ramp.every;
  if (rises >= (global_batch - ramp.start + ramp.increment - 1) / ramp.increment) return global_batch;
  return ramp.start + rises * ramp.increment;
}

std::int64_t samples_before(const BatchRamp& ramp, std::int64_t global_batch, std::int64_t step) {
  if (ramp.start == 0) return step * global_batch;
  std::int64_t samples = 0;
  for (std::int64_t at = 0; at < step;) {
    const std::int64_t next = std::min(step, next_batch_change(ramp, global_batch, at, step));
    samples += (next - at) * batch_at(ramp, global_batch, at);
    at = next;
  }
  return samples;
}

std::int64_t next_batch_change(const BatchRamp& ramp, std::int64_t global_batch, std::int64_t step,
                               std::int64_t steps) {
  if (batch_at(ramp, global_batch, step) == global_batch) return steps;
  return std::min(steps, (step / ramp.every + 1) * ramp.every);
}

double learning_rate(const TrainingSchedule& training_schedule, const program::Optimizer& o, std::int64_t global_batch,
                     std::int64_t step, std::int64_t steps) {
  const double scale =
      scale_of(training_schedule, static_cast<double>(batch_at(training_schedule.ramp, global_batch, step)));
  if (step < o.warmup_steps) {
    return scale * o.learning_rate * static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps);
  }
  if (training_schedule.decay == Decay::kConstant) return scale * o.learning_rate;
  const std::int64_t end = o.decay_steps > 0 ? o.decay_steps : steps;
  if (end <= o.warmup_steps || step >= end) return scale * o.min_learning_rate;
  const double left = left_of(training_schedule, step - o.warmup_steps, end - o.warmup_steps);
  return scale * (o.min_learning_rate + (o.learning_rate - o.min_learning_rate) * left);
}

}  // namespace trivium::runtime
