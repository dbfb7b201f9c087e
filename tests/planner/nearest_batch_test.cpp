#include "planner/nearest_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware_profiles/load.h"
#include "tests/planner/problems.h"

namespace trivium::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// 192 is 3 x 64, and 1,024 a multiple of 64: multiples of 192. 24 is 3 x 8, and 100 a multiple of 4: multiples of 12.
TEST(BatchesNear, AreMultiplesOfTheOddPart) {
  EXPECT_THAT(batches_near(1024, 192), ElementsAre(960, 1152));
  EXPECT_THAT(batches_near(100, 24), ElementsAre(96, 108));
  EXPECT_THAT(batches_near(1152, 192), IsEmpty());
  EXPECT_THAT(batches_near(7, 64), IsEmpty());
}

// 2 is nearer to 3 than to 0; 1 is more than half away.
TEST(BatchesNear, AreNoFurtherAwayThanHalf) {
  EXPECT_THAT(batches_near(2, 3), ElementsAre(3));
  EXPECT_THAT(batches_near(1, 3), IsEmpty());
}

// Three devices and 64 samples: four layers are cut 2 + 1 + 1 at best, where with 63 samples each device takes a third.
TEST(NearestBatch, IsOneThatAllDevicesShare) {
  SearchRequest request = small_problem();
  request.cluster.groups.front().node.devices = 3;
  request.job.training.global_batch = 64;
  request.fixed = {"tensor"};
  const SearchResult result = search(request, 2, {}, {});
  ASSERT_FALSE(result.best.empty());
  const auto near = nearest_batch(request, result, {});
  ASSERT_TRUE(near);
  EXPECT_EQ(near->global_batch, 63);
  EXPECT_EQ(near->best.plan.ranks(), 3);
  const double before = result.best.front().simulation.iteration_s / 64;
  const double after = near->best.simulation.iteration_s / 63;
  EXPECT_NEAR(near->gain, before / after - 1, 1e-9);
  EXPECT_GE(near->gain, .01);
}

// Where the answer is faster than whatever 63 or 66 samples allow.
TEST(NearestBatch, IsNotNamedWhereNothingIsGained) {
  SearchRequest request = small_problem();
  request.cluster.groups.front().node.devices = 3;
  request.job.training.global_batch = 64;
  SearchResult result = search(request, 2, {}, {});
  ASSERT_FALSE(result.best.empty());
  result.best.front().simulation.iteration_ps /= 100;  // as if it were faster than any
  EXPECT_FALSE(nearest_batch(request, result, {}));
}

TEST(NearestBatch, IsNotSoughtWhereTheDevicesAreCounted) {
  SearchRequest request = small_problem();
  request.cluster.groups.front().node.devices = 3;
  request.job.training.global_batch = 64;
  request.ranks = 3;
  const SearchResult result = search(request, 2, {}, {});
  EXPECT_FALSE(nearest_batch(request, result, {}));
}

}  // namespace
}  // namespace trivium::planner
