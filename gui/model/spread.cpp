#include "gui/model/spread.h"

#include <algorithm>

#include "simulator/uncertainty.h"

namespace trivium::gui {
namespace {

constexpr double kSecondsPerPs = 1e-12;
constexpr double kOpsInAll = 2e8;  // that all plays together may have
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
  const auto sample = [&](double share, int count, std::uint64_t from) {
    return simulator::sample_iterations(*evaluation.program, evaluation.scenario.cluster,
                                        {.jitter = share, .slow_devices = {}, .slow_links = {}}, count, from);
  };
  const auto nominal = sample(0, 1, seed);
  if (!nominal) return std::nullopt;
  simulator::Uncertainty all;
  const int samples = spread_samples(evaluation);
  const int at_once = samples < kMostSamples ? 2 : kMostSamples / 5;  // between two looks at the stop token
  for (int done = 0; done < samples; done += at_once) {
    if (stop.stop_requested()) return std::nullopt;
    const int count = std::min(at_once, samples - done);
    const auto some = sample(jitter, count, seed + static_cast<std::uint64_t>(done));
    if (!some) return std::nullopt;
    all.samples_ps.insert(all.samples_ps.end(), some.value().samples_ps.begin(), some.value().samples_ps.end());
  }
  return report::Spread{jitter,
                        samples,
                        nominal.value().quantile_ps(kMiddle) * kSecondsPerPs,
                        all.quantile_ps(kLow) * kSecondsPerPs,
                        all.quantile_ps(kMiddle) * kSecondsPerPs,
                        all.quantile_ps(kHigh) * kSecondsPerPs};
}

}  // namespace trivium::gui
