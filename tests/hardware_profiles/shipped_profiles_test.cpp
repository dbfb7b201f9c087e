#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_reader.h"
#include "fixtures.h"
#include "hardware_profiles/load.h"
#include "tests/input_error.h"

namespace trivium::hardware {
namespace {

class ShippedProfile : public testing::TestWithParam<std::string> {};

TEST_P(ShippedProfile, IsNamedAsItsFile) { EXPECT_EQ(load_node(GetParam()).name, GetParam()); }

TEST_P(ShippedProfile, SurvivesTheRoundTripThroughJson) {
  const nlohmann::json once = to_json(load_node(GetParam()));
  const Node again = node_from_json(once, "again.json");
  EXPECT_EQ(to_json(again), once);
  EXPECT_EQ(again.device.memory, load_node(GetParam()).device.memory);
  EXPECT_EQ(again.intra.latency, load_node(GetParam()).intra.latency);
}

TEST_P(ShippedProfile, IsATemplateThatReadsAsItStands) {
  const nlohmann::json written = nlohmann::json::parse(node_template(GetParam()).dump());
  const Node node = node_from_json(written, "template.json");
  EXPECT_EQ(node.name, "my-" + GetParam());
  nlohmann::json expected = to_json(load_node(GetParam()));
  expected["name"] = node.name;
  EXPECT_EQ(to_json(node), expected);
}

/// Pointers of all constants of a written node: numbers, and texts that begin with a digit.
void collect_constants(const nlohmann::json& json, const std::string& pointer, std::vector<std::string>& found) {
  if (json.is_object()) {
    for (const auto& [key, member] : json.items()) {
      if (pointer.empty() && (key == "sources" || key == "schema" || key == "name")) continue;
      collect_constants(member, pointer + "/" + key, found);
    }
  } else if (json.is_number() || (json.is_string() && std::isdigit(json.get<std::string>().front()) != 0)) {
    found.push_back(pointer);
  }
}

TEST_P(ShippedProfile, HasASourceForEveryConstant) {
  const Node node = load_node(GetParam());
  std::vector<std::string> constants;
  collect_constants(to_json(node), "", constants);
  EXPECT_GE(constants.size(), 20u);
  for (const std::string& constant : constants) {
    bool sourced = false;
    for (const auto& [pointer, citation] : node.sources) {
      sourced = sourced || constant == pointer || constant.starts_with(pointer + "/");
      EXPECT_GT(citation.size(), 5u);
    }
    EXPECT_TRUE(sourced) << constant;
  }
}

TEST_P(ShippedProfile, FailsWhenASourceIsTakenAway) {
  const nlohmann::json whole = to_json(load_node(GetParam()));
  for (const auto& [pointer, citation] : whole.at("sources").items()) {
    nlohmann::json less = whole;
    less["sources"].erase(pointer);
    EXPECT_NE(input_error([&] { node_from_json(less, "less.json"); }), "") << pointer;
  }
}

TEST_P(ShippedProfile, IsPhysicallyPlausible) {
  const Node node = load_node(GetParam());
  EXPECT_LT(node.device.reserved, node.device.memory);
  EXPECT_LT(node.device.idle_power, node.device.peak_power);
  // Fused kernels: the CPU backend's own, and those of GPUs from Ampere on.
  EXPECT_EQ(node.device.flash_attention,
            node.device.kind == DeviceKind::kCpu || node.device.peak.count(Arithmetic::kBf16) > 0);
  // No all-reduce is faster than what leaves a device: the links of a cube mesh, two of which join a pair, are six.
  const double ways = node.topology == Topology::kCubeMesh ? 3 : 1;
  // Where the switch sums (NVLink SHARP) a rank sends half of what a ring has it send.
  const double sums = node.gather_bus.empty() ? 1 : 2;
  for (const auto& [size, bus] : node.allreduce_bus) EXPECT_LE(bus, node.intra.bandwidth * (ways * sums)) << size;
  for (const auto& [size, bus] : node.gather_bus) EXPECT_LE(bus, node.intra.bandwidth * ways) << size;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedProfile, testing::ValuesIn(shipped_profiles()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
});

TEST(ShippedProfiles, HoldEveryMachineOfThePublishedRuns) {
  EXPECT_THAT(
      shipped_profiles(),
      testing::ElementsAre(
          "a100-pcie-40gb", "a100-pcie-80gb", "aws-p3-16xlarge-v100-16gb", "azure-ndm-a100-80gb", "b200-4x", "b200-hgx",
          "dgx-a100-40gb", "dgx-a100-80gb", "dgx-b200", "dgx-b300", "dgx-h100", "dgx-h100-80gb", "dgx1-v100-16gb",
          "dgx1-v100-32gb", "dgx2-v100-32gb", "eos-dgx-h100", "gb200-nvl72", "gb300-nvl72", "gcp-a3-h100",
          "generic-cpu", "grand-teton-h100-96gb-500w", "h100-8x", "h100-pcie-80gb", "h200", "h200-hgx", "h200-trivium",
          "h800-hgx", "hf-h100-80gb-efa", "ibm-h100-800gbps", "internevo-a100-80gb-4x100g-roce", "jean-zay-a100-80gb",
          "jean-zay-v100-16gb", "jean-zay-v100-32gb", "kempner-h200-4x", "l40s", "mlperf-b200", "mlperf-b300",
          "mlperf-gb200-nvl72", "mlperf-gb300-nvl72", "mlperf-h100", "mlperf-h200", "mosaic-a100-40gb",
          "mosaic-a100-80gb", "mosaic-h100-80gb", "rtx-4090", "selene-dgx-a100-80gb", "simumax-b200-8x",
          "vtrain-a100-80gb-800gbps", "vtrain-hgx-a100", "whitefiber-h200"));
}

TEST(ShippedProfiles, SeleneIsWhatItsPaperPrints) {
  const Node node = load_node("selene-dgx-a100-80gb");
  EXPECT_EQ(node.devices, 8);
  EXPECT_EQ(node.device.peak.at(Arithmetic::kFp16).value(), 312e12);
  EXPECT_EQ(node.device.peak.at(Arithmetic::kBf16).value(), 312e12);
  EXPECT_EQ(node.device.memory.value(), 85899345920.0);  // 80 * 2^30
  EXPECT_EQ(node.device.multiprocessors, 108);
  EXPECT_EQ(node.intra.bandwidth.value(), 300e9);   // 600 GB/s, both directions
  EXPECT_EQ(node.network.bandwidth.value(), 25e9);  // 200 Gb/s / 8
  EXPECT_EQ(node.adapters, 8);
  // Ring all-reduce of 1 GiB over 8 in 8193 us: 2 * 7/8 * 2^30 B / 8.193 ms = 229.35 GB/s.
  EXPECT_NEAR(node.allreduce_bus.at(8).value(), 2 * 7.0 / 8 * 1073741824 / 8193e-6, 0.01e9);
}

TEST(ShippedProfiles, CardsOfOneServerAreWhatTheirSheetsPrint) {
  const Device a100 = load_node("a100-pcie-40gb").device;
  EXPECT_EQ(a100.memory.value(), 42949672960.0);  // 40 * 2^30
  EXPECT_EQ(a100.memory_bandwidth.value(), 1555e9);
  EXPECT_EQ(a100.peak.at(Arithmetic::kBf16).value(), 312e12);
  const Device h100 = load_node("h100-pcie-80gb").device;
  EXPECT_EQ(h100.peak.at(Arithmetic::kBf16).value(), 756e12);
  EXPECT_EQ(h100.multiprocessors, 114);
  EXPECT_FALSE(h100.fp8.products.empty());  // the kernels of the same chip
  for (const char* name : {"l40s", "rtx-4090"}) {
    const Device device = load_node(name).device;
    EXPECT_EQ(device.peak.count(Arithmetic::kFp64), 0u) << name;
    EXPECT_EQ(device.fp8.products.size(), 1U)
        << name;  // nobody measured the kernels: those of a tensor's scale, assumed
    EXPECT_TRUE(device.fp8.products.contains(Scaling::kTensor)) << name;
  }
  // Half of what crosses PCIe switches: copies go through the host.
  const Node cards = load_node("rtx-4090");
  EXPECT_NEAR(cards.allreduce_bus.at(8).value() / load_node("a100-pcie-80gb").allreduce_bus.at(8).value(), 0.5, 0.01);
  EXPECT_EQ(cards.adapters, 0);
}

TEST(ShippedProfiles, V100HasNeitherBf16NorFlashAttention) {
  for (const char* name : {"dgx2-v100-32gb", "jean-zay-v100-16gb", "aws-p3-16xlarge-v100-16gb", "dgx1-v100-32gb"}) {
    const Device device = load_node(name).device;
    EXPECT_EQ(device.peak.count(Arithmetic::kBf16), 0u) << name;
    EXPECT_FALSE(device.flash_attention) << name;
    EXPECT_EQ(device.peak.at(Arithmetic::kFp16).value(), 125e12) << name;
  }
}

TEST(ShippedProfiles, SystemPowerIsThatOfTheDataSheet) {
  // DGX A100: 3300 W + 8 * 400 W = 6.5 kW. DGX-2: 4400 W + 16 * 350 W = 10 kW. DGX H100: 4600 W + 8 * 700 W = 10.2 kW.
  const auto system = [](const Node& node) {
    return (node.overhead_power + node.device.peak_power * node.devices).value();
  };
  EXPECT_EQ(system(load_node("dgx-a100-80gb")), 6500);
  EXPECT_EQ(system(load_node("dgx2-v100-32gb")), 10000);
  EXPECT_EQ(system(load_node("dgx-h100-80gb")), 10200);
}

}  // namespace
}  // namespace trivium::hardware
