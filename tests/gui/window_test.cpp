// The real window, driven as a person would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <QImage>
#include <QMessageBox>
#include <QSignalSpy>
#include <QSplitter>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gui/model/cluster_edit.h"
#include "gui/model/project.h"
#include "gui/views/plans_model.h"
#include "gui/window/kept_layout.h"
#include "program/plan/job_json.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

TEST_F(Window, ShowsTheFiguresOfItsPlan) {
  begin(staged_scenario());
  EXPECT_NE(window_.headline().figure(0), "–");
  EXPECT_THAT(plain(window_.headline().state().text()), HasSubstr("fits"));
  EXPECT_EQ(window_.memory().bars().bars().size(), 4U);
  EXPECT_FALSE(window_.memory().curve().lines().at(0).points.empty());
}

TEST_F(Window, TellsTheKeysThatNoMenuShows) {
  begin(small_scenario());
  const auto actions = window_.findChildren<QAction*>();
  const auto keys = std::find_if(actions.begin(), actions.end(),
                                 [](const QAction* action) { return action->shortcut() == QKeySequence("F1"); });
  ASSERT_NE(keys, actions.end());
  (*keys)->trigger();
  auto* box = window_.findChild<QMessageBox*>();
  ASSERT_NE(box, nullptr);
  EXPECT_THAT(plain(box->text()), testing::AllOf(HasSubstr("W S"), HasSubstr("Shift+Backspace")));
  box->close();
  EXPECT_TRUE(QTest::qWaitFor([&] { return window_.findChild<QMessageBox*>() == nullptr; }, kPatienceMs));
}

TEST_F(Window, KnobsTurnThePlanAndCanBeUndone) {
  begin(staged_scenario());
  const QString before = window_.headline().figure(0);
  choose(window_.plan_controls().plan_control("recompute"), "full");
  EXPECT_EQ(plan().recompute, program::Recompute::kFull);
  ASSERT_TRUE(settles());
  EXPECT_NE(window_.headline().figure(0), before);
  EXPECT_THAT(plain(window_.headline().state().text()), HasSubstr("against the plan before"));
  window_.document().history().undo();
  EXPECT_EQ(plan().recompute, program::Recompute::kNone);
  EXPECT_EQ(window_.plan_controls().plan_control("recompute").currentText(), "none");
  ASSERT_TRUE(settles());
  EXPECT_EQ(window_.headline().figure(0), before);
  window_.document().history().redo();
  EXPECT_EQ(plan().recompute, program::Recompute::kFull);
}

TEST_F(Window, SaysWhatIsKeptInTheHostsMemory) {
  begin(staged_scenario());
  EXPECT_THAT(plain(window_.memory().reason().text()), testing::Not(HasSubstr("host")));
  choose(window_.plan_controls().plan_control("offload.optimizer"), "host");
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.memory().reason().text()), HasSubstr("In the host's memory a rank keeps"));
  EXPECT_FALSE(window_.plan_controls().plan_control("expert").isEnabled());  // a dense model has one choice
}

TEST_F(Window, SaysInWordsWhatCannotRun) {
  begin(staged_scenario());
  window_.plan_controls().fill().setChecked(false);
  choose(window_.plan_controls().plan_control("data"), "8");
  ASSERT_TRUE(settles());
  EXPECT_THAT(plain(window_.headline().state().text()), HasSubstr("cannot run"));
  EXPECT_THAT(plain(window_.start_panel().verdict().text()), HasSubstr("64 ranks"));
  EXPECT_TRUE(window_.memory().bars().bars().empty());
  EXPECT_FALSE(window_.export_trace(file("t.json")));
}

TEST_F(Window, TheStartPanelChecksWhatIsTyped) {
  begin(staged_scenario());
  StartPanel& panel = window_.start_panel();
  type(panel.field("global_batch"), "sixteen");
  EXPECT_THAT(plain(panel.wrong("global_batch")), HasSubstr("whole number"));
  EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 16);
  type(panel.field("global_batch"), "32");
  EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 32);
  type(panel.field("memory"), "40 GiB");
  EXPECT_DOUBLE_EQ(window_.document().scenario().cluster.groups[0].node.device.memory.value(), 40 * base::kGiB);
  type(panel.field("memory"), "40 parsecs");
  EXPECT_THAT(plain(panel.wrong("memory")), HasSubstr("GiB"));
  type(panel.field("fixed"), "tensor, zero_stage, layers by chunk");
  EXPECT_EQ(window_.document().scenario().fixed, (std::set<std::string>{"tensor", "zero_stage", "stage_layers"}));
  EXPECT_EQ(panel.field("fixed").text().toStdString(), "Layers by chunk, Tensor parallel, ZeRO stage");
  type(panel.field("fixed"), "tensr");
  EXPECT_THAT(plain(panel.wrong("fixed")), HasSubstr("Tensor parallel"));
  EXPECT_EQ(window_.document().scenario().fixed.size(), 3U);
  panel.cluster().setCurrentText("dgx-a100-80bg:1");
  panel.apply("cluster");
  EXPECT_THAT(plain(panel.wrong("cluster")), HasSubstr("did you mean"));
  panel.cluster().setCurrentText("dgx-a100-80gb:2");
  panel.apply("cluster");
  EXPECT_EQ(window_.document().scenario().cluster.devices(), 16);
  EXPECT_EQ(plan().data, 2);  // tensor 2 x pipeline 4 leave two replicas of 16 devices
}

