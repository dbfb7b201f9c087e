#include "calibration/replay/replay.h"

#include <utility>

namespace trivium::calibration {

base::Result<Replayed> replay(const program::Job& job, const hardware::Cluster& cluster,
                              simulator::Granularity granularity, bool timeline, const std::stop_token& stop) {
  auto prepared = simulator::prepare(job, cluster, {.fits = false}, stop);
  if (!prepared) return prepared.error();
  auto simulated = simulator::simulate(prepared.value(), {granularity, timeline}, stop);
  if (!simulated) return simulated.error();
  return Replayed{std::move(prepared).value(), std::move(simulated).value()};
}

bool needs_ops(const program::Job& job) { return job.plan.overlap.tensor; }

}  // namespace trivium::calibration
