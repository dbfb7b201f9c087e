// A measured run held ready for replaying with other constants of its machine.
#pragma once

#include <memory>
#include <string>

#include "calibration/measurements/published_row.h"

namespace trivium::calibration {

/// One configuration, lowered and ordered once, timed again and again. What differs between two timings are constants
/// of the node; the order stays the one of the node it was made with.
class PreparedRun {
 public:
  /// `reason()` is not empty where the run cannot be replayed.
  explicit PreparedRun(const PublishedRun& run);
  const std::string& reason() const { return reason_; }
  /// Seconds of one iteration on a cluster of such nodes. Safe to call from several threads.
  double iteration_s(const hardware::Node& node) const;

 private:
  std::string reason_;
  hardware::Cluster cluster_;
  std::shared_ptr<const program::Program> program_;  ///< as simulator::prepare() orders it
  double crowding_ = 1;
  bool by_op_ = false;  ///< has collectives overlapping with kernels, which only op-by-op replay sees
};

}  // namespace trivium::calibration
