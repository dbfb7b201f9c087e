#include "calibration/replay.h"

#include "program/lower.h"
#include "simulator/engine/engine.h"

namespace trivium::calibration {

std::variant<Replayed, Unsupported> replay(const program::Job& job, const hardware::Cluster& cluster,
                                           simulator::Granularity granularity) {
  auto verdict = program::check(job);
  if (const auto* no = std::get_if<program::Infeasible>(&verdict)) return Unsupported{no->reason};
  if (const auto no = simulator::unsupported_by(job, cluster)) return Unsupported{no->reason};
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) return Unsupported{no->reason};
  auto ordered = simulator::order(std::get<program::Program>(std::move(lowered)), cluster);
  if (!ordered) return Unsupported{ordered.error().message};
  Replayed result{std::move(ordered).value(), {}};
  auto simulated = simulator::simulate(result.program, cluster, {granularity, false});
  if (!simulated) return Unsupported{simulated.error().message};
  result.simulation = std::move(simulated).value();
  return result;
}

}  // namespace trivium::calibration