TEST_F(Window, SaysWhatIsWrongWhileItIsTyped) {
  begin(staged_scenario());
  StartPanel& panel = window_.start_panel();
  QLineEdit& batch = panel.field("global_batch");
  batch.setFocus();
  batch.selectAll();
  QTest::keyClicks(&batch, "16x");
  EXPECT_THAT(plain(panel.wrong("global_batch")), HasSubstr("whole number"));
  QTest::keyClick(&batch, Qt::Key_Backspace);
  EXPECT_EQ(plain(panel.wrong("global_batch")), "");
  EXPECT_EQ(window_.document().scenario().file.job.training.global_batch, 16);
}

TEST_F(Window, SearchesPinsComparesAndUses) {
  begin(small_scenario());
  PlansView& plans = window_.plans();
  window_.show_view(MainWindow::kPlans);
  plans.search();
  EXPECT_TRUE(plans.is_searching());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !plans.is_searching(); }, kPatienceMs));
  ASSERT_GE(plans.plans().size(), 3U);
  EXPECT_THAT(plain(plans.status().text()), HasSubstr("none of the space is faster"));
  ASSERT_NE(plans.rejected().item(0, 2), nullptr);
  EXPECT_FALSE(plans.rejected().item(0, 2)->text().isEmpty());
  EXPECT_FALSE(plans.scatter().front().empty());

  plans.table().sortByColumn(PlansModel::kMemory, Qt::AscendingOrder);
  const auto* shown = plans.table().model();
  for (int r = 1; r < shown->rowCount(); ++r) {
    EXPECT_LE(shown->index(r - 1, PlansModel::kMemory).data(PlansModel::kSortRole).toDouble(),
              shown->index(r, PlansModel::kMemory).data(PlansModel::kSortRole).toDouble());
  }
  plans.filter().setText("full");
  for (int r = 0; r < shown->rowCount(); ++r) {
    EXPECT_THAT(plain(shown->index(r, 0).data().toString()), HasSubstr("full"));
  }
  plans.filter().clear();
  EXPECT_EQ(shown->rowCount(), static_cast<int>(plans.plans().size()));

  plans.pin(0);
  plans.pin(1);
  plans.pin(1);
  EXPECT_EQ(plans.pinned_rows().size(), 2U);
  bool any_bold = false;
  for (int r = 0; r < plans.comparison().rowCount(); ++r) any_bold |= plans.comparison().item(r, 1)->font().bold();
  EXPECT_TRUE(any_bold);
  plans.explain_why_not(2);
  EXPECT_THAT(plain(plans.why().text()), HasSubstr("slower than"));
  plans.explain_why_not_current();
  ASSERT_TRUE(QTest::qWaitFor([&] { return plans.why().text().contains("takes"); }, kPatienceMs));
  plans.use(1);
  EXPECT_EQ(program::to_json(plan()), program::to_json(plans.plans()[1].plan));
  ASSERT_TRUE(settles());
  EXPECT_EQ(window_.document().evaluation()->figures.iteration_s, plans.plans()[1].iteration_s);
}

TEST_F(Window, CancelsASearchInTheMiddleWithWhatItHas) {
  begin(small_scenario());
  window_.begin_example(example_scenario());
  PlansView& plans = window_.plans();
  plans.search();
  plans.cancel();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !plans.is_searching(); }, kPatienceMs));
  EXPECT_THAT(plain(plans.status().text()), HasSubstr("stopped early"));
}

TEST_F(Window, MayBeClosedDuringASearch) {
  auto window = std::make_unique<MainWindow>();
  window->begin_example(example_scenario());
  window->show();
  window->plans().search();
  QTest::qWait(50);
  window->close();
  window.reset();
  SUCCEED();
}

