// Profiles that say only how they differ from a base.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fixtures.h"
#include "hardware_profiles/load.h"
#include "tests/input_error.h"

namespace trivium::hardware {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A node that says of the DGX H100 only what it says itself.
nlohmann::json over_h100(const nlohmann::json& differences) {
  nlohmann::json node = {{"schema", "trivium.hardware/1"}, {"name", "mine"}, {"base", "dgx-h100"}};
  node.update(differences);
  return node;
}

TEST(Base, FillsInWhatANodeLeavesOut) {
  const Node base = load_node("dgx-h100");
  const Node node =
      node_from_json(over_h100({{"price", "32 $/h"}, {"sources", {{"/price", "our contract"}}}}), "n.json");
  EXPECT_EQ(node.name, "mine");
  EXPECT_EQ(node.bases, (std::vector<std::string>{"dgx-h100"}));
  EXPECT_EQ(node.price.value(), 32);
  nlohmann::json expected = to_json(base), written = to_json(node);
  for (nlohmann::json* each : {&expected, &written}) {
    for (const char* differs : {"name", "price", "sources"}) each->erase(differs);
  }
  EXPECT_EQ(written, expected);
}

TEST(Base, SaysWhichCitationsAreItsOwn) {
  const Node node =
      node_from_json(over_h100({{"price", "32 $/h"}, {"sources", {{"/price", "our contract"}}}}), "n.json");
  EXPECT_EQ(node.sources.at("/price"), "our contract");
  EXPECT_EQ(node.sources.at("/devices"), "base dgx-h100: NVIDIA DGX H100 data sheet");
  EXPECT_THAT(node.sources.at("/device/multiprocessors"), StartsWith("base dgx-h100: base h100-sxm-80gb: NVIDIA H100"));
}

// Groups of eight were measured on the base; a node of four has none, and a node of one no groups at all.
TEST(Base, LendsTablesToFewerDevices) {
  for (const int devices : {4, 1}) {
    const nlohmann::json json = {{"devices", devices}, {"sources", {{"/devices", "a smaller board"}}}};
    const Node node = node_from_json(over_h100(json), "n.json");
    EXPECT_EQ(node.devices, devices);
    EXPECT_EQ(node.allreduce_bus.empty() ? 1 : node.allreduce_bus.rbegin()->first, devices);
    EXPECT_EQ(to_json(node_from_json(to_json(node), "again.json")), to_json(node));
  }
}

TEST(Base, WrittenOutNeedsNoBaseAnyMore) {
  const Node node = node_from_json(over_h100({{"adapters", 4}, {"sources", {{"/adapters", "we took four out"}}}}), "n");
  EXPECT_EQ(to_json(node_from_json(to_json(node), "again.json")), to_json(node));
}

// The small node cites all of /intra at once: what the latency was is no source of another one.
TEST(Base, LendsNoCitationToWhatReplacesItsConstants) {
  const TemporaryFolder folder;
  folder.write("small.json", small_node());
  nlohmann::json node = {
      {"schema", "trivium.hardware/1"}, {"name", "mine"}, {"base", "small.json"}, {"intra", {{"latency", "2 us"}}}};
  const std::string file = folder.write("mine.json", node);
  EXPECT_EQ(input_error([&] { load_node(file); }),
            file + "#/intra/latency: no source; add \"/intra/latency\": \"where the value comes from\" to sources");
  node["sources"] = {{"/intra", "measured"}};  // of its own members alone
  const Node read = load_node(folder.write("mine.json", node));
  EXPECT_EQ(read.intra.latency.value(), 2e-6);
  EXPECT_EQ(read.intra.bandwidth.value(), 10e9);
  EXPECT_EQ(read.sources.at("/intra/latency"), "measured");
  EXPECT_EQ(read.sources.at("/intra/bandwidth"), "base small.json: test");
  EXPECT_EQ(read.sources.count("/intra"), 0u);
}

TEST(Base, IsAFileBesideTheProfileOrAProfileOfTheUser) {
  const TemporaryFolder folder;
  folder.write("small.json", small_node());
  folder.write("data/trivium/profiles/rack.json",
               {{"schema", "trivium.hardware/1"}, {"name", "rack"}, {"base", "../../../small.json"}});
  const std::string file =
      folder.write("mine.json", {{"schema", "trivium.hardware/1"}, {"name", "mine"}, {"base", "rack"}});
  EXPECT_THAT(input_error([&] { load_node(file); }), StartsWith(file + "#/base: unknown hardware profile \"rack\""));
  setenv("XDG_DATA_HOME", (folder.path() / "data").c_str(), 1);
  const Node node = load_node(file);
  EXPECT_EQ(user_profiles(), (std::vector<std::string>{"rack"}));
  EXPECT_EQ(load_node("rack").price.value(), 1.5);
  unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(node.bases, (std::vector<std::string>{"rack", "../../../small.json"}));
  EXPECT_EQ(node.devices, 2);
}

TEST(Base, UnknownIsOneErrorAtItsPlace) {
  EXPECT_EQ(node_complaint(over_h100({{"base", "dgx-h100-80g"}})),
            "node.json#/base: unknown hardware profile \"dgx-h100-80g\"; did you mean \"dgx-h100-80gb\"?");
  EXPECT_THAT(node_complaint(over_h100({{"base", "no/such.json"}})), StartsWith("node.json#/base: no/such.json: "));
  EXPECT_EQ(node_complaint(over_h100({{"base", 7}})), "node.json#/base: expected text, found a number");
}

TEST(Base, ThatLeadsBackIsOneErrorAtItsPlace) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const char* base) {
    return folder.write(name, {{"schema", "trivium.hardware/1"}, {"name", name}, {"base", base}});
  };
  const std::string a = write("a.json", "b.json"), b = write("b.json", "./b.json");
  EXPECT_EQ(input_error([&] { load_node(a); }), b + "#/base: bases go round in a circle: \"" + b + "\", then \"" +
                                                    folder.path().string() + "/./b.json\"; give one of them no base");
}

