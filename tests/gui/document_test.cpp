#include "gui/document.h"

#include <gtest/gtest.h>

#include <QTest>

#include "tests/gui/scenarios.h"

namespace trivium::gui {
namespace {

constexpr int kSettleMs = 60'000;

bool settles(const Document& document) {
  return QTest::qWaitFor([&] { return document.settled(); }, kSettleMs);
}

TEST(Document, IsEvaluatedQuicklyAndThenInFull) {
  Document document;
  std::vector<Depth> depths;
  QObject::connect(&document, &Document::evaluated, [&] { depths.push_back(document.evaluation()->depth); });
  document.reset(small_scenario());
  ASSERT_TRUE(settles(document));
  EXPECT_EQ(depths.back(), Depth::kFull);
  EXPECT_TRUE(document.evaluation()->fits());
  EXPECT_GT(document.evaluation()->figures.iteration_s, 0);
}

TEST(Document, UndoesAndRedoesEdits) {
  Document document;
  document.reset(small_scenario());
  document.edit(with_field(document.scenario(), "micro_batch", "2"), "micro-batch 2");
  EXPECT_EQ(document.scenario().file.job.plan.micro_batch, 2);
  document.history().undo();
  EXPECT_EQ(document.scenario().file.job.plan.micro_batch, 1);
  document.history().redo();
  EXPECT_EQ(document.scenario().file.job.plan.micro_batch, 2);
}

TEST(Document, JoinsStepsThatTurnTheSameKnob) {
  Document document;
  document.reset(small_scenario());
  document.edit(with_field(document.scenario(), "tensor", "2"), "tensor 2", "tensor");
  document.edit(with_field(document.scenario(), "tensor", "4"), "tensor 4", "tensor");
  EXPECT_EQ(document.history().count(), 1);
  document.edit(with_field(document.scenario(), "micro_batch", "2"), "micro-batch 2", "micro_batch");
  EXPECT_EQ(document.history().count(), 2);
  document.history().undo();
  EXPECT_EQ(document.scenario().file.job.plan.tensor, 4);
}

TEST(Document, ShowsTheNewestOfManyEditsAndNoStaleOne) {
  Document document;
  document.reset(small_scenario());
  for (const char* size : {"2", "1", "2"}) {
    document.edit(with_field(document.scenario(), "micro_batch", size), "micro-batch");
  }
  ASSERT_TRUE(settles(document));
  EXPECT_EQ(document.evaluation()->scenario.file.job.plan.micro_batch, 2);
}

TEST(Document, SaysWhyAPlanCannotBe) {
  Document document;
  document.reset(small_scenario());
  document.edit(with_field(document.scenario(), "tensor", "5"), "tensor 5");
  ASSERT_TRUE(settles(document));
  EXPECT_EQ(document.evaluation()->refusal, "tensor 5 does not divide 12 heads");
}

TEST(Document, MayBeClosedDuringWork) {
  Document document;
  document.reset(example_scenario());
  SUCCEED();
}

}  // namespace
}  // namespace trivium::gui
