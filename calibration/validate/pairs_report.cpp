// Pairs of published runs as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "calibration/measurements/quantities.h"
#include "calibration/validate/pairs.h"

namespace trivium::calibration {
namespace {

std::string share(int part, int whole) {
  return whole > 0 ? fmt::format("{:.0f} %", kPercent * part / whole) : std::string("-");
}

}  // namespace

std::string to_table(std::span<const PairOfRuns> pairs) {
  if (pairs.empty()) return "no two runs differ in one setting\n";
  std::string text = fmt::format("{:<24} {:>6} {:>11} {:>16} {:>18}\n", "setting", "pairs", "sign right",
                                 "within 5 points", "mean difference");
  for (const PairSummary& of : summarise(pairs)) {
    text += fmt::format("{:<24} {:>6} {:>11} {:>16} {:>11.1f} points\n", of.setting, of.pairs,
                        share(of.sign_right, of.with_sign), share(of.within_5_points, of.pairs),
                        kPercent * of.mean_difference);
  }
  std::vector<const PairOfRuns*> order;
  for (const PairOfRuns& pair : pairs) order.push_back(&pair);
  std::ranges::stable_sort(order, std::greater<>(),
                           [](const PairOfRuns* pair) { return std::abs(pair->predicted - pair->measured); });
  text +=
      fmt::format("\nchange of the time that a token takes\n{:>10} {:>10}  setting, cases\n", "measured", "predicted");
  for (const PairOfRuns* pair : order) {
    text += fmt::format("{:>+8.1f} % {:>+8.1f} %  {}: {} to {}; {} to {}\n", kPercent * pair->measured,
                        kPercent * pair->predicted, pair->setting, pair->from, pair->to, pair->first, pair->second);
  }
  return text;
}

void add_pairs(nlohmann::json& validation, std::span<const PairOfRuns> pairs) {
  validation["pairs"] = nlohmann::json::array();
  for (const PairOfRuns& pair : pairs) {
    validation["pairs"].push_back({{"setting", pair.setting},
                                   {"from", pair.from},
                                   {"to", pair.to},
                                   {"cases", {pair.first, pair.second}},
                                   {"measured", pair.measured},
                                   {"predicted", pair.predicted}});
  }
  validation["pair_settings"] = nlohmann::json::array();
  for (const PairSummary& of : summarise(pairs)) {
    validation["pair_settings"].push_back({{"setting", of.setting},
                                           {"pairs", of.pairs},
                                           {"with_sign", of.with_sign},
                                           {"sign_right", of.sign_right},
                                           {"within_5_points", of.within_5_points},
                                           {"mean_difference", of.mean_difference}});
  }
}

}  // namespace trivium::calibration
