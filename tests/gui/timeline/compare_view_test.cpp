#include "gui/timeline/compare_view.h"

#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>

#include "tests/calibration/synthetic_run.h"

namespace trivium::gui {
namespace {

class CompareViewTest : public testing::Test {
 protected:
  CompareViewTest() {
    view.resize(1300, 500);
    view.show();
    const hardware::Node node = calibration::rated_node(1);
    comparison.cluster = calibration::cluster_of(node);
    comparison.plan.job = calibration::small_job(1, 2, 1, 2);
    comparison.record =
        std::make_shared<const program::RunRecord>(calibration::synthetic_run(comparison.plan.job, node));
  }
  void show() {
    QSignalSpy shown(&view, &CompareView::shown);
    view.set_comparison(comparison);
    ASSERT_TRUE(shown.wait());
  }
  CompareView view;
  Comparison comparison;
};

TEST_F(CompareViewTest, SaysWhatToDoWithoutARun) {
  EXPECT_FALSE(view.grab().isNull());
  EXPECT_TRUE(view.steps().isHidden());
  EXPECT_EQ(view.summary(), "");
}

TEST_F(CompareViewTest, ShowsBothIterationsAndTheErrorByOpKind) {
  show();
  EXPECT_TRUE(view.summary().contains("+0.0 %")) << view.summary().toStdString();
  EXPECT_EQ(view.steps().count(), 3);
  const QTreeWidget& table = view.table();
  ASSERT_GT(table.topLevelItemCount(), 5);
  EXPECT_EQ(table.topLevelItem(table.topLevelItemCount() - 1)->text(0), "all");
  EXPECT_FALSE(view.grab().isNull());
}

TEST_F(CompareViewTest, TheTableFollowsTheSelectedRange) {
  show();
  const int all = view.table().topLevelItemCount();
  const SpanStore& store = *view.canvas().timelines()[0].spans;
  view.canvas().select_range(TimeRange{store.begin(), store.begin() + (store.end() - store.begin()) / 1000, {}});
  EXPECT_LT(view.table().topLevelItemCount(), all);
  QTest::keyClick(&view.canvas(), Qt::Key_Escape);
  EXPECT_EQ(view.table().topLevelItemCount(), all);
}

TEST_F(CompareViewTest, AnotherStepCanBeChosen) {
  show();
  QSignalSpy shown(&view, &CompareView::shown);
  view.steps().setCurrentIndex(0);
  Q_EMIT view.steps().activated(0);
  ASSERT_TRUE(shown.wait());
  EXPECT_EQ(view.steps().currentData().toInt(), 0);
}

TEST_F(CompareViewTest, TellsWhyThereIsNothingToCompare) {
  comparison.plan.job.training.global_batch = 3;
  comparison.plan.job.plan.data = 2;
  QSignalSpy failed(&view, &CompareView::failed);
  view.set_comparison(comparison);
  ASSERT_TRUE(failed.wait());
  EXPECT_TRUE(view.summary().contains("batch 3")) << view.summary().toStdString();
  view.set_comparison(std::nullopt);
  EXPECT_EQ(view.summary(), "");
}

TEST_F(CompareViewTest, ClosesWhileItCompares) {
  CompareView other;
  other.set_comparison(comparison);
}

}  // namespace
}  // namespace trivium::gui
