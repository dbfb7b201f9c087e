#include "simulator/studies/uncertainty.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "simulator/memory/crowding.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {

double Uncertainty::quantile_ps(double share) const {
  std::vector<std::int64_t> sorted = samples_ps;
  std::sort(sorted.begin(), sorted.end());
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double rest = at - static_cast<double>(below);
  return static_cast<double>(sorted[below]) * (1 - rest) + static_cast<double>(sorted[above]) * rest;
}

base::Result<Uncertainty> sample_iterations(const CostedProgram& costed, const Disturbance& disturbance, int samples,
                                            std::uint64_t seed, const std::stop_token& stop) {
  auto simulated = sample_until(costed, disturbance, samples, seed, stop, {});
  const bool all = !simulated || simulated.value().samples_ps.size() == static_cast<std::size_t>(samples);
  if (!all) return cancelled();
  return simulated;
}

base::Result<Uncertainty> sample_until(const CostedProgram& costed, const Disturbance& disturbance, int samples,
                                       std::uint64_t seed, const std::stop_token& stop,
                                       const std::function<void(int)>& simulated) {
  if (stop.stop_requested()) return cancelled();
  if (auto wrong = unknown_rank(disturbance, costed.program->mesh.size())) return *wrong;
  const auto made = compile_replay(costed, {Granularity::kOp, Ranks::kEvery, true});
  if (!made) return made.error();
  const std::vector<StageMemory> memory = memory_of(*costed.program, *costed.placed);
  std::vector<std::optional<base::Result<std::int64_t>>> found(static_cast<std::size_t>(samples));
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  int done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < found.size() && !stop.stop_requested(); i = next++) {
      const Variation variation = variation_of(disturbance, made.value().topology, seed + i);
      const auto one = replay(costed, made.value(), variation, Keep::kNothing, stop);
      if (!one && stop.stop_requested()) return;
      const std::lock_guard lock(mutex);
      if (one) {
        found[i] = iteration_of_makespan(one.value().makespan_ps, *costed.program, memory);
      } else {
        found[i] = one.error();
      }
      if (simulated) simulated(++done);
    }
  };
  {
    std::vector<std::jthread> threads;
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned t = 1; t < std::min<unsigned>(cores, static_cast<unsigned>(samples)); ++t) threads.emplace_back(work);
    work();
  }
  Uncertainty result;
  for (const auto& one : found) {
    if (!one) continue;
    if (!*one) return one->error();
    result.samples_ps.push_back(one->value());
  }
  if (result.samples_ps.empty() && stop.stop_requested()) return cancelled();
  return result;
}

}  // namespace trivium::simulator
