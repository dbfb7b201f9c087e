#include "hardware_profiles/device_json.h"

#include <gtest/gtest.h>

#include "fixtures.h"
#include "hardware_profiles/load.h"

namespace trivium::hardware {
namespace {

/// The small node with another device, cited as the node's own.
nlohmann::json node_with(nlohmann::json device) {
  nlohmann::json json = small_node();
  json["device"] = std::move(device);
  return json;
}

TEST(Device, ByNameBringsItsOwnSources) {
  nlohmann::json json = node_with("a100-sxm-80gb");
  json["sources"].erase("/device");
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.device.name, "a100-sxm-80gb");
  EXPECT_EQ(node.device.memory_bandwidth.value(), 2039e9);
  EXPECT_EQ(node.sources.count("/device/memory_bandwidth"), 1u);
}

TEST(Device, HasRatesOfProductsIn8BitsThatComeBackAsTheyWere) {
  nlohmann::json json = node_with("h100-sxm-80gb");
  json["sources"].erase("/device");
  const Node node = node_from_json(json, "node.json");
  const Fp8Rates& rates = node.device.fp8;
  EXPECT_EQ(node.device.peak.at(Arithmetic::kFp8).value(), 1978.9e12);
  EXPECT_EQ(rates.products.count(Scaling::kTensor), 1u);
  EXPECT_EQ(rates.products.count(Scaling::kMxfp8), 0u);
  EXPECT_EQ(load_node("dgx-a100-80gb").device.fp8.products.size(), 0u);
  const nlohmann::json written = device_to_json(node.device);
  EXPECT_EQ(written["fp8"]["block"]["ramp"], rates.products.at(Scaling::kBlock).ramp);
  json = node_with({{"base", "h100-sxm-80gb"}, {"fp8", {{"quarter", 1}}}});
  EXPECT_NE(node_complaint(json).find("quarter"), std::string::npos);
}

TEST(Device, OverridesSingleMembersOfItsBase) {
  nlohmann::json json = node_with({{"base", "a100-sxm-80gb"}, {"compute_scale", 0.88}});
  json["sources"].erase("/device");
  json["sources"]["/device/compute_scale"] = "fitted here";
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.device.compute_scale, 0.88);
  EXPECT_EQ(node.device.gemm_efficiency, load_node("dgx-a100-80gb").device.gemm_efficiency);
  EXPECT_EQ(node.sources.at("/device/compute_scale"), "fitted here");
}

TEST(Device, OverrideDropsTheCitationOfWhatItReplaces) {
  nlohmann::json json = node_with({{"base", "a100-sxm-80gb"}, {"memory", "64 GiB"}});
  json["sources"].erase("/device");
  json["sources"]["/device/memory"] = "a cut-down board";
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.device.memory.value(), 64 * 1073741824.0);
  EXPECT_EQ(node.sources.at("/device/memory"), "a cut-down board");
  EXPECT_EQ(node.sources.count("/device/memory_bandwidth"), 1u);
}

TEST(Device, OverrideNeedsASourceOfItsOwn) {
  nlohmann::json json = node_with({{"base", "a100-sxm-80gb"}, {"compute_scale", 0.88}});
  json["sources"].erase("/device");
  EXPECT_EQ(node_complaint(json),
            "node.json#/device/compute_scale: no source; add \"/device/compute_scale\": \"where the value comes from\" "
            "to sources");
}

TEST(Device, SuggestsTheNearestName) {
  EXPECT_EQ(node_complaint(node_with("a100-smx-80gb")),
            "node.json#/device: unknown device \"a100-smx-80gb\"; did you mean \"a100-sxm-80gb\"?");
  EXPECT_EQ(node_complaint(node_with({{"base", "V100-sxm-32"}})),
            "node.json#/device/base: unknown device \"V100-sxm-32\"; did you mean \"v100-sxm-32gb\"?");
}

TEST(Device, NamesTheMemberThatIsWrong) {
  const auto with = [](const char* key, nlohmann::json value) {
    nlohmann::json json = small_node();
    json["device"][key] = std::move(value);
    return node_complaint(json);
  };
  EXPECT_EQ(with("reserved", "8 GiB"), "node.json#/device: reserved is not below memory; nothing would be left");
  EXPECT_EQ(with("idle_power", "101 W"), "node.json#/device: peak_power is below idle_power");
  EXPECT_EQ(with("power_limit", "1 W"), "node.json#/device/power_limit: must be above idle_power");
  EXPECT_EQ(with("power_limit", "101 W"), "node.json#/device/power_limit: must not be above peak_power");
  EXPECT_EQ(with("peak", {{"bf61", "1 TFLOP/s"}}),
            "node.json#/device/peak/bf61: unknown arithmetic \"bf61\"; did you mean \"bf16\"?");
  EXPECT_EQ(with("gemm_efficiency", 0), "node.json#/device/gemm_efficiency: 0 is not within 0.001 to 1");
  EXPECT_EQ(with("sources", nlohmann::json::object()), "node.json#/device/sources: move it to the sources of the node");
}

// (400 - 70) of (700 - 70) W to the power of 0.62: 0.6697.
TEST(Device, HeldToLessPowerRunsAtLowerClocks) {
  nlohmann::json json = node_with({{"base", "h100-sxm-80gb"}, {"compute_scale", 0.8}});
  json["sources"]["/device/compute_scale"] = "test";
  const Node free = node_from_json(json, "node.json");
  EXPECT_EQ(free.device.sustained_scale(), 0.8);
  EXPECT_EQ(free.device.full_power().value(), 700);
  json["device"]["power_limit"] = "700 W";
  json["sources"]["/device/power_limit"] = "nvidia-smi -pl";
  EXPECT_EQ(node_from_json(json, "node.json").device.sustained_scale(), 0.8);
  json["device"]["power_limit"] = "400 W";
  const Node held = node_from_json(json, "node.json");
  EXPECT_NEAR(held.device.sustained_scale(), 0.8 * 0.6697, 1e-4);
  EXPECT_EQ(held.device.full_power().value(), 400);
  EXPECT_EQ(node_from_json(to_json(held), "again").device.power_limit.value(), 400);
}

TEST(Device, WithoutABaseMustBeWhole) {
  nlohmann::json json = small_node();
  json["device"].erase("wgrad_efficiency");
  EXPECT_EQ(
      node_complaint(json),
      "node.json#: missing /device/wgrad_efficiency; add it, or name a profile as \"base\" (trivium profiles lists "
      "them)");
}

}  // namespace
}  // namespace trivium::hardware
