// Steps that stand out: losses and gradient norms far above those just before.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "program/record/run_record.h"

namespace trivium::runtime {

/// Watches a training step by step. A loss is a spike where it lies above the median of the last kWindow steps by more
/// than kDeviations times their median absolute deviation (scaled to a standard deviation) and by more than kRise of
/// it; a gradient norm where it is more than kNormFactor times that median. Nothing is said before kLeast steps, and a
/// spike's values do not join those that the next are held against.
class SpikeWatch {
 public:
  static constexpr std::size_t kWindow = 50, kLeast = 8;
  static constexpr double kDeviations = 6, kRise = 0.05, kNormFactor = 5;

  std::vector<program::Spike> after(const program::StepRecord& step);

 private:
  std::deque<double> losses_, norms_;
};

}  // namespace trivium::runtime
