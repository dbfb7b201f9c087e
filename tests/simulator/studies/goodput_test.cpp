// Goodput under failures: by hand, against one another, and against failures drawn one by one.
#include "simulator/studies/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trivium::simulator {
namespace {

using base::Seconds;

Failures of(double mtbf, double checkpoint, double restart) {
  Failures f;
  f.device_mtbf = Seconds(mtbf * 100);
  f.devices = 100;
  f.checkpoint = Seconds(checkpoint);
  f.restart = Seconds(restart);
  return f;
}

TEST(Goodput, TheWholeFailsAsOftenAsAllItsDevicesTogether) { EXPECT_DOUBLE_EQ(of(1000, 1, 1).mtbf().value(), 1000); }

// sqrt(2 · 50 · 10,000) = 1,000.  C / 2M = 50 / 20,000 = .0025, its root .05: 1,000 (1 + .05/3 + .0025/9) - 50 =
// 966.944….
TEST(Goodput, IntervalsByYoungAndDaly) {
  const Failures f = of(10'000, 50, 300);
  EXPECT_DOUBLE_EQ(young_interval(f).value(), 1000);
  EXPECT_NEAR(daly_interval(f).value(), 966.94444, 1e-5);
  EXPECT_DOUBLE_EQ(daly_interval(of(10, 20, 0)).value(), 10);
}

// t = 1,000, C = 50, R = 300, M = 10,000: 1,000 / (10,000 e^.03 (e^.105 - 1)) = 1,000 / (10,304.545 · .1107106) =
// .876561.
TEST(Goodput, IsWhatIsKeptOfTheTime) {
  EXPECT_NEAR(goodput(of(10'000, 50, 300), Seconds(1000)), .876561, 1e-6);
  EXPECT_NEAR(goodput(of(1e15, 50, 300), Seconds(950)), .95, 1e-6);  // without failures only the checkpoints cost
}

TEST(Goodput, NoIntervalIsBetterThanTheBestAndDalyComesClose) {
  for (const double mtbf : {500.0, 5'000.0, 50'000.0, 5e6}) {
    for (const double checkpoint : {1.0, 30.0, 200.0}) {
      const Failures f = of(mtbf, checkpoint, 120);
      const Seconds best = best_interval(f);
      const double most = goodput(f, best);
      for (const double factor : {.5, .9, .99, 1.01, 1.1, 2.0}) EXPECT_GE(most, goodput(f, best * factor));
      EXPECT_NEAR(daly_interval(f) / best, 1, .01) << mtbf << " " << checkpoint;  // Daly gives .2 % for C < M / 2
    }
  }
}

// 20,000 intervals: the time lost has a relative spread of about one over the root of the number of failures (2,200).
TEST(Goodput, IsWhatFailuresDrawnOneByOneLeave) {
  const Failures f = of(10'000, 50, 300);
  const double drawn = simulated_goodput(f, Seconds(1000), Seconds(2e7), 7);
  EXPECT_NEAR(drawn, goodput(f, Seconds(1000)), .01);
  EXPECT_EQ(drawn, simulated_goodput(f, Seconds(1000), Seconds(2e7), 7));
  EXPECT_NE(drawn, simulated_goodput(f, Seconds(1000), Seconds(2e7), 8));
}

// Also where restarts fail themselves: M = 600, R = 300.
TEST(Goodput, CountsFailuresOfRestartsAndCheckpoints) {
  const Failures f = of(600, 60, 300);
  EXPECT_NEAR(simulated_goodput(f, Seconds(250), Seconds(5e6), 3), goodput(f, Seconds(250)), .005);
}

// Ten million checkpoints between two failures, and restarts that all fail: neither takes longer to draw.
TEST(Goodput, TinyIntervalsAndHopelessRestartsEnd) {
  const Failures fine = of(10'000, 1e-5, 300);
  EXPECT_NEAR(simulated_goodput(fine, Seconds(1e-3), Seconds(1e7), 7), goodput(fine, Seconds(1e-3)), .01);
  EXPECT_EQ(simulated_goodput(of(1e-3, 50, 600), Seconds(1000), Seconds(1e7), 7), 0);
  EXPECT_EQ(simulated_goodput(of(1e-3, 50, 600), Seconds(1000), Seconds(0), 7), 0);
}

// The best of the intervals drawn is where the formula says, as far as the draws can tell.
TEST(Goodput, TheBestIntervalIsBestAmongDrawnFailures) {
  const Failures f = of(10'000, 50, 300);
  const Seconds best = best_interval(f);
  const double most = simulated_goodput(f, best, Seconds(5e7), 11);
  EXPECT_GT(most, simulated_goodput(f, best * .4, Seconds(5e7), 11));
  EXPECT_GT(most, simulated_goodput(f, best * 2.5, Seconds(5e7), 11));
}

}  // namespace
}  // namespace trivium::simulator
