#include "planner/advice/nearest_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hardware_profiles/load.h"
#include "planner/search/search.h"
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

// However fast the answer is: what is named makes a hundredth more samples a second, and there comes a speed from which
// nothing does.
TEST(NearestBatch, IsNamedFromAHundredthOn) {
  SearchRequest request = small_problem();
  request.cluster.groups.front().node.devices = 3;
  request.job.training.global_batch = 64;
  request.fixed = {"tensor"};
  SearchResult result = search(request, 2, {}, {});
  ASSERT_FALSE(result.best.empty());
  const auto as_it_is = static_cast<double>(result.best.front().simulation.iteration_ps);
  int named = 0, none = 0;
  for (double factor = 1; factor > .7; factor -= .03) {
    result.best.front().simulation.iteration_ps = std::llround(as_it_is * factor);
    const auto near = nearest_batch(request, result, {});
    ++(near ? named : none);
    if (near) {
      EXPECT_GE(near->gain, .01);
    }
  }
  EXPECT_GT(named, 0);
  EXPECT_GT(none, 3);
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
