#include "calibration/replay.h"

#include "program/lower/lower.h"
#include "simulator/stoppable.h"

namespace trivium::calibration {

std::variant<program::Program, Unsupported> prepare(const program::Job& job, const hardware::Cluster& cluster,
                                                    const std::stop_token& stop) {
  auto verdict = program::check(job);
  if (const auto* no = std::get_if<program::Infeasible>(&verdict)) return Unsupported{no->reason};
  if (const auto no = simulator::unsupported_by(job, cluster)) return Unsupported{no->reason};
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) return Unsupported{no->reason};
  auto ordered = simulator::order(std::get<program::Program>(std::move(lowered)), cluster, stop);
  if (!ordered) return Unsupported{ordered.error().message};
  return std::move(ordered).value();
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
