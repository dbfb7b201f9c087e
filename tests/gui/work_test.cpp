// Huge files, and windows that close while they work.
#include <fmt/format.h>

#include <QApplication>
#include <memory>

#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

constexpr int kSpans = 300'000;

void write_trace(const QString& path, int spans) {
  std::ofstream out(path.toStdString());
  out << "{\"traceEvents\":[\n";
  for (int i = 0; i < spans; ++i) {
    out << fmt::format(R"({{"ph":"X","name":"forward mb{} layer {} matmul","pid":{},"tid":0,"ts":{}.5,"dur":5.25}})",
                       i % 8, i % 12, i % 16, i / 16 * 6)
        << (i + 1 < spans ? ",\n" : "\n");
  }
  out << "]}\n";
}

TEST_F(Window, OpensAHugeTraceAndAnotherInTheMiddle) {
  begin(small_scenario());
  write_trace(file("huge.json"), kSpans);
  write_trace(file("small.json"), 32);
  ASSERT_TRUE(window_.open(file("huge.json")));
  ASSERT_TRUE(window_.open(file("small.json")));  // before the first is read
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.timeline().is_busy(); }, kPatienceMs));
  EXPECT_EQ(window_.timeline().canvas().timelines().at(0).spans->size(), 32U);
  ASSERT_TRUE(window_.open(file("huge.json")));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.timeline().is_busy(); }, kPatienceMs));
  EXPECT_EQ(window_.timeline().canvas().timelines().at(0).spans->size(), static_cast<unsigned>(kSpans));
  EXPECT_FALSE(window_.grab().isNull());
}

TEST_F(Window, RefusesHugeFilesThatAreNoPlans) {
  begin(small_scenario());
  std::string numbers = "[0";
  for (int i = 0; i < 2'000'000; ++i) numbers += ",1";
  write("numbers.json", numbers + "]");
  write("zeros.json", std::string(32'000'000, '\0'));
  Project project{staged_scenario(), {}, {}, {}};
  project.scenario.file.job.plan.stage_layers.assign(200'000, 1);
  write("layers.json", project_text(project));
  for (const char* name : {"numbers.json", "zeros.json"}) {
    EXPECT_FALSE(window_.open(file(name))) << name;
    EXPECT_THAT(plain(window_.banner().text()), HasSubstr(name));
    EXPECT_LT(window_.banner().text().size(), 1000);
  }
  // A plan with so many stages is a plan, but not one that can run.
  EXPECT_TRUE(window_.open(file("layers.json")));
  ASSERT_TRUE(settles());
  EXPECT_THAT(window_.document().evaluation()->refusal, HasSubstr("200000 entries"));
  EXPECT_FALSE(window_.grab().isNull());
}

/// What a window may be in the middle of when it is closed.
class ClosedWindow : public Window, public testing::WithParamInterface<const char*> {};

TEST_P(ClosedWindow, LetsGoOfWhatItWasDoing) {
  const std::string work = GetParam();
  write("text.txt", std::string(40'000, 'a'));
  if (work == "trace") write_trace(file("huge.json"), kSpans);
  auto window = std::make_unique<MainWindow>();
  window->begin_example(work == "run" || work == "validation" ? local_example() : example_scenario());
  window->show();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window->document().settled(); }, kPatienceMs));
  if (work == "plan_control") window->plan_controls().plan_control("recompute").setCurrentText("none");
  if (work == "search") window->plans().search();
  if (work == "explanation") window->show_view(MainWindow::kExplain);
  if (work == "timeline") window->show_view(MainWindow::kTimeline);
  if (work == "trace") window->open(file("huge.json"));
  if (work == "pins") window->plans().set_pinned({window->document().scenario().file.job.plan});
  if (work == "run" || work == "validation") {
    window->runs().corpus().setText(file("text.txt"));
    window->runs().steps().setValue(work == "run" ? 100'000 : 2);
    window->runs().start();
    ASSERT_TRUE(window->runs().is_running());
    if (work == "run") {
      ASSERT_TRUE(QTest::qWaitFor([&] { return !window->runs().loss().lines().empty(); }, kPatienceMs));
    } else {
      ASSERT_TRUE(QTest::qWaitFor([&] { return !window->runs().is_running(); }, kPatienceMs));
      window->validate();
    }
  }
  QTest::qWait(20);
  answer_question(work == "run" ? "End the run" : nullptr);
  window->close();
  EXPECT_FALSE(window->isVisible());
  window.reset();
  QTest::qWait(20);  // what is still queued finds nobody
  for (const QWidget* left : QApplication::topLevelWidgets()) EXPECT_FALSE(left->isVisible());
}

INSTANTIATE_TEST_SUITE_P(Window, ClosedWindow,
                         testing::Values("plan_control", "search", "explanation", "timeline", "trace", "pins", "run",
                                         "validation"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace trivium::gui
