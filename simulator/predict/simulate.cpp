#include "simulator/predict/simulate.h"

#include "base/seconds.h"
#include "simulator/iteration/trace.h"
#include "simulator/memory/crowding.h"

namespace trivium::simulator {
namespace {

using base::kSecondsPerPs;

// Nothing is kept of the replay but its end.
base::Result<std::int64_t> iteration(const Prepared& prepared, const SimulationOptions& options,
                                     const std::stop_token& stop) {
  const auto made = replay_program_for(prepared.costed(), options);
  if (!made) return made.error();
  const auto replayed = replay(prepared.costed(), made.value(), {}, Keep::kNothing, stop);
  if (!replayed) return replayed.error();
  return iteration_of_makespan(replayed.value().makespan_ps, prepared.program(), prepared.memory());
}

}  // namespace

base::Result<std::int64_t> iteration_ps(const Prepared& prepared, const std::stop_token& stop,
                                        TopologyCache* topologies) {
  if (stop.stop_requested()) return cancelled();
  SimulationOptions options;
  options.topologies = topologies;
  return iteration(prepared, options, stop);
}

base::Result<Simulation> simulate(const Prepared& prepared, const SimulationOptions& options,
                                  const std::stop_token& stop) {
  if (stop.stop_requested()) return cancelled();
  const program::Program& program = prepared.program();
  if (auto wrong = unknown_rank(options.disturbance, program.mesh.size())) return *wrong;
  base::Result<SimulationTrace> outcome = trace_of(prepared.costed(), options, stop);
  if (!outcome) return outcome.error();
  SimulationTrace& trace = outcome.value();
  const bool shared = trace.flows > 0;
  Simulation result = figures_of(program.job, program, prepared.memory(), prepared.cluster(), std::move(trace));
  const bool undisturbed = options.disturbance.none();
  if (options.unshared && options.shared_links && undisturbed && shared && !program.roles.front().order.empty()) {
    SimulationOptions apart = options;
    apart.shared_links = apart.every_rank = false;
    const auto unshared = iteration(prepared, apart, stop);
    if (!unshared) return unshared.error();
    if (unshared.value() < result.iteration_ps) {
      result.unshared_s = static_cast<double>(unshared.value()) * kSecondsPerPs;
    }
  }
  return result;
}

}  // namespace trivium::simulator
