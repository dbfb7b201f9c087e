#include "runtime/executor/loss_scale.h"

#include <algorithm>

namespace trivium::runtime {
namespace {

constexpr double kGrowth = 2;           // torch.amp.GradScaler's growth_factor
constexpr double kLargest = 0x1.0p100;  // gradients are fp32, and their squares must fit a double

}  // namespace

LossScale first_scale(const program::Settings& settings) {
  return {.scale = settings.scales_loss ? settings.loss_scaling.initial : 1};
}

LossScale next_scale(const LossScale& now, const program::LossScaling& how, bool overflow) {
  if (overflow) {
    return {.scale = std::max(1.0, now.scale * how.backoff), .skipped = now.skipped + 1};
  }
  if (now.steps + 1 < how.interval) return {now.scale, now.steps + 1, now.skipped};
  return {.scale = std::min(kLargest, now.scale * kGrowth), .skipped = now.skipped};
}

}  // namespace trivium::runtime