TEST(Base, ThatIsWrongIsToldInItsOwnFile) {
  const TemporaryFolder folder;
  nlohmann::json broken = small_node();
  broken["host_link"] = "0 GB/s";
  const std::string base = folder.write("small.json", broken);
  const std::string file = folder.write("mine.json", {{"schema", "trivium.hardware/1"},
                                                      {"name", "mine"},
                                                      {"base", "small.json"},
                                                      {"host_link", "4 GB/s"},
                                                      {"sources", {{"/host_link", "test"}}}});
  EXPECT_EQ(input_error([&] { load_node(file); }), base + "#/host_link: must be above zero");
}

TEST(Base, OfANodeHasAnotherName) {
  nlohmann::json node = over_h100(nlohmann::json::object());
  node.erase("name");
  EXPECT_THAT(node_complaint(node), StartsWith("node.json#: missing /name; add it"));
}

TEST(Base, KeepsItsTablesWholeOrNotAtAll) {
  const TemporaryFolder folder;
  folder.write("small.json", small_node());
  const auto load = [&](nlohmann::json differences) {
    nlohmann::json node = {{"schema", "trivium.hardware/1"}, {"name", "mine"}, {"base", "small.json"}, {"devices", 8}};
    node["sources"] = {{"/devices", "test"}};
    node.update(differences, true);
    return load_node(folder.write("mine.json", node));
  };
  const Node replaced = load({{"allreduce_bus", {{"8", "3 GB/s"}}}, {"sources", {{"/allreduce_bus", "test"}}}});
  EXPECT_EQ(replaced.allreduce_bus, (std::map<int, base::BytesPerSecond>{{8, base::BytesPerSecond(3e9)}}));
  EXPECT_TRUE(load({{"allreduce_bus", nullptr}}).allreduce_bus.empty());
}

// A value of the base that no longer fits is told with the base's name: it does not stand in the file.
TEST(Base, IsNamedWhereItsValueNoLongerFits) {
  const TemporaryFolder folder;
  const std::string file = folder.write("mine.json", {{"schema", "trivium.hardware/1"},
                                                      {"name", "mine"},
                                                      {"base", "gb200-nvl72"},  // hosts of four
                                                      {"devices", 66},
                                                      {"sources", {{"/devices", "test"}}}});
  EXPECT_THAT(input_error([&] { load_node(file); }),
              StartsWith(file + " (base gb200-nvl72)#/host_devices: must divide the devices of the node"));
}

TEST(Base, OfADeviceMayBeOneOfTheBasesOwnNode) {
  // Without a name or base the device's members are differences from the device of the node's base.
  const nlohmann::json slower =
      over_h100({{"device", {{"compute_scale", 0.5}}}, {"sources", {{"/device", "power cap"}}}});
  const Node node = node_from_json(slower, "node.json");
  EXPECT_EQ(node.device.compute_scale, 0.5);
  EXPECT_EQ(node.device.name, "h100-sxm-80gb");
  EXPECT_EQ(node.sources.at("/device/compute_scale"), "power cap");
  // With a base it is another device, and nothing of the H100 remains but the clocks under load of its nodes.
  const nlohmann::json other = over_h100({{"device", {{"base", "h200-sxm-141gb"}}}});
  nlohmann::json alone = to_json(load_node("h200")).at("device");
  alone["compute_scale"] = load_node("dgx-h100-80gb").device.compute_scale;
  EXPECT_EQ(to_json(node_from_json(other, "node.json")).at("device"), alone);
}

