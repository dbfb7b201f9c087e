#include "calibration/replay/prepared_run.h"

#include "calibration/measurements/quantities.h"
#include "calibration/replay/replay.h"
#include "simulator/cost/costed_program.h"
#include "simulator/memory/crowding.h"
#include "simulator/schedule/engine.h"

namespace trivium::calibration {

PreparedRun::PreparedRun(const PublishedRun& run) : cluster_(run.cluster), by_op_(needs_ops(run.job)) {
  if (run.unsupported) {
    reason_ = *run.unsupported;
    return;
  }
  const auto prepared = simulator::prepare(run.job, run.cluster, {.fits = false});
  if (!prepared) {
    reason_ = prepared.error().message;
    return;
  }
  program_ = prepared.value().shared_program();
  crowding_ = simulator::crowding(*program_, cluster_);
}

double PreparedRun::iteration_s(const hardware::Node& node) const {
  hardware::Cluster cluster = cluster_;
  cluster.groups.front().node = node;
  const auto costed = simulator::cost(*program_, cluster);
  const auto granularity = by_op_ ? simulator::Granularity::kOp : simulator::Granularity::kSegment;
  return static_cast<double>(simulator::list_schedule(costed, granularity).value_or_throw().makespan_ps) *
         kSecondsPerPs * crowding_;
}

}  // namespace trivium::calibration
