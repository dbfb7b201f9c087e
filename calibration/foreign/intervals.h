// Sets of times: when something was busy, and how much of one set another hides.
#pragma once

#include <vector>

#include "calibration/measurements/kernel_trace.h"

namespace trivium::calibration::foreign {

using imports::TimeSpan;

/// Disjoint spans in ascending order.
class Intervals {
 public:
  Intervals() = default;
  explicit Intervals(std::vector<TimeSpan> spans);  ///< in any order, overlapping or not
  double seconds() const;
  Intervals within(const Intervals& other) const;
  Intervals without(const Intervals& other) const;
  Intervals with(const Intervals& other) const;
  const std::vector<TimeSpan>& spans() const { return spans_; }

 private:
  std::vector<TimeSpan> spans_;
};

}  // namespace trivium::calibration::foreign
