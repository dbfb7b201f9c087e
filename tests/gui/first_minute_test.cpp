// What someone meets who opens the program for the first time.
#include <QDockWidget>
#include <QListWidget>
#include <QMenuBar>
#include <QStatusBar>
#include <QTabBar>
#include <nlohmann/json.hpp>

#include "gui/look/marked.h"
#include "gui/window/import_dialog.h"
#include "hardware_profiles/load.h"
#include "planner/launch/launch.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;
using testing::Not;

class FirstMinute : public Window {
 protected:
  void SetUp() override {
    Window::SetUp();
    window_.resize(1280, 720);
    window_.begin_example(small_scenario());
    window_.show_start_page();
    window_.show();
  }
  QDockWidget& dock(const char* name) { return *window_.findChild<QDockWidget*>(name); }
};

TEST_F(FirstMinute, TheStartPageLeadsToExamples) {
  EXPECT_TRUE(window_.shows_start_page());
  EXPECT_TRUE(dock("job").isHidden());
  window_.start_page().example(1).click();
  EXPECT_FALSE(window_.shows_start_page());
  EXPECT_FALSE(dock("job").isHidden());
  EXPECT_EQ(window_.document().scenario().file.job.model.name, "gpt3-13b");
}

TEST_F(FirstMinute, AnOwnClusterIsSearchedAtOnce) {
  StartPage& page = window_.start_page();
  page.model().setCurrentText("gpt2-124m");
  page.kind().setCurrentText("dgx-a100-80bg");
  page.nodes().setValue(1);
  page.batch().setText("16");
  page.plan_own().click();
  EXPECT_FALSE(page.wrong().isHidden());
  EXPECT_THAT(plain(page.wrong().text()), HasSubstr("did you mean"));
  EXPECT_TRUE(window_.shows_start_page());
  page.kind().setCurrentText("dgx-a100-80gb");
  page.plan_own().click();
  EXPECT_EQ(window_.view(), MainWindow::kPlans);
  EXPECT_EQ(window_.document().scenario().cluster.name, "dgx-a100-80gb:1");
  EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 16);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  EXPECT_FALSE(window_.plans().plans().empty());
}

// The command is that of a plan which the page hides; files of one name are told apart.
TEST_F(FirstMinute, TheStartPageSaysNothingOfWhatItHides) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kCluster);
  window_.show();
  EXPECT_TRUE(window_.statusBar()->isVisible());
  window_.show_start_page();
  EXPECT_FALSE(window_.statusBar()->isVisible());
  window_.start_page().set_recent({"/here/run.json", "/there/run.json", "/here/plan.json"});
  const auto* recent = window_.start_page().findChild<QListWidget*>();
  ASSERT_EQ(recent->count(), 3);
  EXPECT_EQ(recent->item(0)->text(), "/here/run.json");
  EXPECT_EQ(recent->item(1)->text(), "/there/run.json");
  EXPECT_EQ(recent->item(2)->text(), "plan.json");
  window_.start_page().example(1).click();
  EXPECT_TRUE(window_.statusBar()->isVisible());
}

TEST_F(FirstMinute, RecentFilesStandOnThePageAndOpen) {
  write("seen.json", program::to_json(staged_scenario().file).dump());
  ASSERT_TRUE(window_.open(file("seen.json")));
  window_.begin_example(small_scenario());
  window_.show_start_page();
  QListWidget& recent = window_.start_page().recent();
  ASSERT_GE(recent.count(), 1);
  EXPECT_EQ(plain(recent.item(0)->text()), "seen.json");
  QTest::mouseClick(recent.viewport(), Qt::LeftButton, {}, recent.visualItemRect(recent.item(0)).center());
  EXPECT_EQ(plan().pipeline, 4);
  EXPECT_FALSE(window_.shows_start_page());
}

TEST_F(FirstMinute, LaunchFilesOfOtherTrainersBecomePlans) {
  const Scenario staged = staged_scenario();
  for (const auto trainer : {planner::launch::Trainer::kMegatron, planner::launch::Trainer::kDeepspeed,
                             planner::launch::Trainer::kTorchtitan}) {
    const auto name = std::string(planner::launch::version_of(trainer).name);
    const auto launch = planner::launch::export_plan(staged.file.job, staged.cluster, trainer);
    write(QString::fromStdString(name), launch.text);
    window_.import_launch_file(file(QString::fromStdString(name)));
    auto* dialog = window_.findChild<ImportDialog*>();
    ASSERT_NE(dialog, nullptr);
    dialog->cluster().setText("nowhere:3");
    EXPECT_FALSE(dialog->take().isEnabled()) << name;
    dialog->cluster().setText("dgx-a100-80gb:1");
    ASSERT_TRUE(dialog->take().isEnabled()) << name << ": " << plain(dialog->said().text());
    dialog->take().click();
    EXPECT_EQ(plan().pipeline, 4) << name;
    EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 16) << name;
    window_.begin_example(small_scenario());
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.findChild<ImportDialog*>() == nullptr; }, kPatienceMs));
  }
}

TEST_F(FirstMinute, EveryViewFitsIntoASmallScreen) {
  for (int v = 0; v < MainWindow::kViews; ++v) {
    window_.show_view(static_cast<MainWindow::View>(v));
    QTest::qWait(1);
    const QSize least = window_.minimumSizeHint().expandedTo(window_.minimumSize());
    EXPECT_LE(least.width(), 1280) << plain(MainWindow::view_names()[v]);
    EXPECT_LE(least.height(), 720) << plain(MainWindow::view_names()[v]);
  }
  window_.show_runs();
  QTest::qWait(1);
  EXPECT_EQ(window_.size(), QSize(1280, 720));
}

