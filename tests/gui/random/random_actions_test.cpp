// Random valid actions: whatever a person does in whatever order, the window stands, shows what is true and lets go of
// what it no longer needs.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <QTest>
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/units.h"
#include "gui/look/theme.h"
#include "tests/gui/random/hand.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

constexpr int kDefaultSeconds = 20;  // `./dev soak gui` takes an hour
constexpr unsigned kSeed = 7;
constexpr int kRests = 20;                // in all, evenly over the time
constexpr double kMostGrowth = 48 << 20;  // bytes between two rests: kept costs of kernels, layouts of text

int asked_seconds() {
  bool is_number = false;
  const int seconds = qEnvironmentVariableIntValue("TRIVIUM_SOAK_SECONDS", &is_number);
  return is_number && seconds > 0 ? seconds : kDefaultSeconds;
}

/// Memory of this process, bytes.
double resident() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, pages = 0;
  statm >> all >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// What was allocated and not given back, bytes; 0 where another allocator stands in (the sanitizers').
double in_use() {
  malloc_trim(0);
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

TEST(RandomActions, LeaveTheWindowStandingAndTrue) {
  const unsigned seed = qEnvironmentVariableIsSet("TRIVIUM_SOAK_SEED")
                            ? static_cast<unsigned>(qEnvironmentVariableIntValue("TRIVIUM_SOAK_SEED"))
                            : kSeed;
  apply_theme(Theme::kLight);  // as the program does when it starts
  MainWindow window;
  window.resize(1400, 900);
  window.begin_example(staged_scenario());
  window.show();
  Hand hand(window, seed);
  QElapsedTimer clock;
  clock.start();
  const qint64 all_ms = 1000LL * asked_seconds();
  std::vector<double> rests;  // bytes in use at each
  int actions = 0;
  for (; clock.elapsed() < all_ms; ++actions) {
    if (clock.elapsed() * kRests >= all_ms * static_cast<qint64>(rests.size() + 1)) {
      hand.rest();
      rests.push_back(in_use());
      std::printf("%6.0f s, %7d actions: %5.0f MiB in use, %5.0f MiB resident\n", 1e-3 * double(clock.elapsed()),
                  actions, rests.back() / base::kMiB, resident() / base::kMiB);
      std::fflush(stdout);
    }
    const std::string name = hand.act();
    if (qEnvironmentVariableIsSet("TRIVIUM_SOAK_TALK")) std::fprintf(stderr, "%d %s\n", actions, name.c_str());
  }
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.document().settled(); }, 120'000));
  {  // What is shown is what simulating the scenario by itself gives.
    const Evaluation alone = evaluate(window.document().scenario(), Depth::kFull);
    EXPECT_EQ(window.document().evaluation()->refusal, alone.refusal);
    EXPECT_EQ(window.document().evaluation()->figures.iteration_ps, alone.figures.iteration_ps);
  }
  hand.rest();
  const double end = in_use();
  std::printf("%d actions with seed %u; %.0f MiB in use and %.0f MiB resident at the end\n", actions, seed,
              end / base::kMiB, resident() / base::kMiB);
  // The first third warms up.
  ASSERT_GE(rests.size(), 3U);
  const auto warm = rests.begin() + static_cast<std::ptrdiff_t>(rests.size() / 3);
  EXPECT_LT(end - *std::min_element(warm, rests.end()), kMostGrowth);
}

}  // namespace
}  // namespace trivium::gui
