// What the window says anywhere reads as words, not as names of fields.
#include <QAbstractButton>
#include <QAction>
#include <QGroupBox>
#include <QHeaderView>
#include <QTreeWidget>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/calibration/synthetic_run.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

void add_model(const QAbstractItemModel& model, const QModelIndex& parent, QStringList& texts) {
  for (int c = 0; c < model.columnCount(parent); ++c) {
    texts << model.headerData(c, Qt::Horizontal).toString();
    for (int r = 0; r < model.rowCount(parent); ++r) {
      const QModelIndex index = model.index(r, c, parent);
      texts << index.data().toString() << index.data(Qt::ToolTipRole).toString();
      if (c == 0) add_model(model, index, texts);
    }
  }
}

/// All that the widgets below `root` say or would say.
QStringList texts_of(const QWidget& root) {
  QStringList texts;
  for (const QWidget* widget : root.findChildren<QWidget*>()) {
    texts << widget->toolTip() << widget->accessibleName();
    if (const auto* label = qobject_cast<const QLabel*>(widget)) texts << label->text();
    if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) texts << button->text();
    if (const auto* box = qobject_cast<const QGroupBox*>(widget)) texts << box->title();
    if (const auto* edit = qobject_cast<const QTextEdit*>(widget)) texts << edit->toPlainText();
    if (const auto* tabs = qobject_cast<const QTabWidget*>(widget)) {
      for (int t = 0; t < tabs->count(); ++t) texts << tabs->tabText(t);
    }
    if (const auto* box = qobject_cast<const QComboBox*>(widget)) {
      for (int i = 0; i < box->count(); ++i) texts << box->itemText(i);
    }
    if (const auto* view = qobject_cast<const QAbstractItemView*>(widget)) {
      if (view->model() != nullptr) add_model(*view->model(), {}, texts);
    }
  }
  for (const QAction* action : root.findChildren<QAction*>()) texts << action->text() << action->toolTip();
  return texts;
}

void expect_words(const QWidget& root) {
  static const std::regex kRawName("(^|[^A-Za-z0-9_/.-])[a-z]+_[a-z_]+");
  // Plans are simulated, variation is random, and equal things have the name of what they are.
  static const std::regex kOddWord("\\b([Pp]lay(s|ed|ing)?|[Cc]hance|[Tt]wins?)\\b");
  for (const QString& text : texts_of(root)) {
    EXPECT_FALSE(std::regex_search(plain(text), kRawName)) << plain(text);
    EXPECT_FALSE(std::regex_search(plain(text), kOddWord)) << plain(text);
  }
}

TEST_F(Window, SaysNoNameOfAField) {
  begin(staged_scenario());
  window_.plans().search();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.plans().is_searching(); }, kPatienceMs));
  window_.plans().pin(0);
  window_.plans().pin_current();
  window_.plans().explain_why_not_current();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.plans().why().text().contains("instead of"); }, kPatienceMs));
  for (const MainWindow::View view : {MainWindow::kExplain, MainWindow::kTimeline}) {
    window_.show_view(view);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  }
  ASSERT_GT(texts_of(window_).size(), 500);
  expect_words(window_);
  Scenario scenario = window_.document().scenario();
  scenario.file.job.plan.micro_batch = 3;
  window_.document().edit(std::move(scenario), "micro-batch 3");
  ASSERT_TRUE(settles());
  expect_words(window_);
}

TEST_F(Window, SaysNoNameOfAFieldOfARunEither) {
  const program::Job job = calibration::small_job(1, 2, 1, 2);
  write("run.json", program::to_json(calibration::synthetic_run(job, calibration::rated_node(1))).dump());
  window_.resize(1400, 900);
  window_.show();
  ASSERT_TRUE(window_.open(file("run.json")));
  ASSERT_TRUE(settles());
  window_.validate();
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.validation().validation().has_value(); }, kPatienceMs));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_.view_is_ready(); }, kPatienceMs));
  expect_words(window_);
}

}  // namespace
}  // namespace trivium::gui
