#include "gui/model/spread.h"

#include <algorithm>

#include "base/seconds.h"
#include "simulator/predict/simulate.h"
#include "simulator/studies/uncertainty.h"

namespace trivium::gui {
namespace {

using base::kSecondsPerPs;

constexpr double kOpsInAll = 2e8;  // that all simulations together may have
constexpr double kLow = .05, kMiddle = .5, kHigh = .95;

}  // namespace

int spread_samples(const Evaluation& evaluation) {
  const double ranks_of_a_stage =
      static_cast<double>(evaluation.program->mesh.size()) / static_cast<double>(evaluation.program->roles.size());
  const double ops = static_cast<double>(evaluation.timeline->events.size()) * ranks_of_a_stage;
  return static_cast<int>(std::clamp<double>(kOpsInAll / std::max(1.0, ops), kFewestSamples, kMostSamples));
}

std::optional<report::Spread> sample_spread(const Evaluation& evaluation, double jitter, const std::stop_token& stop) {
  if (!evaluation.runs() || evaluation.depth != Depth::kFull) return std::nullopt;
  const auto seed = static_cast<std::uint64_t>(evaluation.scenario.file.job.training.seed);
  const simulator::CostedProgram costed = simulator::cost(*evaluation.program, evaluation.scenario.cluster);
  const auto sample = [&](double share, int count) {
    return simulator::sample_iterations(costed, {.jitter = share, .slow_devices = {}, .slow_links = {}}, count, seed,
                                        stop);
  };
  const auto nominal = sample(0, 1);
  if (!nominal) return std::nullopt;
  const int samples = spread_samples(evaluation);
  const auto disturbed = sample(jitter, samples);
  if (!disturbed) return std::nullopt;
  const simulator::Uncertainty& all = disturbed.value();
  return report::Spread{jitter,
                        samples,
                        nominal.value().quantile_ps(kMiddle) * kSecondsPerPs,
                        all.quantile_ps(kLow) * kSecondsPerPs,
                        all.quantile_ps(kMiddle) * kSecondsPerPs,
                        all.quantile_ps(kHigh) * kSecondsPerPs};
}

}  // namespace trivium::gui
