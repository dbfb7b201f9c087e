#include "hardware_profiles/node_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.h"
#include "hardware_profiles/load.h"

namespace trivium::hardware {
namespace {

TEST(Node, IsReadInBaseUnits) {
  const Node node = node_from_json(small_node(), "node.json");
  EXPECT_EQ(node.name, "small");
  EXPECT_EQ(node.devices, 2);
  EXPECT_EQ(node.topology, Topology::kPcie);
  EXPECT_EQ(node.network.bandwidth.value(), 1e9);  // 8 Gb/s is 1 GB/s
  EXPECT_EQ(node.allreduce_bus.at(2).value(), 4e9);
  EXPECT_EQ(node.device.peak.at(Arithmetic::kFp32).value(), 10e12);
  EXPECT_EQ(node.price.value(), 1.5);
  EXPECT_EQ(node.sources.at("/host_link"), "test");
}

TEST(Node, MaySitUnderAnOversubscribedFatTree) {
  EXPECT_EQ(node_from_json(small_node(), "node.json").leaf_nodes, 0);
  nlohmann::json json = small_node();
  json["fat_tree"] = {{"leaf_nodes", 16}, {"oversubscription", 2.5}};
  EXPECT_EQ(node_complaint(json),
            "node.json#: no source for /fat_tree/leaf_nodes, /fat_tree/oversubscription; add each to sources, as "
            "\"/fat_tree/leaf_nodes\": \"where the value comes from\"");
  json["sources"]["/fat_tree"] = "test";
  const Node node = node_from_json(to_json(node_from_json(json, "node.json")), "again.json");
  EXPECT_EQ(node.leaf_nodes, 16);
  EXPECT_EQ(node.oversubscription, 2.5);
  json["fat_tree"]["oversubscription"] = 0.5;
  EXPECT_NE(node_complaint(json).find("node.json#/fat_tree/oversubscription: "), std::string::npos);
}

TEST(Node, MayHaveDrivesToOffloadTo) {
  nlohmann::json json = small_node();
  EXPECT_EQ(node_from_json(json, "node.json").disk.value(), 0);
  json["disk"] = "2 GB/s";
  EXPECT_EQ(node_complaint(json),
            "node.json#/disk: no source; add \"/disk\": \"where the value comes from\" to sources");
  json["sources"]["/disk"] = "test";
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.disk.value(), 2e9);
  EXPECT_EQ(node_from_json(to_json(node), "node.json").disk.value(), 2e9);
  json["disk"] = "0 GB/s";
  EXPECT_NE(node_complaint(json).find("node.json#/disk"), std::string::npos);
}

TEST(Node, SaysHowManyDevicesShareALinkToTheHost) {
  nlohmann::json json = small_node();
  EXPECT_EQ(node_from_json(json, "node.json").devices_per_host_link, 1);
  json["devices_per_host_link"] = 2;
  EXPECT_EQ(node_complaint(json),
            "node.json#/devices_per_host_link: no source; add \"/devices_per_host_link\": \"where the value comes "
            "from\" to sources");
  json["sources"]["/devices_per_host_link"] = "test";
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.devices_per_host_link, 2);
  EXPECT_EQ(node_from_json(to_json(node), "again.json").devices_per_host_link, 2);
  json["devices_per_host_link"] = node.devices + 1;
  EXPECT_NE(node_complaint(json).find("node.json#/devices_per_host_link"), std::string::npos);
}

TEST(Node, WithoutASourceForAConstantIsRefused) {
  nlohmann::json json = small_node();
  json["sources"].erase("/host_link");
  EXPECT_EQ(node_complaint(json),
            "node.json#/host_link: no source; add \"/host_link\": \"where the value comes from\" to sources");
  json = small_node();
  json["sources"].erase("/allreduce_bus/2");
  EXPECT_EQ(
      node_complaint(json),
      "node.json#/allreduce_bus/2: no source; add \"/allreduce_bus/2\": \"where the value comes from\" to sources");
  json = small_node();
  json.erase("sources");
  EXPECT_THAT(node_complaint(json), testing::StartsWith("node.json#: no source for /adapters, /allreduce_bus/2, "));
  EXPECT_THAT(node_complaint(json),
              testing::EndsWith(" more; add each to sources, as \"/adapters\": \"where the value comes from\""));
}

TEST(Node, CannotCiteEverythingAtOnceOrNothingAtAll) {
  nlohmann::json json = small_node();
  json["sources"] = {{"", "a book"}};
  EXPECT_EQ(
      node_complaint(json),
      "node.json#/sources/: \"\" points at no constant of this profile; a key of sources is a JSON pointer such as "
      "\"/device/memory_bandwidth\"");
  json = small_node();
  json["sources"]["/host_lnk"] = "a typing slip";
  EXPECT_EQ(node_complaint(json),
            "node.json#/sources/~1host_lnk: \"/host_lnk\" points at no constant of this profile; a key of sources is a "
            "JSON pointer such as \"/device/memory_bandwidth\"");
  json = small_node();
  json["sources"]["/host_link"] = "";
  EXPECT_EQ(node_complaint(json), "node.json#/sources/~1host_link: an empty source; say where the value comes from");
}

