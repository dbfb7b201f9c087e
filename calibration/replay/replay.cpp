#include "calibration/replay/replay.h"

#include "simulator/prepare.h"
#include "simulator/simulate.h"

namespace trivium::calibration {

std::variant<program::Program, Unsupported> prepare(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop) {
  auto prepared = simulator::prepare(job, cluster, {.fits = false}, stop);
  if (!prepared) return Unsupported{prepared.error().message};
  return std::move(prepared.value().program);
}

std::variant<Replayed, Unsupported> replay(const program::Job& job, const hardware::Cluster& cluster,
                                           simulator::Granularity granularity, bool timeline,
                                           const std::stop_token& stop) {
  auto prepared = prepare(job, cluster, stop);
  if (auto* no = std::get_if<Unsupported>(&prepared)) return std::move(*no);
  Replayed result{std::get<program::Program>(std::move(prepared)), {}};
  auto simulated = simulator::simulate(result.program, cluster, {granularity, timeline}, stop);
  if (!simulated) return Unsupported{simulated.error().message};
  result.simulation = std::move(simulated).value();
  return result;
}

bool needs_ops(const program::Job& job) { return job.plan.overlap.tensor; }

}  // namespace trivium::calibration
