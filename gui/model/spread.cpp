#include "gui/model/spread.h"

#include <algorithm>

#include "simulator/uncertainty.h"

namespace trivium::gui {
namespace {

constexpr double kSecondsPerPs = 1e-12;
constexpr int kAtOnce = 4;  // plays between two looks at the stop token
constexpr double kLow = .05, kMiddle = .5, kHigh = .95;

}  // namespace

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
  for (int done = 0; done < kSpreadSamples; done += kAtOnce) {
    if (stop.stop_requested()) return std::nullopt;
    const int count = std::min(kAtOnce, kSpreadSamples - done);
    const auto some = sample(jitter, count, seed + static_cast<std::uint64_t>(done));
    if (!some) return std::nullopt;
    all.samples_ps.insert(all.samples_ps.end(), some.value().samples_ps.begin(), some.value().samples_ps.end());
  }
  return report::Spread{jitter,
                        kSpreadSamples,
                        nominal.value().quantile_ps(kMiddle) * kSecondsPerPs,
                        all.quantile_ps(kLow) * kSecondsPerPs,
                        all.quantile_ps(kMiddle) * kSecondsPerPs,
                        all.quantile_ps(kHigh) * kSecondsPerPs};
}

}  // namespace trivium::gui
