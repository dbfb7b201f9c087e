// Random valid actions: whatever a person does in whatever order, the window stands.
#include <gtest/gtest.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>
#include <fstream>
#include <random>

#include "gui/model/knobs.h"
#include "gui/window/main_window.h"
#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

constexpr int kDefaultSeconds = 60;
constexpr double kMostGrowth = 400.0 * 1024 * 1024;  // bytes: the largest timelines come and go
constexpr unsigned kSeed = 7;

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

class Hand {
 public:
  Hand(MainWindow& window, unsigned seed) : window_(window), random_(seed) {}

  /// One action; returns its name.
  std::string act() {
    static const std::vector<std::pair<const char*, void (Hand::*)()>> kActions{{"turn a knob", &Hand::turn_a_knob},
                                                                                {"turn a knob", &Hand::turn_a_knob},
                                                                                {"undo", &Hand::undo},
                                                                                {"redo", &Hand::redo},
                                                                                {"change view", &Hand::change_view},
                                                                                {"search", &Hand::search},
                                                                                {"cancel", &Hand::cancel},
                                                                                {"pin", &Hand::pin},
                                                                                {"use", &Hand::use},
                                                                                {"zoom", &Hand::zoom},
                                                                                {"click", &Hand::click},
                                                                                {"colour", &Hand::colour},
                                                                                {"move a stage", &Hand::move_stage},
                                                                                {"resize", &Hand::resize},
                                                                                {"cluster", &Hand::cluster},
                                                                                {"write files", &Hand::write_files},
                                                                                {"look back", &Hand::look_back},
                                                                                {"explain", &Hand::explain},
                                                                                {"wait", &Hand::wait}};
    const auto& [name, action] = kActions[pick(kActions.size())];
    (this->*action)();
    QCoreApplication::processEvents();
    return name;
  }

 private:
  std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

  void turn_a_knob() {
    const Knob& knob = knobs()[pick(knobs().size())];
    QComboBox& box = window_.knobs().knob(knob.field);
    box.setCurrentIndex(static_cast<int>(pick(static_cast<std::size_t>(box.count()))));
  }
  void undo() { window_.document().history().undo(); }
  void redo() { window_.document().history().redo(); }
  void change_view() { window_.show_view(static_cast<MainWindow::View>(pick(MainWindow::kViews))); }
  void search() { window_.plans().search(); }
  void cancel() { window_.plans().cancel(); }
  void pin() {
    if (pick(2) == 0) return window_.plans().unpin_all();
    window_.plans().pin_current();
    window_.plans().pin(static_cast<int>(pick(5)));
  }
  void use() { window_.plans().use(static_cast<int>(pick(30))); }
  void zoom() {
    const Qt::Key keys[] = {Qt::Key_Plus, Qt::Key_Minus, Qt::Key_F, Qt::Key_Left, Qt::Key_W, Qt::Key_D};
    QTest::keyClick(&window_.widget_of(window_.view()), keys[pick(6)]);
    QTest::keyClick(&window_.cluster().canvas(), keys[pick(6)]);
  }
  void click() {
    QWidget& view = window_.widget_of(window_.view());
    QTest::mouseClick(&window_.cluster().canvas(), Qt::LeftButton, {},
                      QPoint(static_cast<int>(pick(600)), static_cast<int>(pick(400))));
    if (view.width() > 10) view.grab();
  }
  void colour() { window_.cluster().canvas().set_colour(static_cast<DeviceColour>(pick(8))); }
  void move_stage() { window_.cluster().move_stage(static_cast<int>(pick(6)), static_cast<int>(pick(6))); }
  void resize() { window_.resize(900 + static_cast<int>(pick(900)), 600 + static_cast<int>(pick(500))); }
  void cluster() {
    const char* clusters[] = {"dgx-a100-80gb:1", "dgx-a100-80gb:2", "dgx1-v100-32gb:2", "generic-cpu:1",
                              "dgx-a100-80gb:2+dgx1-v100-32gb:2"};
    window_.start_panel().cluster().setCurrentText(clusters[pick(5)]);
    window_.start_panel().apply("cluster");
  }
  void write_files() {
    const QString file = folder_.filePath("out");
    switch (pick(6)) {
      case 0:
        window_.export_picture(file + ".svg");
        break;
      case 1:
        window_.export_table(file + ".csv");
        break;
      case 2:
        window_.export_report(file + ".html");
        break;
      case 3:
        window_.export_launch(file, planner::launch::trainers()[pick(planner::launch::trainers().size())].trainer);
        break;
      case 4:
        window_.save(file + ".json");
        break;
      default:
        window_.open(file + ".json");
    }
  }
  void look_back() {
    TimelineCanvas& canvas = window_.timeline().canvas();
    const auto& rows = canvas.layout_of_rows().rows();
    switch (pick(4)) {
      case 0:
        canvas.show_only(rows.empty() ? std::nullopt : std::optional(rows[pick(rows.size())].id));
        break;
      case 1:
        canvas.show_only(std::nullopt);
        break;
      case 2:
        canvas.back();
        break;
      default:
        canvas.forward();
    }
  }
  void explain() {
    if (pick(2) == 0) window_.explain().jitter().setValue(1 + static_cast<double>(pick(20)));
    window_.plans().explain_why_not_current();
    window_.validate();
  }
  void wait() { QTest::qWait(static_cast<int>(pick(120))); }

  MainWindow& window_;
  std::mt19937 random_;
  QTemporaryDir folder_;
};

TEST(RandomActions, LeaveTheWindowStandingAndTrue) {
  const unsigned seed = qEnvironmentVariableIsSet("TRIVIUM_SOAK_SEED")
                            ? static_cast<unsigned>(qEnvironmentVariableIntValue("TRIVIUM_SOAK_SEED"))
                            : kSeed;
  MainWindow window;
  window.resize(1400, 900);
  window.begin_example(staged_scenario());
  window.show();
  Hand hand(window, seed);
  QElapsedTimer clock;
  clock.start();
  int actions = 0;
  double warm = 0;  // after the first third
  for (; clock.elapsed() < 1000 * asked_seconds(); ++actions) {
    if (warm == 0 && clock.elapsed() > 1000 * asked_seconds() / 3) warm = resident();
    SCOPED_TRACE("seed " + std::to_string(seed) + ", action " + std::to_string(actions) + ": " + hand.act());
  }
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.document().settled(); }, 120'000));
  // What is shown is what playing the scenario by itself gives.
  const Evaluation alone = evaluate(window.document().scenario(), Depth::kFull);
  EXPECT_EQ(window.document().evaluation()->refusal, alone.refusal);
  EXPECT_EQ(window.document().evaluation()->figures.iteration_ps, alone.figures.iteration_ps);
  EXPECT_LT(resident() - warm, kMostGrowth);
  std::printf("%d actions with seed %u; %.0f MiB after a third, %.0f MiB at the end\n", actions, seed,
              warm / edge::kMiB, resident() / edge::kMiB);
}

}  // namespace
}  // namespace trivium::gui