TEST(Node, NamesTheMemberThatIsWrong) {
  const auto with = [](const char* pointer, nlohmann::json value) {
    nlohmann::json json = small_node();
    json[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return node_complaint(json);
  };
  EXPECT_EQ(with("/schema", "trivium.hardware/2"),
            "node.json#/schema: found \"trivium.hardware/2\"; expected \"trivium.hardware/1\"");
  EXPECT_EQ(with("/topology", "nvswich"), "node.json#/topology: unknown value \"nvswich\"; did you mean \"nvswitch\"?");
  EXPECT_EQ(with("/devices", 0), "node.json#/devices: must be from 1 to 4096, not 0");
  EXPECT_EQ(with("/intra/bandwidth", "0 GB/s"), "node.json#/intra/bandwidth: must be above zero");
  EXPECT_EQ(with("/network/efficiency", 1.5), "node.json#/network/efficiency: 1.5 is not within 0.001 to 1");
  EXPECT_EQ(with("/allreduce_bus", {{"3", "4 GB/s"}}).substr(0, 20), "node.json#/sources/~");  // its source dangles
  EXPECT_EQ(with("/adapters", 0),
            "node.json#/network: the node has no network adapters; remove it (say null where a base "
            "has it) or set adapters");
  EXPECT_EQ(with("/hostlink", "5 GB/s"),
            "node.json#/hostlink: unknown member \"hostlink\"; did you mean \"host_link\"?");
}

TEST(Node, MeasuresCollectivesOfItsOwnDevicesOnly) {
  nlohmann::json json = small_node();
  json["allreduce_bus"] = {{"3", "4 GB/s"}};
  json["sources"].erase("/allreduce_bus/2");
  json["sources"]["/allreduce_bus"] = "test";
  EXPECT_EQ(node_complaint(json),
            "node.json#/allreduce_bus/3: a group size must be from 2 to the 2 devices of the node, not \"3\"");
}

// Of cores, that ranks may share; of nothing else.
TEST(Node, OfCoresMeasuresMoreRanksThanItHas) {
  nlohmann::json json = small_node();
  json["allreduce_latency"] = {{"4", "50 us"}};
  json["sources"]["/allreduce_latency"] = "test";
  EXPECT_EQ(node_complaint(json),
            "node.json#/allreduce_latency/4: a group size must be from 2 to the 2 devices of the node, not \"4\"");
  json["topology"] = "shared-memory";
  EXPECT_DOUBLE_EQ(node_from_json(json, "node.json").allreduce_latency.at(4).value(), 50e-6);
}

TEST(Node, OfCoresSaysWhatSharingThemCosts) {
  nlohmann::json json = small_node();
  json["core_sharing"] = {{"1000000", 0.01}, {"50000000", 0.07}};
  json["sources"]["/core_sharing"] = "test";
  EXPECT_EQ(node_complaint(json), "node.json#/core_sharing: only cores of one memory are shared by ranks; remove it");
  json["topology"] = "shared-memory";
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.core_sharing, (std::map<std::int64_t, double>{{1000000, 0.01}, {50000000, 0.07}}));
  EXPECT_EQ(node_from_json(to_json(node), "again").core_sharing, node.core_sharing);
  json["core_sharing"] = {{"1 MB", 0.01}};
  EXPECT_EQ(node_complaint(json),
            "node.json#/core_sharing/1 MB: must be named by bytes per core, 1 or more, not \"1 MB\"");
  json["core_sharing"] = {{"1000000", -0.01}};
  EXPECT_THAT(node_complaint(json), testing::HasSubstr("node.json#/core_sharing/1000000: "));
}

TEST(Node, WithoutAdaptersNeedsNoNetwork) {
  nlohmann::json json = small_node();
  json["adapters"] = 0;
  json.erase("network");
  json["sources"].erase("/network");
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.adapters, 0);
  EXPECT_FALSE(to_json(node).contains("network"));
}

TEST(Node, KeepsMeasuredOpRates) {
  nlohmann::json json = small_node();
  json["device"]["op_rates"]["gemm"] = {
      {"overhead", "3 us"}, {"seconds_per_flop", 1.25e-10}, {"seconds_per_byte", 0.0}, {"spread", 0.07}};
  const Node node = node_from_json(json, "node.json");
  EXPECT_EQ(node.device.op_rates.at("gemm").seconds_per_flop, 1.25e-10);
  const Node again = node_from_json(to_json(node), "again.json");
  EXPECT_EQ(again.device.op_rates.at("gemm").overhead, node.device.op_rates.at("gemm").overhead);
  EXPECT_EQ(again.device.op_rates.at("gemm").spread, 0.07);
  EXPECT_EQ(again.device.op_rates.at("gemm").seconds_per_block, 0);  // not said
}

TEST(Node, KeepsWhatABlockOfQueriesTakes) {
  nlohmann::json json = small_node();
  json["device"]["op_rates"]["flash_attention"] = {{"overhead", "3 us"},
                                                   {"seconds_per_flop", 1.25e-10},
                                                   {"seconds_per_byte", 0.0},
                                                   {"seconds_per_block", 2.5e-6},
                                                   {"spread", 0.07}};
  const Node again = node_from_json(to_json(node_from_json(json, "node.json")), "again.json");
  EXPECT_EQ(again.device.op_rates.at("flash_attention").seconds_per_block, 2.5e-6);
}

}  // namespace
}  // namespace trivium::hardware
