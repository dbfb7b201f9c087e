#include "calibration/validate/predict_on.h"

#include "base/seconds.h"
#include "simulator/predict/predict.h"

namespace trivium::calibration {

base::Result<double> predict_on(const program::Job& job, hardware::Cluster cluster, const hardware::Node& node) {
  cluster.groups.front().node = node;
  const auto ps = simulator::predict_iteration_ps(job, cluster, {.fits = false});
  if (!ps) return ps.error();
  return static_cast<double>(ps.value()) * base::kSecondsPerPs;
}

}  // namespace trivium::calibration
