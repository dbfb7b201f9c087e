// Traces of other trainers opened next to a plan (tests/data/README.md says how they were recorded).
#include <QTreeWidget>
#include <set>

#include "hardware_profiles/load.h"
#include "models/load.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

QString sample(const QString& name) { return QString(TRIVIUM_SOURCE_DIR) + "/tests/data/" + name; }

class Foreign : public Window {
 protected:
  /// The job that was recorded, on two cores, with its plan or another.
  Scenario recorded() {
    Scenario scenario = local_example();
    scenario.file.job.model = models::load_model(std::string(TRIVIUM_SOURCE_DIR) + "/tests/foreign/llama-10m.json");
    hardware::Node node = hardware::load_cluster("generic-cpu:1").groups.front().node;
    node.devices = 2;
    node.device.memory = base::Bytes(4e9);
    node.host_memory = base::Bytes(8e9);
    scenario.cluster = {"two cores", {{node, 1}}};
    scenario.file.cluster = hardware::to_json(scenario.cluster);
    scenario.file.job.training.sequence = 256;
    scenario.file.job.training.global_batch = 8;
    scenario.file.job.plan = {};
    scenario.file.job.plan.data = 2;
    scenario.file.job.plan.zero_stage = 3;
    scenario.file.job.plan.micro_batch = 4;
    return scenario;
  }
  QStringList slow_rank() {
    return {sample("foreign/slow-rank-rank0.pt.trace.json.gz"), sample("foreign/slow-rank-rank1.pt.trace.json.gz")};
  }
  FindingsPanel& findings() { return window_.compare().findings(); }
  bool is_explained() {
    return QTest::qWaitFor([&] { return window_.view_is_ready() && !findings().is_busy(); }, kPatienceMs);
  }
};

TEST_F(Foreign, CompareListsWhatTheRunLosesTheWorstFirst) {
  begin(recorded());
  window_.open_traces(slow_rank());
  window_.show_view(MainWindow::kCompare);
  ASSERT_TRUE(is_explained());
  ASSERT_TRUE(findings().explanation()) << plain(findings().error());
  EXPECT_THAT(plain(findings().summary()), HasSubstr(" an iteration can be won."));
  EXPECT_THAT(plain(findings().summary()), HasSubstr("2 traced ranks"));
  const QTreeWidget& table = findings().findings();
  const auto& told = findings().explanation()->findings;
  ASSERT_EQ(table.topLevelItemCount(), static_cast<int>(told.size()));
  ASSERT_GT(told.size(), 0U);
  for (std::size_t i = 1; i < told.size(); ++i) EXPECT_GE(told[i - 1].seconds, told[i].seconds);
  EXPECT_EQ(table.topLevelItem(0)->text(1), "1");  // the rank that was slowed down
  EXPECT_FALSE(table.topLevelItem(0)->text(3).isEmpty());
  EXPECT_GT(findings().ops().topLevelItemCount(), 3);
  ASSERT_TRUE(window_.export_table(file("findings.csv")));
  std::ifstream csv(file("findings.csv").toStdString());
  std::string header;
  std::getline(csv, header);
  EXPECT_EQ(header, "what,rank,seconds,remedy");
}

TEST_F(Foreign, AnotherPlanIsSaidAndTheTracesPlanIsAButtonAway) {
  Scenario other = recorded();
  other.file.job.plan.data = 1;
  other.file.job.plan.zero_stage = 0;
  begin(other);
  window_.open_traces(slow_rank());
  window_.show_view(MainWindow::kCompare);
  ASSERT_TRUE(is_explained());
  EXPECT_FALSE(findings().explanation());
  EXPECT_FALSE(findings().error().isEmpty());
  findings().plan_button().click();
  ASSERT_TRUE(settles());
  ASSERT_TRUE(is_explained());
  EXPECT_EQ(plan().data, 2);
  EXPECT_EQ(plan().zero_stage, 3);
  EXPECT_TRUE(findings().explanation()) << plain(findings().error());
  window_.document().history().undo();
  EXPECT_EQ(plan().data, 1);
}

TEST_F(Foreign, IsCancelledAtOnce) {
  begin(recorded());
  window_.open_traces(slow_rank());
  window_.show_view(MainWindow::kCompare);
  ASSERT_TRUE(findings().is_busy());
  findings().cancel_button().click();
  EXPECT_FALSE(findings().is_busy());
  EXPECT_THAT(plain(findings().summary()), HasSubstr("Cancelled"));
}

TEST_F(Foreign, KernelsAreColouredAndNamedInTheLegend) {
  begin(staged_scenario());
  for (const char* name : {"kineto.pt.trace.json", "foreign/plain-rank0.pt.trace.json.gz", "nsight.sqlite"}) {
    ASSERT_TRUE(window_.open(sample(name)));
    ASSERT_TRUE(QTest::qWaitFor([&] { return !window_.timeline().is_busy(); }, kPatienceMs));
    ASSERT_FALSE(window_.timeline().canvas().timelines().empty()) << name;
    const auto& categories = window_.timeline().canvas().timelines()[0].spans->categories();
    std::set<int> hues;
    for (const CategoryInfo& category : categories) {
      EXPECT_TRUE(hues.insert(category.hue).second) << name << ": " << category.name;
    }
    const QTreeWidget& legend = window_.timeline().panel().table();
    EXPECT_FALSE(legend.findItems("matrix product", Qt::MatchExactly | Qt::MatchRecursive).isEmpty()) << name;
  }
}

}  // namespace
}  // namespace trivium::gui
