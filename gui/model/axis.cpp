#include "gui/model/axis.h"

#include <algorithm>
#include <cmath>

namespace trivium::gui {

namespace {

constexpr double kCrowding = 0.7;  // of the wanted distance: nearer steps leave no room for labels

}  // namespace

std::vector<double> ticks(double low, double high, int wanted) {
  if (!(low < high) || !std::isfinite(high - low)) return {low};
  const double raw = (high - low) / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < kCrowding * raw) step = factor * power;
  }
  std::vector<double> places;
  for (double i = std::ceil(low / step); i * step <= high + step * 1e-9; ++i) places.push_back(i * step);
  if (places.empty()) places.push_back(low);
  return places;
}

}  // namespace trivium::gui