TEST_F(Window, SelectsZoomsAndPansTheCluster) {
  begin(with_cluster(staged_scenario(), "dgx-a100-80gb:4"));
  ClusterCanvas& canvas = window_.cluster().canvas();
  const auto middle = [&](int device) {
    const Box& box = canvas.map().place_of(device);
    return canvas.to_screen(box.x + box.width / 2, box.y + box.height / 2).toPoint();
  };
  QTest::mouseClick(&canvas, Qt::LeftButton, {}, middle(5));
  EXPECT_EQ(canvas.selected(), 5);
  EXPECT_THAT(plain(canvas.tip_of(5)), HasSubstr("Rank 5"));
  EXPECT_EQ(canvas.label_of(9), "idle");
  // Rank 5 is tensor rank 1 of stage 2: its partner is 4, and 1, 3 and 7 are the same tensor rank of the other stages.
  EXPECT_STREQ(canvas.lit_by(4)->words, "tensor");
  EXPECT_STREQ(canvas.lit_by(7)->words, "pipeline");
  EXPECT_EQ(canvas.lit_by(0), nullptr);
  const double before = canvas.zoom();
  const QPointF held = middle(5);
  QTest::keyClick(&canvas, Qt::Key_Plus);
  EXPECT_GT(canvas.zoom(), before);
  QTest::keyClick(&canvas, Qt::Key_Left);
  QTest::keyClick(&canvas, Qt::Key_F);
  EXPECT_DOUBLE_EQ(canvas.zoom(), before);
  EXPECT_EQ(middle(5), held.toPoint());
  QTest::keyClick(&canvas, Qt::Key_Escape);
  EXPECT_EQ(canvas.selected(), std::nullopt);
}

TEST_F(Window, DraggingAStageMovesItToAnotherNodeAtOnce) {
  Scenario scenario = with_cluster(staged_scenario(), "dgx-a100-80gb:2+dgx1-v100-32gb:2");
  program::Plan& wanted = scenario.file.job.plan;
  wanted.precision = program::DType::kFp16;
  wanted.tensor = 4;
  wanted.data = 2;
  begin(scenario);
  const double before = window_.document().evaluation()->figures.iteration_s;
  ClusterCanvas& canvas = window_.cluster().canvas();
  const auto middle = [&](int device) {
    const Box& box = canvas.map().place_of(device);
    return canvas.to_screen(box.x + box.width / 2, box.y + box.height / 2).toPoint();
  };
  const QPoint from = middle(24), to = middle(0);
  QTest::mousePress(&canvas, Qt::LeftButton, {}, from);
  QTest::mouseMove(&canvas, (from + to) / 2);
  QTest::mouseMove(&canvas, to);
  // Moves of QTest carry no buttons on every platform: say it again as the window system would.
  QMouseEvent drag(QEvent::MouseMove, to, canvas.mapToGlobal(to), Qt::NoButton, Qt::LeftButton, {});
  QCoreApplication::sendEvent(&canvas, &drag);
  QTest::mouseRelease(&canvas, Qt::LeftButton, {}, to);
  EXPECT_EQ(window_.document().scenario().cluster.groups[0].node.name, "dgx1-v100-32gb");
  ASSERT_TRUE(settles());
  EXPECT_NE(window_.document().evaluation()->figures.iteration_s, before);
  window_.document().history().undo();
  EXPECT_EQ(window_.document().scenario().cluster.groups[0].node.name, "dgx-a100-80gb");
}

TEST_F(Window, ExplainsOnlyWhenLookedAt) {
  begin(staged_scenario());
  EXPECT_FALSE(window_.explain().is_current());
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_FALSE(window_.explain().words().toPlainText().isEmpty());
  EXPECT_EQ(window_.explain().machine().gains().size(), 6U);
  EXPECT_FALSE(window_.explain().plans().gains().empty());
}

TEST_F(Window, SaysHowSureItIsAndHowMuchThatHangsOnChance) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kExplain);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  ASSERT_TRUE(window_.explain().spread().has_value());
  const report::Spread usual = *window_.explain().spread();
  EXPECT_EQ(window_.explain().band().band()->low, usual.p5_s);
  window_.explain().jitter().setValue(20);
  EXPECT_FALSE(window_.explain().is_current());
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  EXPECT_GT(window_.explain().spread()->p95_s - window_.explain().spread()->p5_s, usual.p95_s - usual.p5_s);
  choose(window_.plan_controls().plan_control("tensor"), "1");  // the old band says nothing of another plan
  EXPECT_FALSE(window_.explain().is_current());
}

