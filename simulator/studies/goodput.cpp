#include "simulator/studies/goodput.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace trivium::simulator {

base::Seconds young_interval(const Failures& failures) {
  return base::Seconds(std::sqrt(2 * failures.checkpoint.value() * failures.mtbf().value()));
}

base::Seconds daly_interval(const Failures& failures) {
  const double c = failures.checkpoint.value(), m = failures.mtbf().value();
  if (c >= 2 * m) return failures.mtbf();
  const double share = c / (2 * m);
  return base::Seconds(std::sqrt(2 * c * m) * (1 + std::sqrt(share) / 3 + share / 9) - c);
}

// The left side falls from e^(C/M) - 1 >= 0 at 0 to -1 at M.
base::Seconds best_interval(const Failures& failures) {
  const double c = failures.checkpoint.value(), m = failures.mtbf().value();
  if (c <= 0) return base::Seconds(0);
  double low = 0, high = m;
  constexpr int kHalvings = 200;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    // With logarithms: (t + C) / M + log(1 - t / M) > 0, which does not overflow.
    ((middle + c) / m + std::log1p(-middle / m) > 0 ? low : high) = middle;
  }
  return base::Seconds(low);
}

double goodput(const Failures& failures, base::Seconds interval) {
  const double m = failures.mtbf().value(), t = interval.value();
  if (t <= 0) return failures.checkpoint.value() <= 0 ? std::exp(-failures.restart.value() / m) : 0;
  const double wall = m * std::exp(failures.restart.value() / m) * std::expm1((t + failures.checkpoint.value()) / m);
  return t / wall;
}

double simulated_goodput(const Failures& failures, base::Seconds interval, base::Seconds work, std::uint64_t seed) {
  constexpr int kMostDrawn = 1'000'000;  // where hardly anything is ever saved, there is no end of them
  std::mt19937_64 random(seed);
  const double cycle = interval.value() + failures.checkpoint.value();
  double now = 0, done = 0;
  int drawn = 0;
  const auto until_failure = [&] {
    constexpr double kUnit = 0x1p-53;
    const double u = (static_cast<double>(random() >> 11) + 0.5) * kUnit;  // in (0, 1), the same on every machine
    ++drawn;
    return -failures.mtbf().value() * std::log(u);
  };
  if (!(interval > base::Seconds(0))) return goodput(failures, interval);
  double runs_for = until_failure();
  while (done < work.value() && drawn < kMostDrawn) {
    // So many checkpoints are written until it fails, or until the work is done; what came after the last one is lost.
    const double needed = std::ceil((work.value() - done) / interval.value());
    const double saved = std::min(std::floor(runs_for / cycle), needed);
    done += saved * interval.value();
    if (saved == needed) {
      now += saved * cycle;
      break;
    }
    now += runs_for;
    // A failure during the restart starts it anew.
    const double restart = failures.restart.value();
    for (runs_for = until_failure(); runs_for < restart && drawn < kMostDrawn; runs_for = until_failure()) {
      now += runs_for;
    }
    now += restart;
    runs_for -= restart;
  }
  return now > 0 ? done / now : 0;
}

}  // namespace trivium::simulator
