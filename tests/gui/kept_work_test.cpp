// Nothing that is not saved goes without a question, and what another file pushed aside comes back.
#include <QDockWidget>
#include <QFile>
#include <QSplitter>
#include <map>
#include <nlohmann/json.hpp>

#include "gui/window/kept_layout.h"
#include "program/plan/job_json.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSave = "Save";
constexpr const char* kDrop = "Don't save";
constexpr const char* kStay = "Cancel";

class KeptWork : public Window {
 protected:
  /// A plan file of two stages, and a window on a project of four with an edit that is not saved.
  void begin_with_an_edit() {
    Scenario other = staged_scenario();
    other.file.job.plan.pipeline = 2;
    other.file.job.plan.data = 2;
    write("other.json", program::to_json(other.file).dump());
    begin(staged_scenario());
    ASSERT_TRUE(window_.save(file("mine.json")));
    choose(window_.plan_controls().plan_control("micro_batch"), "4");
    ASSERT_TRUE(window_.isWindowModified());
  }
};

TEST_F(KeptWork, OpeningAsksWhereChangesAreNotSaved) {
  begin_with_an_edit();
  const QString* asked = answer_question(kStay);
  EXPECT_FALSE(window_.open_asking(file("other.json")));
  EXPECT_THAT(plain(*asked), HasSubstr("mine.json has changes that are not saved"));
  EXPECT_EQ(plan().pipeline, 4);
  EXPECT_EQ(plan().micro_batch, 4);
  answer_question(kSave);
  EXPECT_TRUE(window_.open_asking(file("other.json")));
  EXPECT_EQ(plan().pipeline, 2);
  EXPECT_EQ(read_project(plain(file("mine.json"))).scenario.file.job.plan.micro_batch, 4);
  EXPECT_FALSE(window_.isWindowModified());
  answer_question(nullptr);  // nothing is unsaved now
  EXPECT_TRUE(window_.open_asking(file("mine.json")));
}

TEST_F(KeptWork, WhatAFilePushedAsideComesBackWithUndo) {
  begin_with_an_edit();
  ASSERT_TRUE(settles());
  window_.plans().pin_current();
  answer_question(kDrop);
  ASSERT_TRUE(window_.open_asking(file("other.json")));
  EXPECT_THAT(plain(window_.windowTitle()), HasSubstr("other.json"));
  EXPECT_TRUE(window_.plans().pinned().empty());
  ASSERT_TRUE(window_.document().history().canUndo());
  window_.document().history().undo();
  EXPECT_EQ(plan().micro_batch, 4);
  EXPECT_THAT(plain(window_.windowTitle()), HasSubstr("mine.json"));
  EXPECT_TRUE(window_.isWindowModified());
  EXPECT_TRUE(QTest::qWaitFor([&] { return window_.plans().pinned().size() == 1; }, kPatienceMs));
  window_.document().history().undo();  // and the edit before it
  EXPECT_EQ(plan().micro_batch, 1);
  window_.document().history().redo();
  window_.document().history().redo();
  EXPECT_EQ(plan().pipeline, 2);
  EXPECT_FALSE(window_.isWindowModified());
}

TEST_F(KeptWork, ANewExampleAsksAndCanBeUndone) {
  begin_with_an_edit();
  answer_question(kStay);
  EXPECT_FALSE(window_.begin(small_scenario(), "example"));
  EXPECT_EQ(plan().micro_batch, 4);
  answer_question(kDrop);
  EXPECT_TRUE(window_.begin(small_scenario(), "example"));
  EXPECT_EQ(plan().pipeline, 1);
  window_.document().history().undo();
  EXPECT_EQ(plan().micro_batch, 4);
}

TEST_F(KeptWork, ClosingAsksForAFileAndKeepsWhatHasNone) {
  begin_with_an_edit();
  const QString* asked = answer_question(kStay);
  window_.close();
  EXPECT_TRUE(window_.isVisible());
  EXPECT_THAT(plain(*asked), HasSubstr("close the window"));
  answer_question(kDrop);
  window_.close();
  EXPECT_FALSE(window_.isVisible());
  {
    MainWindow unnamed;
    unnamed.begin_example(staged_scenario());
    unnamed.show();
    unnamed.plan_controls().plan_control("micro_batch").setCurrentText("2");
    answer_question(nullptr);
    unnamed.close();
    EXPECT_FALSE(unnamed.isVisible());
  }
  MainWindow next;
  ASSERT_TRUE(next.restore_autosave());
  EXPECT_EQ(next.document().scenario().file.job.plan.micro_batch, 2);
}