TEST_F(Window, SavesAndReloadsAProject) {
  begin(staged_scenario());
  window_.plans().pin_current();
  choose(window_.plan_controls().plan_control("micro_batch"), "2");
  ASSERT_TRUE(window_.save(file("a.json")));
  MainWindow second;
  ASSERT_TRUE(second.open(file("a.json")));
  EXPECT_EQ(second.document().scenario().file.job.plan.micro_batch, 2);
  EXPECT_EQ(second.document().scenario().file.job.plan.pipeline, 4);
  ASSERT_TRUE(QTest::qWaitFor([&] { return second.plans().pinned_rows().size() == 1; }, kPatienceMs));
  EXPECT_EQ(second.recent_files().value(0), QFileInfo(file("a.json")).absoluteFilePath());
}

TEST_F(Window, RestoresWhatACrashLeft) {
  begin(staged_scenario());
  choose(window_.plan_controls().plan_control("micro_batch"), "4");
  const auto is_saved = [&] {
    return window_.has_autosave() && read_project(autosave_path()).scenario.file.job.plan.micro_batch == 4;
  };
  ASSERT_TRUE(QTest::qWaitFor(is_saved, kPatienceMs));
  MainWindow next;  // the first is still open, as after a crash nobody closed it
  ASSERT_TRUE(next.restore_autosave());
  EXPECT_EQ(next.document().scenario().file.job.plan.micro_batch, 4);
}

