#include "simulator/placement/peer_buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "simulator/cost/supported.h"

namespace trivium::simulator {
namespace {

using testing::HasSubstr;

program::Plan overlapped(int tensor, int pipeline, int data) {
  program::Plan plan;
  plan.tensor = tensor, plan.pipeline = pipeline, plan.data = data;
  plan.sequence_parallel = plan.overlap.tensor = true;
  plan.stack = "megatron-bridge";
  return plan;
}

std::string refused(const program::Plan& plan, const std::string& cluster) {
  const auto no = tensor_overlap_refused(plan, hardware::load_cluster(cluster));
  return no ? no->rule + ": " + no->reason : "";
}

TEST(PeerBuffers, ReachOneNode) {
  EXPECT_EQ(refused(overlapped(8, 16, 2), "dgx-h100-80gb:32"), "");
  EXPECT_EQ(refused(overlapped(16, 16, 1), "dgx-h100-80gb:32"),
            "tensor-overlap: groups of 16 tensor ranks lie on 2 nodes of dgx-h100-80gb (8 devices each); overlap in "
            "user buffers or symmetric memory reaches no further than one. Give --overlap-tensor=false, or a smaller "
            "tensor that keeps every group in one node");
}

// Ranks 0, 8, 16 and 24 make up a tensor group where eight replicas come first.
TEST(PeerBuffers, FollowThePlacement) {
  program::Plan plan = overlapped(4, 1, 8);
  EXPECT_EQ(refused(plan, "dgx-h100-80gb:4"), "");
  plan.placement = "data-tensor-context-pipeline";
  EXPECT_THAT(refused(plan, "dgx-h100-80gb:4"), HasSubstr("groups of 4 tensor ranks lie on 4 nodes"));
  plan.data = 2;  // ranks 0, 2, 4, 6
  EXPECT_EQ(refused(plan, "dgx-h100-80gb:1"), "");
}

// 72 is a multiple of 8 but not of 16: ranks 64 to 79 lie on both racks. Of racks of 64 devices none does.
TEST(PeerBuffers, ReachARackOfSeveralHosts) {
  EXPECT_EQ(refused(overlapped(8, 1, 18), "gb200-nvl72:2"), "");
  EXPECT_THAT(refused(overlapped(16, 1, 9), "gb200-nvl72:2"),
              HasSubstr("groups of 16 tensor ranks lie on 2 NVLink domains of gb200-nvl72 (72 devices each)"));
  EXPECT_EQ(refused(overlapped(16, 1, 8), "gb200-nvl72:2x64"), "");
  EXPECT_EQ(refused(overlapped(16, 1, 4), "gb200-nvl72:2"), "");  // 64 ranks of the first rack
}

TEST(PeerBuffers, NeedNvlinkAndAmpere) {
  for (const char* cluster : {"rtx-4090", "l40s", "h100-pcie-80gb", "a100-pcie-80gb"}) {
    EXPECT_THAT(refused(overlapped(4, 1, 2), cluster), HasSubstr("joined by PCIe, without NVLink. Give --overlap-tensor"
                                                                 "=false"))
        << cluster;
  }
  EXPECT_THAT(refused(overlapped(8, 1, 2), "dgx2-v100-32gb"), HasSubstr("older than compute capability 8.0"));
}

// NCCL runs next to weight gradients on any device and over any network; cores share one memory.
TEST(PeerBuffers, AreNoMatterToStacksThatOverlapWithNccl) {
  for (const char* stack : {"trivium", "megatron-2022", "nanotron", "paxml"}) {
    program::Plan plan = overlapped(16, 1, 2);
    plan.stack = stack;
    EXPECT_EQ(refused(plan, "dgx-h100-80gb:4"), "") << stack;
    EXPECT_EQ(refused(plan, "dgx1-v100-32gb:4"), "") << stack;
  }
  EXPECT_EQ(refused(overlapped(4, 1, 1), "generic-cpu"), "");
}

// On two kinds of nodes the plan says which hold its tensor groups.
TEST(PeerBuffers, LookAtTheNodesThatThePlanNames) {
  program::Plan plan = overlapped(8, 2, 1);
  plan.stage_nodes = {0, 0};
  EXPECT_EQ(refused(plan, "dgx-a100-80gb:2+dgx1-v100-32gb:2"), "");
  plan.stage_nodes = {0, 1};
  EXPECT_THAT(refused(plan, "dgx-a100-80gb:2+dgx1-v100-32gb:2"), HasSubstr("of dgx1-v100-32gb its devices are older"));
}

TEST(Supported, RefusesWhatTheHardwareCannotDo) {
  program::Job job;
  job.model = models::load_model("mixtral-8x7b");
  job.training.sequence = 4096;
  job.training.global_batch = 64;
  job.plan = overlapped(2, 1, 4);
  job.plan.overlap.tensor = false;
  job.plan.expert = 4;
  const auto rule = [&](const char* cluster) {
    const auto no = unsupported_by(job, hardware::load_cluster(cluster));
    return no ? no->rule : "";
  };
  EXPECT_EQ(rule("dgx-a100-80gb"), "");
  job.plan.expert_dispatch = program::ExpertDispatch::kDeepEp;
  EXPECT_EQ(rule("dgx-a100-80gb"), "");
  EXPECT_EQ(rule("a100-pcie-80gb"), "expert-dispatch");
  job.plan.expert_dispatch = program::ExpertDispatch::kStack;
  job.plan.stack = "megatron-bridge-flex";
  EXPECT_EQ(rule("a100-pcie-80gb"), "expert-dispatch");
  job.plan.stack = "megatron-bridge";
  for (const auto recipe : {program::Fp8::kDelayed, program::Fp8::kBlock, program::Fp8::kMxfp8}) {
    job.plan.fp8 = recipe;
    EXPECT_EQ(rule("dgx-a100-80gb"), "fp8") << name_of(recipe);
  }
  job.plan.fp8 = program::Fp8::kNone;
  job.plan.overlap.tensor = true;
  EXPECT_EQ(rule("l40s"), "tensor-overlap");
}

}  // namespace
}  // namespace trivium::simulator
