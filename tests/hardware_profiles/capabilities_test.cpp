// The table of what hardware can do against shipped profiles, and docs/reference/capabilities.md against the table.
#include "hardware_profiles/capabilities.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "hardware_profiles/load.h"
#include "tests/golden.h"

namespace trivium::hardware {
namespace {

// CUDA's list of GPUs by compute capability (developer.nvidia.com/cuda-gpus): V100 7.0, A100 8.0, RTX 4090 and L40S
// 8.9, H100 9.0, B200 and GB200 10.0. NVLink: none on L40S, RTX 4090 and PCIe servers without bridges (data sheets).
TEST(Capabilities, AreThoseOfTheGenerations) {
  struct Known {
    const char* node;
    bool peers, fp8, mxfp8, flash;
  };
  for (const Known& known : {Known{"dgx2-v100-32gb", false, false, false, false},
                             {"dgx1-v100-16gb", false, false, false, false},
                             {"dgx-a100-80gb", true, false, false, true},
                             {"a100-pcie-80gb", false, false, false, true},
                             {"rtx-4090", false, true, false, true},
                             {"l40s", false, true, false, true},
                             {"h100-pcie-80gb", false, true, false, true},
                             {"dgx-h100-80gb", true, true, false, true},
                             {"dgx-b200", true, true, true, true},
                             {"gb200-nvl72", true, true, true, true}}) {
    SCOPED_TRACE(known.node);
    const Node node = load_node(known.node);
    EXPECT_EQ(has(node, Capability::kPeerBuffers), known.peers);
    EXPECT_EQ(has(node, Capability::kTokenDispatch), known.peers);
    EXPECT_EQ(has(node, Capability::kFp8Tensor), known.fp8);
    EXPECT_EQ(has(node, Capability::kMxfp8), known.mxfp8);
    EXPECT_EQ(has(node, Capability::kFlashAttention), known.flash);
  }
  EXPECT_EQ(why_no_peer_buffers(load_node("rtx-4090")), "its devices are joined by PCIe, without NVLink");
  EXPECT_EQ(why_no_peer_buffers(load_node("dgx2-v100-32gb")), "its devices are older than compute capability 8.0");
}

TEST(Capabilities, StandInTheOrderOfTheirNames) {
  int index = 0;
  for (const CapabilityRule& rule : capability_table()) EXPECT_EQ(static_cast<int>(rule.capability), index++);
  EXPECT_EQ(index, static_cast<int>(Capability::kDisk) + 1);
}

std::string page() {
  std::string text =
      "# What hardware can do\n\n"
      "One table, `hardware_profiles/capabilities.cpp`, says what a node must have for a field of a plan.\n"
      "What a row forbids the search leaves out, `trivium simulate` and `trivium export` refuse, and files\n"
      "for other trainers never say. What a trainer adds is a rule of its own\n"
      "(`planner/space/trainers.cpp`). This page is written from the table\n"
      "(`tests/hardware_profiles/capabilities_test.cpp`).\n\n"
      "| capability | used by | needs of the profile | source |\n|---|---|---|---|\n";
  for (const CapabilityRule& rule : capability_table()) {
    text += fmt::format("| {} | {} | {} | {} |\n", rule.name, rule.used, rule.needs, rule.source);
  }
  text +=
      "\nPeer buffers reach as far as one NVLink domain: a node, or a rack of several hosts\n"
      "(`host_devices`). A tensor group that lies on two domains, by its size or by `placement`, cannot\n"
      "use them. Stacks that overlap tensor collectives with NCCL on a stream of its own, Trivium's runtime\n"
      "among them, need none. Cores emulate what they lack and are not held to the table.\n\n"
      "| shipped profile |";
  for (const CapabilityRule& rule : capability_table()) text += fmt::format(" {} |", rule.name);
  text += "\n|---|";
  for (std::size_t i = 0; i < capability_table().size(); ++i) text += "---|";
  text += "\n";
  for (const std::string& name : shipped_profiles()) {
    const Node node = load_node(name);
    if (node.device.kind != DeviceKind::kGpu) continue;
    text += fmt::format("| {} |", name);
    for (const CapabilityRule& rule : capability_table()) text += rule.holds(node) ? " yes |" : " |";
    text += "\n";
  }
  return text;
}

TEST(Capabilities, AreDocumentedAsTheTableSays) {
  expect_golden(std::filesystem::path(TRIVIUM_SOURCE_DIR) / "docs/reference/capabilities.md", page());
}

}  // namespace
}  // namespace trivium::hardware
