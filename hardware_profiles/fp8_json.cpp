#include "hardware_profiles/fp8_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hardware_profiles/node_json.h"
#include "hardware_profiles/quantity_text.h"

namespace trivium::hardware {
namespace {

const std::vector<std::string> kScalingNames = {"tensor", "block", "mxfp8", "nvfp4"};  // in the order of Scaling

ScaledProduct read_product(const base::SourcedReader& from) {
  constexpr double kSmallest = 1e-3, kLongestRamp = 1e5;
  from.plain().allow_only({"efficiency", "ramp"});
  return {base::number_within(from.constant("efficiency"), kSmallest, 2),
          base::number_within(from.constant("ramp"), 0, kLongestRamp)};
}

}  // namespace

Fp8Rates read_fp8(const base::SourcedReader& from) {
  from.plain().allow_only(
      {"tensor", "block", "mxfp8", "nvfp4", "cast_efficiency", "amax_efficiency", "cast_latency", "amax_latency"});
  Fp8Rates rates;
  for (std::size_t i = 0; i < kScalingNames.size(); ++i) {
    if (!from.has(kScalingNames[i])) continue;
    rates.products[static_cast<Scaling>(i)] = read_product(from.section(kScalingNames[i]));
  }
  if (rates.products.empty()) from.plain().fail("has no products: add tensor, block, mxfp8 or nvfp4");
  rates.cast_efficiency = base::number_within(from.constant("cast_efficiency"), kLeastEfficiency, 1);
  rates.amax_efficiency = base::number_within(from.constant("amax_efficiency"), kLeastEfficiency, 1);
  rates.cast_latency = from.constant("cast_latency").seconds();
  rates.amax_latency = from.constant("amax_latency").seconds();
  return rates;
}

nlohmann::json fp8_to_json(const Fp8Rates& rates) {
  nlohmann::json json = {{"cast_efficiency", rates.cast_efficiency},
                         {"amax_efficiency", rates.amax_efficiency},
                         {"cast_latency", exact_text(rates.cast_latency)},
                         {"amax_latency", exact_text(rates.amax_latency)}};
  for (const auto& [scaling, product] : rates.products) {
    json[kScalingNames[static_cast<std::size_t>(scaling)]] = {{"efficiency", product.efficiency},
                                                              {"ramp", product.ramp}};
  }
  return json;
}

}  // namespace trivium::hardware
