#include <gtest/gtest.h>

#include "fixtures.h"
#include "hardware_profiles/load.h"
#include "tests/input_error.h"

namespace trivium::hardware {
namespace {

std::string spec_complaint(const std::string& text) {
  return input_error([&] { load_cluster(text); });
}

TEST(Cluster, OfOneKindCountsItsDevices) {
  const Cluster cluster = load_cluster("dgx-a100-80gb:128");
  EXPECT_EQ(cluster.name, "dgx-a100-80gb:128");
  EXPECT_EQ(cluster.nodes(), 128);
  EXPECT_EQ(cluster.devices(), 1024);  // 128 * 8
  EXPECT_TRUE(cluster.homogeneous());
}

TEST(Cluster, NameAloneIsOneNode) { EXPECT_EQ(load_cluster("dgx2-v100-32gb").devices(), 16); }

TEST(Cluster, RanksFillTheNodesInOrder) {
  // Two nodes of 8 A100 hold devices 0-7 and 8-15; three nodes of 4 V100 hold 16-19, 20-23 and 24-27.
  const Cluster cluster = load_cluster("dgx-a100-80gb:2+jean-zay-v100-32gb:3");
  EXPECT_EQ(cluster.nodes(), 5);
  EXPECT_EQ(cluster.devices(), 28);
  EXPECT_FALSE(cluster.homogeneous());
  EXPECT_EQ(cluster.node_of_device(0).name, "dgx-a100-80gb");
  EXPECT_EQ(cluster.node_of_device(15).name, "dgx-a100-80gb");
  EXPECT_EQ(cluster.node_of_device(16).name, "jean-zay-v100-32gb");
  EXPECT_EQ(cluster.node_index(0), 0);
  EXPECT_EQ(cluster.node_index(7), 0);
  EXPECT_EQ(cluster.node_index(8), 1);
  EXPECT_EQ(cluster.node_index(15), 1);
  EXPECT_EQ(cluster.node_index(16), 2);
  EXPECT_EQ(cluster.node_index(20), 3);
  EXPECT_EQ(cluster.node_index(27), 4);
}

TEST(Cluster, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(spec_complaint("dgx-a100-80g:4"),
            "unknown hardware profile \"dgx-a100-80g\"; did you mean \"dgx-a100-80gb\"?");
  EXPECT_EQ(spec_complaint("this-machin"), "unknown hardware profile \"this-machin\"; did you mean \"this-machine\"?");
}

TEST(Cluster, CountMustBeAWholeNumberOfNodes) {
  const auto refusal = [](const std::string& number) {
    return "cluster \"h200:" + number + "\": the number of nodes after \"h200:\" must be a whole number from 1 to " +
           "1000000, not \"" + number + "\"";
  };
  for (const char* number : {"0", "-3", "two", "2.5", "", "1e3", " 4", "99999999999999999999"}) {
    EXPECT_EQ(spec_complaint(std::string("h200:") + number), refusal(number));
  }
}

TEST(Cluster, HasAtMostAMillionDevices) {
  EXPECT_EQ(load_cluster("h200:125000").devices(), 1000000);
  EXPECT_EQ(spec_complaint("h200:125001"), "cluster \"h200:125001\": 1000008 devices; a cluster has at most 1000000");
  EXPECT_EQ(spec_complaint("h200:125000+h200:1"),
            "cluster \"h200:125000+h200:1\": 1000008 devices; a cluster has at most 1000000");
}

TEST(Cluster, EmptyTermIsRefused) {
  for (const std::string text : {"", ":4", "h200:1+", "+h200"}) {
    EXPECT_EQ(spec_complaint(text), "cluster \"" + text +
                                        "\": a profile name is missing; write NAME:N, NAME:N+NAME:N, this-machine or "
                                        "FILE.json");
  }
}

TEST(Cluster, OfSeveralNodesNeedsANetwork) {
  EXPECT_EQ(load_cluster("vtrain-hgx-a100").devices(), 8);
  EXPECT_EQ(spec_complaint("vtrain-hgx-a100:2"),
            "cluster \"vtrain-hgx-a100:2\": \"vtrain-hgx-a100\" has no network adapters in its profile, so it can only "
            "be used as one node");
}

TEST(Cluster, IsReadFromAProfileFileAndFromAClusterFile) {
  const TemporaryFolder folder;
  const std::string profile = folder.write("node.json", small_node());
  EXPECT_EQ(load_cluster(profile).devices(), 2);
  EXPECT_EQ(load_cluster(profile + ":5").devices(), 10);
  const std::string cluster = folder.write(
      "cluster.json", {{"schema", "trivium.cluster/1"},
                       {"name", "two kinds"},
                       {"groups", {{{"node", small_node()}, {"count", 3}}, {{"node", "h200"}, {"count", 1}}}}});
  EXPECT_EQ(load_cluster(cluster).name, "two kinds");
  EXPECT_EQ(load_cluster(cluster).devices(), 14);  // 3 * 2 + 8
}

TEST(Cluster, SurvivesTheRoundTripThroughJson) {
  const Cluster cluster = load_cluster("azure-ndm-a100-80gb:16+jean-zay-v100-16gb:4");
  const Cluster again = cluster_from_json(to_json(cluster), "again.json");
  EXPECT_EQ(again.name, cluster.name);
  EXPECT_EQ(again.devices(), 144);  // 16 * 8 + 4 * 4
  EXPECT_EQ(to_json(again), to_json(cluster));
}

TEST(Cluster, JsonErrorsNameTheGroup) {
  const auto complaint = [](const nlohmann::json& groups) {
    const nlohmann::json json = {{"schema", "trivium.cluster/1"}, {"name", "x"}, {"groups", groups}};
    return input_error([&] { cluster_from_json(json, "cluster.json"); });
  };
  using nlohmann::json;
  EXPECT_EQ(complaint(json::array({{{"node", "h100"}, {"count", 0}}})),
            "cluster.json#/groups/0/count: must be from 1 to 1000000, not 0");
  EXPECT_EQ(complaint(json::array({{{"node", "h200"}, {"count", 1}}, {{"node", "h20"}, {"count", 1}}})),
            "cluster.json#/groups/1/node: unknown hardware profile \"h20\"; did you mean \"h200\"?");
  EXPECT_EQ(complaint(json::array()), "cluster.json#/groups: no nodes; a cluster needs one at least");
  json broken = small_node();
  broken["host_link"] = "fast";
  EXPECT_EQ(complaint(json::array({{{"node", broken}, {"count", 1}}})).substr(0, 43),
            "cluster.json#/groups/0/node/host_link: cann");
}

/// Two small nodes, another and an H200 at three sites, the first two of which a link joins.
nlohmann::json linked_cluster() {
  using nlohmann::json;
  return {{"schema", "trivium.cluster/1"},
          {"name", "two buildings"},
          {"groups",
           {{{"node", small_node()}, {"count", 2}},
            {{"node", small_node()}, {"count", 1}},
            {{"node", "h200"}, {"count", 1}}}},
          {"links",
           {{{"between", {1, 0}},
             {"bandwidth", "100 Gb/s"},
             {"latency", "1 ms"},
             {"efficiency", 0.9},
             {"source", "leased line"}}}}};
}

TEST(Cluster, SaysWhatJoinsItsSites) {
  const Cluster cluster = cluster_from_json(linked_cluster(), "cluster.json");
  EXPECT_EQ(cluster.site_of_device(3), 0);  // of 2 x 2 at the first site
  EXPECT_EQ(cluster.site_of_device(4), 1);
  EXPECT_EQ(cluster.site_of_device(6), 2);
  const SiteLink* link = cluster.link_between(1, 0);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link, cluster.link_between(0, 1));
  EXPECT_EQ(link->link.bandwidth.value(), 12.5e9);
  EXPECT_EQ(link->link.latency.value(), 1e-3);
  EXPECT_EQ(link->link.efficiency, 0.9);
  EXPECT_EQ(cluster.link_between(0, 2), nullptr);
  EXPECT_EQ(cluster.link_between(0, 0), nullptr);
  EXPECT_EQ(to_json(cluster_from_json(to_json(cluster), "again.json")), to_json(cluster));
}

TEST(Cluster, GroupsMayStandAtOneSite) {
  nlohmann::json json = linked_cluster();
  json["groups"][2]["site"] = 0;
  const Cluster cluster = cluster_from_json(to_json(cluster_from_json(json, "cluster.json")), "again.json");
  EXPECT_EQ(cluster.site_of_device(6), 0);
  EXPECT_EQ(cluster.site_of_device(4), 1);
}

TEST(Cluster, LinkErrorsNameTheirPlace) {
  const auto with = [](const char* pointer, nlohmann::json value) {
    nlohmann::json json = linked_cluster();
    json[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return input_error([&] { cluster_from_json(json, "cluster.json"); });
  };
  EXPECT_EQ(with("/links/0/between", {0, 3}),
            "cluster.json#/links/0/between/1: no group stands at site 3; a group's site is its place in groups, or its "
            "\"site\"");
  EXPECT_EQ(with("/links/0/between", {0, 0}),
            "cluster.json#/links/0/between/1: a link joins two sites, not one with itself");
  EXPECT_EQ(with("/links/0/between", nlohmann::json::array({0})),
            "cluster.json#/links/0/between: a link joins two sites; write them as [0, 1]");
  EXPECT_EQ(with("/links/0/bandwidth", "0 Gb/s"), "cluster.json#/links/0/bandwidth: must be above zero");
  EXPECT_EQ(with("/links/0/efficiency", 2), "cluster.json#/links/0/efficiency: 2 is not within 0.001 to 1");
  EXPECT_EQ(with("/links/0/source", ""),
            "cluster.json#/links/0/source: an empty source; say where the values come from");
  EXPECT_EQ(with("/links/1", linked_cluster()["links"][0]),
            "cluster.json#/links/1/between: these sites have a link already; write all that joins them as one");
  EXPECT_EQ(with("/links/1", nlohmann::json::object()),
            "cluster.json#/links/1: missing /between, /bandwidth, /latency, /source; add them");
}

TEST(Cluster, OfAnotherSchemaIsRefused) {
  EXPECT_EQ(input_error([] {
              cluster_from_json({{"schema", "trivium.plan/1"}}, "plan.json");
            }),
            "plan.json#/schema: found \"trivium.plan/1\"; expected \"trivium.cluster/1\" or \"trivium.hardware/1\"");
}

}  // namespace
}  // namespace trivium::hardware