// Device files need no clocks under load: a node has those of its base, which were fitted to trainings, not 1.0.
TEST(Base, LeavesItsClocksUnderLoadToADeviceThatSaysNone) {
  const TemporaryFolder folder;
  const nlohmann::json cut = {{"schema", "trivium.device/1"},
                              {"name", "h100-cut"},
                              {"base", "h100-sxm-80gb"},
                              {"memory", "64 GiB"},
                              {"sources", {{"/memory", "nvidia-smi"}}}};
  folder.write("cut.json", cut);
  const auto node = [&](const char* device, const nlohmann::json& base) {
    nlohmann::json json = {{"schema", "trivium.hardware/1"}, {"name", "mine"}, {"device", device}, {"base", base}};
    if (!base.is_null()) return load_node(folder.write("mine.json", json));
    json = to_json(load_node("dgx-h100-80gb"));
    json["device"] = device;
    const nlohmann::json citations = json.at("sources");
    for (const auto& [pointer, citation] : citations.items()) {
      if (pointer.starts_with("/device/")) json["sources"].erase(pointer);
    }
    return load_node(folder.write("mine.json", json));
  };
  const double fitted = load_node("dgx-h100").device.compute_scale;
  ASSERT_NE(fitted, 1.0);
  EXPECT_EQ(node("cut.json", "dgx-h100").device.compute_scale, fitted);
  EXPECT_THAT(node("cut.json", "dgx-h100").sources.at("/device/compute_scale"), StartsWith("base dgx-h100: "));
  EXPECT_EQ(node("cut.json", nullptr).device.compute_scale, 1.0);
  EXPECT_EQ(node("cut.json", nullptr).sources.count("/device/compute_scale"), 1U);
  nlohmann::json throttled = cut;
  throttled["compute_scale"] = 0.6;
  throttled["sources"]["/compute_scale"] = "a log";
  folder.write("throttled.json", throttled);
  EXPECT_EQ(node("throttled.json", "dgx-h100").device.compute_scale, 0.6);
  EXPECT_EQ(node("throttled.json", nullptr).device.compute_scale, 0.6);
}

TEST(Base, OfADeviceFileIsWrittenOutAsANodesIs) {
  const TemporaryFolder folder;
  const nlohmann::json device = {{"schema", "trivium.device/1"},
                                 {"name", "h100-cut"},
                                 {"base", "h100-sxm-80gb"},
                                 {"memory", "64 GiB"},
                                 {"sources", {{"/memory", "nvidia-smi"}}}};
  folder.write("cut.json", device);
  const std::string file = folder.write("mine.json", over_h100({{"device", "cut.json"}}));
  const Node node = load_node(file);
  EXPECT_EQ(node.device.name, "h100-cut");
  EXPECT_EQ(node.device.memory.value(), 64 * 1073741824.0);
  EXPECT_EQ(node.device.multiprocessors, 132);
  EXPECT_EQ(node.sources.at("/device/memory"), "nvidia-smi");
  EXPECT_THAT(node.sources.at("/device/multiprocessors"), StartsWith("base h100-sxm-80gb: NVIDIA H100"));
  nlohmann::json round = device;
  round["base"] = "cut.json";
  const std::string cut = folder.write("cut.json", round);
  EXPECT_THAT(input_error([&] { load_node(file); }), StartsWith(cut + "#/base: bases go round in a circle: "));
  round["base"] = "h100";
  folder.write("cut.json", round);
  EXPECT_THAT(input_error([&] { load_node(file); }), StartsWith(cut + "#/base: unknown device \"h100\""));
}

// A template goes elsewhere, where a base of the profile's folder would not be found.
TEST(Base, OfATemplateIsWrittenOut) {
  const TemporaryFolder folder;
  folder.write("small.json", small_node());
  const std::string file =
      folder.write("mine.json", {{"schema", "trivium.hardware/1"}, {"name", "mine"}, {"base", "small.json"}});
  const nlohmann::json written = nlohmann::json::parse(node_template(file).dump());
  EXPECT_FALSE(written.contains("base"));
  EXPECT_EQ(node_from_json(written, "elsewhere.json").price.value(), 1.5);
}

TEST(Profile, NamesAllThatItLacksAtOnce) {
  nlohmann::json node = small_node();
  for (const char* member : {"collective_skew", "asynchronous_lanes"}) node.erase(member);
  node["sources"].erase("/collective_skew");
  node["intra"].erase("latency");
  node["device"].erase("kernel_issue");
  EXPECT_EQ(
      node_complaint(node),
      "node.json#: missing /device/kernel_issue, /intra/latency, /collective_skew, /asynchronous_lanes; add them, "
      "or name a profile as \"base\" (trivium profiles lists them)");
  EXPECT_EQ(node_complaint({{"schema", "trivium.hardware/1"}}),
            "node.json#: missing /name, /device, /devices, /topology, /intra, /adapters, /collective_skew, "
            "/asynchronous_lanes, /host_memory, /host_link, /overhead_power, /price; add them, or name a profile as "
            "\"base\" (trivium profiles lists them)");
}

TEST(Profile, OfADeviceNamesAllThatItLacksAtOnce) {
  const TemporaryFolder folder;
  const std::string device = folder.write("toy.json", {{"schema", "trivium.device/1"}, {"name", "toy"}});
  const std::string file = folder.write("mine.json", over_h100({{"device", "toy.json"}}));
  EXPECT_THAT(input_error([&] { load_node(file); }),
              StartsWith(device + "#: missing /kind, /peak, /memory, /reserved, /memory_bandwidth, "));
}

}  // namespace
}  // namespace trivium::hardware
