#include "simulator/simulate.h"

#include "base/seconds.h"
#include "simulator/iteration/trace.h"

namespace trivium::simulator {
namespace {

using base::kSecondsPerPs;

// Nothing is kept of the play but its end.
base::Result<std::int64_t> makespan(const CostedProgram& costed, const hardware::Cluster& cluster,
                                    const SimulationOptions& options, const std::stop_token& stop) {
  const auto made = replay_program_for(costed, cluster, options);
  if (!made) return made.error();
  const auto replayed = replay(costed, made.value(), {}, Keep::kNothing, stop);
  if (!replayed) return replayed.error();
  return replayed.value().makespan_ps;
}

}  // namespace

base::Result<std::int64_t> iteration_ps(const program::Program& program, const hardware::Cluster& cluster,
                                        const std::stop_token& stop, TopologyCache* topologies) {
  if (stop.stop_requested()) return cancelled();
  if (const auto no = unsupported_by(program.job, cluster)) return base::Error{base::ErrorKind::kUsage, no->reason};
  SimulationOptions options;
  options.topologies = topologies;
  return makespan(cost(program, cluster), cluster, options, stop);
}

base::Result<Simulation> simulate(const program::Program& program, const hardware::Cluster& cluster,
                                  const SimulationOptions& options, const std::stop_token& stop) {
  if (stop.stop_requested()) return cancelled();
  if (const auto no = unsupported_by(program.job, cluster)) return base::Error{base::ErrorKind::kUsage, no->reason};
  if (auto wrong = unknown_rank(options.disturbance, program.mesh.size())) return *wrong;
  const CostedProgram costed = cost(program, cluster);
  base::Result<SimulationTrace> outcome = trace_of(costed, cluster, options, stop);
  if (!outcome) return outcome.error();
  SimulationTrace& played = outcome.value();
  const bool shared = played.flows > 0;
  Simulation result = figures_of(program.job, program, cluster, std::move(played));
  const bool undisturbed = options.disturbance.none();
  if (options.unshared && options.shared_links && undisturbed && shared && !program.roles.front().order.empty()) {
    SimulationOptions apart = options;
    apart.shared_links = apart.every_rank = false;
    const auto unshared = makespan(costed, cluster, apart, stop);
    if (!unshared) return unshared.error();
    if (unshared.value() < result.iteration_ps) {
      result.unshared_s = static_cast<double>(unshared.value()) * kSecondsPerPs;
    }
  }
  return result;
}

}  // namespace trivium::simulator
