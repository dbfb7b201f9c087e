// Which layouts of a space overlap tensor collectives: those whose groups the hardware lets, and all of them.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "planner/bound/evaluate.h"
#include "planner/space/space.h"
#include "planner/space/trainers.h"
#include "simulator/placement/peer_buffers.h"

namespace trivium::planner {
namespace {

SearchRequest request_on(const std::string& cluster, const char* stack) {
  SearchRequest request;
  request.job.model = models::load_model("llama2-70b");  // 64 heads
  request.job.training.sequence = 4096;
  request.job.training.global_batch = 64;
  request.job.plan.stack = stack;
  request.job.plan.attention = program::Attention::kFlash;
  request.cluster = hardware::load_cluster(cluster);
  return request;
}

struct Overlapped {
  std::set<int> tensors;  // degrees that some layout overlaps
  int refused = 0;        // overlapped layouts that the simulator would refuse
  int missed = 0;         // placements of the space that could overlap and have no such layout
};

Overlapped overlapped_in(const SearchRequest& request) {
  Overlapped found;
  const Space space(request);
  for (const program::Plan& split : space.splits()) {
    if (split.tensor == 1) continue;
    std::set<std::string> with, all;
    for (const PlacementChoice& layout : space.layouts(split)) {
      all.insert(layout.placement);
      if (!layout.overlap_tensor) continue;
      with.insert(layout.placement);
      found.tensors.insert(split.tensor);
      found.refused += simulator::tensor_overlap_refused(planner::with(split, layout), request.cluster) ? 1 : 0;
    }
    for (const std::string& placement : all) {
      program::Plan plan = split;
      plan.placement = placement, plan.overlap.tensor = true;
      const bool may = !simulator::tensor_overlap_refused(plan, request.cluster);
      found.missed += may && !with.contains(placement) ? 1 : 0;
    }
  }
  return found;
}

using Degrees = std::set<int>;

TEST(Space, OverlapsTensorGroupsInsideNvlinkDomains) {
  for (const auto& [cluster, degrees] : {std::pair{"dgx-h100:4", Degrees{2, 4, 8}},
                                         {"dgx-h100:4x4", Degrees{2, 4}},
                                         {"gb200-nvl72:1x64", Degrees{2, 4, 8, 16, 32, 64}},
                                         {"gb200-nvl72:4x16", Degrees{2, 4, 8, 16}},
                                         {"dgx2-v100-32gb:2", Degrees{}},
                                         {"rtx-4090", Degrees{}},
                                         {"h100-pcie-80gb:2", Degrees{}}}) {
    SCOPED_TRACE(cluster);
    for (const char* stack : {"megatron-bridge", "torchtitan-fsdp2"}) {
      const Overlapped found = overlapped_in(request_on(cluster, stack));
      EXPECT_EQ(found.tensors, degrees) << stack;
      EXPECT_EQ(found.refused, 0) << stack;
      EXPECT_EQ(found.missed, 0) << stack;
    }
  }
}

// NCCL overlaps over any network: 32 devices, all of one group.
TEST(Space, OverlapsAnyTensorGroupsOfStacksThatUseNccl) {
  const Overlapped found = overlapped_in(request_on("h100-pcie-80gb:4", "trivium"));
  EXPECT_EQ(found.tensors, (Degrees{2, 4, 8, 16, 32}));
  EXPECT_EQ(found.missed, 0);
}

// One kind of the two has no peer buffers; a trainer that puts stages in order uses both.
TEST(Space, OverlapsOnUnlikeNodesWhatAllOfThemCan) {
  EXPECT_EQ(overlapped_in(request_on("dgx-a100-80gb:1+dgx1-v100-32gb:1", "megatron-core")).tensors, Degrees{});
  EXPECT_EQ(overlapped_in(request_on("dgx-a100-80gb:1+dgx-h100:1", "megatron-core")).missed, 0);
}

// A value that the user fixes stays, so that its refusal has a reason.
TEST(Space, KeepsAFixedOverlapAndSaysWhyNot) {
  SearchRequest request = request_on("rtx-4090", "megatron-core");
  request.fixed = {"overlap.tensor"};
  request.job.plan.overlap.tensor = true;
  EXPECT_GT(overlapped_in(request).refused, 0);
}

}  // namespace
}  // namespace trivium::planner