TEST_F(Window, RefusesBrokenFilesInOneLineAndKeepsItsPlan) {
  begin(staged_scenario());
  write("not.json", "{\"schema\": ");
  write("other.json", "{\"schema\": \"trivium.models/1\"}");
  write("run.json", "{\"schema\": \"trivium.run/1\", \"steps\": 3}");
  write("deep.json", std::string(100'000, '['));
  for (const char* name : {"not.json", "other.json", "run.json", "deep.json", "missing.json"}) {
    window_.banner().clear();
    EXPECT_FALSE(window_.open(file(name))) << name;
    EXPECT_THAT(plain(window_.banner().text()), HasSubstr(name));
  }
  EXPECT_EQ(plan().pipeline, 4);
  EXPECT_FALSE(window_.save("/proc/nowhere/a.json"));
}

TEST_F(Window, ShowsAHugeClusterAndAHugePlan) {
  begin(small_scenario());
  window_.start_panel().cluster().setCurrentText("dgx-a100-80gb:12500");
  window_.start_panel().apply("cluster");
  EXPECT_EQ(window_.document().scenario().cluster.devices(), 100'000);
  ASSERT_TRUE(settles());
  EXPECT_FALSE(window_.cluster().canvas().grab().isNull());
  window_.document().history().undo();
  EXPECT_EQ(window_.document().scenario().cluster.devices(), 8);
}

TEST_F(Window, ExportsPicturesTablesTracesAndAReport) {
  begin(staged_scenario());
  window_.show_view(MainWindow::kMemory);
  ASSERT_TRUE(window_.export_picture(file("m.png")));
  const QSize seen = window_.widget_of(MainWindow::kMemory).size();
  EXPECT_EQ(QImage(file("m.png")).width(), seen.width());
  EXPECT_GT(QImage(file("m.png")).height(), seen.height() + 20);  // what it is of stands above
  ASSERT_TRUE(window_.export_picture(file("m.svg")));
  QFile svg(file("m.svg"));
  ASSERT_TRUE(svg.open(QIODevice::ReadOnly));
  EXPECT_TRUE(svg.readAll().contains("gpt2-124m on dgx-a100-80gb:1"));
  EXPECT_FALSE(window_.export_picture(file("m.bmp")));
  ASSERT_TRUE(window_.export_table(file("m.csv")));
  ASSERT_TRUE(window_.export_trace(file("t.json")));
  std::ifstream trace(file("t.json").toStdString());
  EXPECT_TRUE(nlohmann::json::parse(trace).contains("traceEvents"));
  QSignalSpy shown(&window_.timeline(), &TimelineView::shown);
  EXPECT_TRUE(window_.open(file("t.json")));  // and reads its own traces
  EXPECT_EQ(window_.view(), MainWindow::kTimeline);
  EXPECT_TRUE(QTest::qWaitFor([&] { return !shown.isEmpty(); }, kPatienceMs));
  window_.show_view(MainWindow::kMemory);
  ASSERT_TRUE(window_.export_plan(file("p.json")));
  ASSERT_TRUE(window_.export_report(file("r.html")));
  EXPECT_TRUE(window_.is_reporting());  // nobody opened Explain
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.is_reporting(); }, kPatienceMs));
  EXPECT_TRUE(window_.banner().text().contains("r.html")) << plain(window_.banner().text());
  QFile report(file("r.html"));
  ASSERT_TRUE(report.open(QIODevice::ReadOnly));
  const QByteArray page = report.readAll();
  EXPECT_TRUE(page.contains("data:image/png;base64,"));
  EXPECT_TRUE(page.contains("Random variation"));
  const Insight reasons = insight(*window_.document().evaluation(), {});  // though nobody opened Explain
  ASSERT_FALSE(reasons.sentences.empty());
  EXPECT_TRUE(page.contains(QString::fromStdString(reasons.sentences[0]).toHtmlEscaped().toUtf8()));
  EXPECT_EQ(window_.view(), MainWindow::kMemory);
}

TEST_F(Window, ExportsWhatLaunchesThePlanInOtherTrainers) {
  begin(staged_scenario());
  for (const planner::launch::TrainerVersion& known : planner::launch::trainers()) {
    const std::string name(known.name);
    const QString path = file(QString::fromStdString(name));
    ASSERT_TRUE(window_.export_launch(path, known.trainer)) << name;
    QFile written(path);
    ASSERT_TRUE(written.open(QIODevice::ReadOnly)) << name;
    EXPECT_TRUE(written.readAll().contains("gpt2-124m")) << name;
    EXPECT_THAT(plain(window_.banner().text()), HasSubstr(std::string(known.software))) << name;
  }
  window_.plan_controls().fill().setChecked(false);
  window_.document().edit(with_field(window_.document().scenario(), "tensor", "5"), "tensor 5");
  EXPECT_FALSE(window_.export_launch(file("bad"), planner::launch::Trainer::kMegatron));
  EXPECT_THAT(plain(window_.banner().text()), HasSubstr("does not divide"));
  EXPECT_FALSE(QFile::exists(file("bad")));
}

TEST(PlansTable, IsASoundModel) {
  PlansModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  PlanRow row;
  row.summary = "TP1";
  model.set_rows({row, row});
  EXPECT_EQ(model.rowCount(), 2);
  model.set_rows({});
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(Widgets, AllControlsHaveNamesForThoseWhoDoNotSee) {
  MainWindow window;
  window.begin_example(small_scenario());
  QStringList nameless;
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    const bool control = qobject_cast<const QComboBox*>(widget) || qobject_cast<const QAbstractButton*>(widget) ||
                         qobject_cast<const QAbstractItemView*>(widget) ||
                         qobject_cast<const QAbstractSpinBox*>(widget) || qobject_cast<const QLineEdit*>(widget) ||
                         dynamic_cast<const Chart*>(widget);
    if (!control || widget->objectName().startsWith("qt_") || widget->parent()->inherits("QAbstractItemView") ||
        widget->parent()->inherits("QComboBox") || widget->parent()->inherits("QComboBoxPrivateContainer") ||
        widget->parent()->inherits("QTabBar") || widget->parent()->inherits("QLineEdit") ||
        widget->parent()->inherits("QAbstractSpinBox") || widget->parent()->inherits("QDockWidget") ||
        widget->inherits("QHeaderView")) {
      continue;
    }
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    if (widget->accessibleName().isEmpty() && (!button || button->text().isEmpty())) {
      nameless
          << QString("%1 in %2").arg(widget->metaObject()->className(), widget->parent()->metaObject()->className());
    }
  }
  EXPECT_EQ(nameless.join(", ").toStdString(), "");
}

TEST(Layout, IsRememberedFromOneStartToTheNext) {
  {
    MainWindow window;
    window.begin_example(small_scenario());
    window.show();
    window.validate();
    window.show_view(MainWindow::kMemory);
    auto* splitter = window.explain().findChild<QSplitter*>();
    splitter->resize(1000, 400);
    splitter->setSizes({300, 700});
    window.close();
  }
  EXPECT_EQ(kept_view(), "memory");
  MainWindow window;
  window.begin_example(small_scenario());
  window.show();
  EXPECT_TRUE(window.validation().parentWidget()->isVisibleTo(&window));
  window.show_view(MainWindow::kExplain);
  QTest::qWait(1);  // hidden splitters have no sizes
  EXPECT_LT(window.explain().findChild<QSplitter*>()->sizes().at(0),
            window.explain().findChild<QSplitter*>()->sizes().at(1));
  window.close();
  keep_theme(Theme::kDark);
  EXPECT_EQ(kept_theme(), Theme::kDark);
  keep_theme(Theme::kSystem);
  EXPECT_EQ(kept_theme(), Theme::kSystem);
}

}  // namespace
}  // namespace trivium::gui