TEST_F(FirstMinute, TheSearchStaysInSightOnASmallScreen) {
  window_.show_view(MainWindow::kCluster);
  window_.show_runs();  // takes room from the docks as well
  QTest::qWait(20);
  QPushButton& search = window_.start_panel().search();
  EXPECT_TRUE(window_.rect().contains(QRect(search.mapTo(&window_, QPoint(0, 0)), search.size())));
  EXPECT_EQ(search.visibleRegion().boundingRect().size(), search.size());
  int primary = 0;
  for (const QPushButton* button : window_.findChildren<QPushButton*>()) {
    primary += dynamic_cast<const PrimaryButton*>(button) != nullptr && button->isVisible() ? 1 : 0;
  }
  EXPECT_EQ(primary, 1);
}

TEST_F(FirstMinute, WhatIsWrongStandsBelowItsFieldInSight) {
  window_.show_view(MainWindow::kCluster);
  StartPanel& panel = window_.start_panel();
  panel.cluster().setCurrentText("my-h200-cluster:64");
  panel.apply("cluster");
  QTest::qWait(20);
  EXPECT_TRUE(panel.is_marked("cluster"));
  EXPECT_FALSE(panel.is_marked("model"));
  QLabel& note = panel.note("cluster");
  const QRect field(panel.cluster().mapTo(&window_, QPoint(0, 0)), panel.cluster().size());
  const QRect words(note.mapTo(&window_, QPoint(0, 0)), note.size());
  EXPECT_LE(std::abs(words.top() - field.bottom()), 4);
  EXPECT_EQ(note.visibleRegion().boundingRect().size(), note.size());
  panel.cluster().setCurrentText("dgx-a100-80gb:1");
  panel.apply("cluster");
  EXPECT_FALSE(panel.is_marked("cluster"));
  EXPECT_EQ(plain(panel.wrong("cluster")), "");
}

TEST_F(FirstMinute, AltAndALetterBelongToTheMenus) {
  QSet<QKeySequence> of_menus;
  for (const QAction* action : window_.menuBar()->actions()) of_menus << QKeySequence::mnemonic(action->text());
  EXPECT_EQ(of_menus.size(), 6);
  QStringList takers;
  const auto look = [&](const QString& words) {
    if (of_menus.contains(QKeySequence::mnemonic(words))) takers << words;
  };
  for (const QWidget* widget : window_.findChildren<QWidget*>()) {
    if (const auto* label = qobject_cast<const QLabel*>(widget); label && label->buddy()) look(label->text());
    if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) look(button->text());
    if (const auto* tabs = qobject_cast<const QTabBar*>(widget)) {
      for (int t = 0; t < tabs->count(); ++t) look(tabs->tabText(t));
    }
  }
  EXPECT_EQ(plain(takers.join(", ")), "");
}

TEST_F(FirstMinute, AltEOpensTheMenuOfEdits) {
  window_.show_view(MainWindow::kPlans);
  window_.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
  QMenu* edit = window_.menuBar()->actions().at(1)->menu();
  bool opened = false;
  QObject::connect(edit, &QMenu::aboutToShow, [&] {
    opened = true;
    QTimer::singleShot(0, edit, &QMenu::close);
  });
  QTest::keyClick(&window_, Qt::Key_E, Qt::AltModifier);
  EXPECT_TRUE(QTest::qWaitFor([&] { return opened; }, 1000));
}

TEST_F(FirstMinute, KeysGoToTheCanvasOfTheViewThatOpened) {
  ASSERT_TRUE(settles());
  window_.activateWindow();
  window_.show_view(MainWindow::kTimeline);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  TimelineCanvas& canvas = window_.timeline().canvas();
  const std::int64_t before = canvas.end_ps() - canvas.begin_ps();
  ASSERT_NE(QApplication::focusWidget(), nullptr);
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_W);
  EXPECT_LT(canvas.end_ps() - canvas.begin_ps(), before);
  EXPECT_EQ(plain(window_.timeline().search_field().text()), "");
  window_.show_view(MainWindow::kCluster);
  const double zoom = window_.cluster().canvas().zoom();
  QTest::keyClick(QApplication::focusWidget(), Qt::Key_W);
  EXPECT_GT(window_.cluster().canvas().zoom(), zoom);
  QTabBar* tabs = window_.findChild<QTabWidget*>("views")->tabBar();
  QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(MainWindow::kTimeline).center());
  EXPECT_TRUE(canvas.hasFocus());
}

TEST_F(FirstMinute, ThisMachineIsMeasuredByAButton) {
  ASSERT_FALSE(QFileInfo::exists(QString::fromStdString(hardware::this_machine_path())));
  window_.show_view(MainWindow::kCluster);
  EXPECT_TRUE(window_.start_panel().unmeasured().isHidden());
  ASSERT_TRUE(window_.begin(local_example(), "example"));
  EXPECT_FALSE(window_.start_panel().unmeasured().isHidden());
  ASSERT_TRUE(settles());
  const double guessed = window_.document().evaluation()->figures.iteration_s;
  window_.start_panel().measure().click();
  ASSERT_TRUE(window_.runs().is_running());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.runs().is_running(); }, kPatienceMs));
  EXPECT_TRUE(window_.start_panel().unmeasured().isHidden()) << plain(window_.runs().state().text());
  ASSERT_TRUE(settles());
  EXPECT_NE(window_.document().evaluation()->figures.iteration_s, guessed);
  QFile::remove(QString::fromStdString(hardware::this_machine_path()));
}

}  // namespace
}  // namespace trivium::gui
