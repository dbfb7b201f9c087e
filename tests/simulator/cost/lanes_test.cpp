// How long a segment keeps a lane.
#include "simulator/cost/lanes.h"

#include <gtest/gtest.h>

namespace trivium::simulator {
namespace {

using program::Lane;

program::Op op_on(Lane lane, int after = -1) {
  program::Op op;
  op.lane = lane;
  op.after.front() = after;
  return op;
}

// A collective of an earlier segment, then in this one: kernels of 10 and 20, a collective of 50 after the first
// kernel, a kernel of 5 that waits for it, and a last collective of 40 that nothing here waits for.
TEST(HeldBy, CountsCollectivesThatKernelsOfTheSegmentWaitFor) {
  program::Body body;
  body.ops = {op_on(Lane::kTensor),  op_on(Lane::kCompute),    op_on(Lane::kTensor, 1),
              op_on(Lane::kCompute), op_on(Lane::kCompute, 2), op_on(Lane::kTensor, 4)};
  const std::vector<std::int64_t> ps{100, 10, 50, 20, 5, 40};
  const program::Segment segment{"layer 0", 1, 6};
  EXPECT_EQ(held_by(body, ps, segment, Lane::kCompute, false), 10 + 50 + 5);
  // On one lane all of it is one after the other.
  EXPECT_EQ(held_by(body, ps, segment, Lane::kCompute, true), 10 + 50 + 20 + 5 + 40);
}

// What waits for no kernel of the segment may have begun before it: an exchange of 100 during earlier segments, and
// what follows it on its lane.
TEST(HeldBy, LeavesOutWhatMayHaveBegunBefore) {
  program::Body body;
  body.ops = {op_on(Lane::kTensor), op_on(Lane::kCompute), op_on(Lane::kTensor), op_on(Lane::kCompute, 2)};
  const std::vector<std::int64_t> ps{100, 10, 50, 20};
  EXPECT_EQ(held_by(body, ps, {"layer 0", 0, 4}, Lane::kCompute, false), 10 + 20);
}

}  // namespace
}  // namespace trivium::simulator
