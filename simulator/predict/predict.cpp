#include "simulator/predict/predict.h"

#include <utility>

#include "simulator/predict/in_rounds.h"

namespace trivium::simulator {

base::Result<Prediction> predict(const program::Job& job, const hardware::Cluster& cluster,
                                 const PredictOptions& options, const std::stop_token& stop) {
  auto counted = simulate_in_rounds(job, cluster, options.simulation, options.fits, stop);
  if (!counted) return counted.error();
  if (auto& found = counted.value()) {
    if (!options.verified) return Prediction{std::move(found->simulation), std::move(found->few)};
    auto verified = verify(std::move(found->few));
    if (!verified) return verified.error();
    return Prediction{std::move(found->simulation), std::move(verified).value()};
  }
  auto prepared = prepare(job, cluster, {.fits = options.fits, .verified = options.verified}, stop);
  if (!prepared) return prepared.error();
  auto simulated = simulate(prepared.value(), options.simulation, stop);
  if (!simulated) return simulated.error();
  return Prediction{std::move(simulated).value(), std::move(prepared).value()};
}

base::Result<std::int64_t> predict_iteration_ps(const program::Job& job, const hardware::Cluster& cluster,
                                                const PredictOptions& options, const std::stop_token& stop) {
  const auto counted = iteration_in_rounds(job, cluster, options.simulation, options.fits, stop);
  if (!counted) return counted.error();
  if (counted.value()) return *counted.value();
  const auto prepared = prepare(job, cluster, {.fits = options.fits, .verified = false}, stop);
  if (!prepared) return prepared.error();
  return iteration_ps(prepared.value(), stop, options.simulation.topologies);
}

base::Result<std::optional<program::Infeasible>> predict_overflow(const program::Job& job,
                                                                  const hardware::Cluster& cluster) {
  // As many micro-batches as there may be take the memory of as many as can be under way.
  const auto rounds = rounds_to_simulate(job, cluster);
  const program::Job& smallest = rounds ? with_micro_batches(job, rounds->enough()) : job;
  const auto prepared = prepare(smallest, cluster, {.fits = false, .ordered = false, .verified = false});
  if (!prepared) return prepared.error();
  return prepared.value().too_big();
}

}  // namespace trivium::simulator