TEST_F(KeptWork, AWindowOnAFileLeavesUnsavedWorkOfOthersAlone) {
  {
    MainWindow before;
    before.begin_example(staged_scenario());
    before.show();
    before.plan_controls().plan_control("micro_batch").setCurrentText("2");
    before.close();
  }
  ASSERT_TRUE(window_.has_autosave());
  QFile::remove(QString::fromStdString(earlier_work_path()));
  begin(small_scenario());
  window_.close();  // nothing changed here: what the other left stays
  EXPECT_TRUE(window_.has_autosave());
  window_.show();
  choose(window_.plan_controls().plan_control("micro_batch"), "2");
  ASSERT_TRUE(QTest::qWaitFor([&] { return QFile::exists(QString::fromStdString(earlier_work_path())); }, kPatienceMs));
  window_.show_start_page();
  EXPECT_FALSE(window_.start_page().earlier().isHidden());
  answer_question(kDrop);
  window_.start_page().earlier().click();
  EXPECT_EQ(plan().pipeline, 4);
  EXPECT_EQ(plan().micro_batch, 2);
  EXPECT_FALSE(window_.shows_start_page());
}

TEST_F(KeptWork, ARunInProgressIsAskedAboutBeforeTheWindowGoes) {
  Scenario scenario = local_example();
  scenario.file.job.plan.data = 1;
  begin(scenario);
  write("text.txt", std::string(40'000, 'a'));
  window_.runs().corpus().setText(file("text.txt"));
  window_.runs().steps().setValue(100'000);
  window_.runs().start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().loss().lines().empty(); }, kPatienceMs));
  const QString* asked = answer_question(kStay);
  window_.close();
  EXPECT_TRUE(window_.isVisible());
  EXPECT_TRUE(window_.runs().is_running());
  EXPECT_THAT(plain(*asked), HasSubstr("of 100,000 steps done"));
  EXPECT_THAT(plain(*asked), HasSubstr("No checkpoints are kept"));
  window_.runs().stop();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
}

TEST_F(KeptWork, ARunThatEndsAfterOtherWorkCameDoesNotTakeItsPlace) {
  Scenario scenario = local_example();
  scenario.file.job.plan.data = 1;
  begin(scenario);
  write("text.txt", std::string(40'000, 'a'));
  window_.runs().corpus().setText(file("text.txt"));
  window_.runs().steps().setValue(3);
  window_.runs().start();
  ASSERT_TRUE(window_.begin(staged_scenario(), "other work"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
  EXPECT_EQ(plan().pipeline, 4);
  EXPECT_THAT(plain(window_.banner().text()), HasSubstr("The run of other work has ended"));
}

TEST(KeptLayout, ComesBackToTheSplitterOfItsName) {
  const auto start = [](const std::function<void(MainWindow&)>& look) {
    MainWindow window;
    window.begin_example(small_scenario());
    window.resize(1400, 900);
    window.show();
    look(window);
    window.close();
  };
  const auto splitters = [](MainWindow& window) {
    std::map<std::string, Qt::Orientation> found;
    for (const QSplitter* splitter : window.findChildren<QSplitter*>()) {
      EXPECT_FALSE(splitter->objectName().isEmpty());
      found[plain(splitter->objectName())] = splitter->orientation();
    }
    return found;
  };
  std::map<std::string, Qt::Orientation> first;
  start([&](MainWindow& window) {
    first = splitters(window);
    window.show_runs();
    window.validate();
    window.show_runs();
  });
  EXPECT_EQ(first.size(), 12U);
  for (int i = 0; i < 3; ++i) {  // docks that were opened change the order in which splitters are found
    start([&](MainWindow& window) {
      EXPECT_EQ(splitters(window), first) << i;
      window.show_view(MainWindow::kCompare);
      QTest::qWait(1);
      auto* compare = window.findChild<QSplitter*>("compare canvas and table");
      ASSERT_EQ(compare->sizes().size(), 2);
      EXPECT_GT(compare->sizes()[0], 0) << i;
      EXPECT_GT(compare->sizes()[1], 0) << i;
      auto* log = window.findChild<QSplitter*>("run charts and log");
      EXPECT_EQ(log->count(), 3);
      for (const int size : log->sizes()) EXPECT_GT(size, 0) << i;
    });
  }
}

}  // namespace
}  // namespace trivium::gui
