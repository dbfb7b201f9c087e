#include "cli/commands/disturbance.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/quote.h"
#include "cli/render/figures.h"
#include "cli/render/render.h"

namespace trivium::cli {
namespace {

constexpr int kMostSamples = 100'000;
constexpr double kMostFactor = 1000;

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "5%", "5 %" or ".05".
double share_of(const std::string& text) {
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  const auto value = number_in(digits);
  const double share = value.value_or(-1) / (percent ? 100 : 1);
  if (share < 0 || share >= 1) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("--jitter {}: expected a share below 100%, such as 5% or 0.05", base::quote(text)));
  }
  return share;
}

std::map<int, double> factors_of(const std::string& option, const std::vector<std::string>& texts) {
  std::map<int, double> factors;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const double factor =
        equals == std::string::npos ? 0 : number_in(std::string_view(text).substr(equals + 1)).value_or(0);
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    const bool numbered = error == std::errc() && end == text.data() + equals && rank >= 0;
    if (!numbered || factor <= 0 || factor > kMostFactor) {
      throw base::Failure(
          base::ErrorKind::kUsage,
          fmt::format("{} {}: give RANK=FACTOR, such as 17=1.3 for 1.3 times as long", option, base::quote(text)));
    }
    if (!factors.emplace(rank, factor).second) {
      throw base::Failure(base::ErrorKind::kUsage, fmt::format("{}: rank {} is named twice", option, rank));
    }
  }
  return factors;
}

}  // namespace

void add_disturbance_options(CLI::App& command, DisturbanceOptions& options) {
  const std::string group = "Uncertainty";
  command
      .add_flag("--every-rank", options.every_rank, "Simulate every rank, with links shared by what overlaps on them")
      ->group(group);
  CLI::Option* jitter = command.add_option("--jitter", options.jitter, "Vary every compute op by up to this share")
                            ->type_name("SHARE")
                            ->group(group);
  command.add_option("--samples", options.samples, "Iterations drawn with jitter, from --seed on")
      ->check(CLI::Range(1, kMostSamples))
      ->capture_default_str()
      ->needs(jitter)
      ->group(group);
  command
      .add_option("--slow-device", options.slow_devices, "This rank's compute takes FACTOR times as long; repeatable")
      ->type_name("RANK=FACTOR")
      ->group(group);
  command.add_option("--slow-link", options.slow_links, "This rank's communication takes FACTOR times as long")
      ->type_name("RANK=FACTOR")
      ->group(group);
}

simulator::Disturbance disturbance_of(const DisturbanceOptions& options) {
  simulator::Disturbance disturbance;
  if (!options.jitter.empty()) disturbance.jitter = share_of(options.jitter);
  disturbance.slow_devices = factors_of("--slow-device", options.slow_devices);
  disturbance.slow_links = factors_of("--slow-link", options.slow_links);
  return disturbance;
}

bool simulates_every_rank(const DisturbanceOptions& options) {
  return options.every_rank || !disturbance_of(options).none();
}

nlohmann::json uncertainty_json(const simulator::Disturbance& disturbance, const simulator::Uncertainty& uncertainty,
                                std::uint64_t seed) {
  const auto& samples = uncertainty.samples_ps;
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {{"jitter", disturbance.jitter},
          {"samples", samples.size()},
          {"seed", seed},
          {"iteration_p5_s", uncertainty.quantile_ps(.05) * kSecondsPerPs},
          {"iteration_p50_s", uncertainty.quantile_ps(.5) * kSecondsPerPs},
          {"iteration_p95_s", uncertainty.quantile_ps(.95) * kSecondsPerPs},
          {"iteration_mean_s", sum / static_cast<double>(samples.size()) * kSecondsPerPs}};
}

std::string uncertainty_line(const simulator::Disturbance& disturbance, const simulator::Uncertainty& uncertainty,
                             std::uint64_t seed) {
  const auto at = [&](double share) { return fmt::format("{:.4g} s", uncertainty.quantile_ps(share) * kSecondsPerPs); };
  return fmt::format("\niteration with jitter of {}: p5 {}, p50 {}, p95 {} ({} samples, seed {})\n",
                     percent(disturbance.jitter), at(.05), at(.5), at(.95), uncertainty.samples_ps.size(), seed);
}

}  // namespace trivium::cli
