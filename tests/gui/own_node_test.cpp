// Hardware of the user's own, described in the window.
#include <QFile>
#include <QProcess>

#include "gui/model/cluster_edit.h"
#include "gui/views/node_dialog.h"
#include "hardware_profiles/load.h"
#include "tests/gui/window_fixture.h"

namespace trivium::gui {
namespace {

using testing::HasSubstr;

constexpr const char* kMatrix =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\n"
    "GPU0\t X \tNV4\tNV4\tNV4\tSYS\t0-31\n"
    "GPU1\tNV4\t X \tNV4\tNV4\tSYS\t0-31\n"
    "GPU2\tNV4\tNV4\t X \tNV4\tSYS\t0-31\n"
    "GPU3\tNV4\tNV4\tNV4\t X \tSYS\t0-31\n"
    "NIC0\tSYS\tSYS\tSYS\tSYS\t X \t\n";

class OwnHardware : public Window {
 protected:
  NodeDialog& ask() {
    window_.cluster().ask_new_kind();
    return *window_.findChild<NodeDialog*>();
  }
  void retype(QLineEdit& edit, const QString& text) {
    edit.selectAll();
    QTest::keyClicks(&edit, text);
  }
};

TEST_F(OwnHardware, IsMadeFromTheNearestKindAndKnownToTheCommandLine) {
  begin(staged_scenario());
  const double before = window_.document().evaluation()->figures.iteration_s;
  NodeDialog& dialog = ask();
  EXPECT_EQ(plain(dialog.field("/device/memory").text()),
            field_text(hardware::load_node("dgx-a100-80gb"), "/device/memory"));
  retype(dialog.name(), "my-lab-node");
  retype(dialog.field("/device/peak/bf16"), "156 parsecs");
  EXPECT_FALSE(dialog.keep().isEnabled());
  EXPECT_TRUE(dialog.is_marked("/device/peak/bf16"));
  EXPECT_THAT(plain(dialog.said().text()), HasSubstr("/device/peak/bf16"));
  retype(dialog.field("/device/peak/bf16"), "156 TFLOP/s");
  retype(dialog.field("/price"), "10 $/h");
  retype(dialog.field("/fat_tree/leaf_nodes"), "16");
  retype(dialog.field("/fat_tree/oversubscription"), "2");
  EXPECT_FALSE(dialog.is_marked("/device/peak/bf16"));
  ASSERT_TRUE(dialog.keep().isEnabled()) << plain(dialog.said().text());
  dialog.keep().click();
  const hardware::Cluster& cluster = window_.document().scenario().cluster;
  EXPECT_EQ(cluster.name, "my-lab-node:1");
  EXPECT_EQ(cluster.groups[0].node.price.value(), 10);
  EXPECT_EQ(cluster.groups[0].node.leaf_nodes, 16);
  EXPECT_EQ(cluster.groups[0].node.sources.at("/price"), "typed by the user");
  ASSERT_TRUE(settles());
  EXPECT_GT(window_.document().evaluation()->figures.iteration_s, before);  // half the arithmetic
  EXPECT_TRUE(window_.start_panel().altered().isHidden());
  QProcess trivium;
  trivium.start(RunPanel::trivium_program(), {"profiles", "my-lab-node"});
  ASSERT_TRUE(trivium.waitForFinished(kPatienceMs));
  EXPECT_THAT(trivium.readAllStandardOutput().toStdString(), HasSubstr("typed by the user"));
  window_.document().history().undo();
  EXPECT_EQ(window_.document().scenario().cluster.name, "dgx-a100-80gb:1");
}

TEST_F(OwnHardware, LinksAreFittedToWhatIsPasted) {
  begin(staged_scenario());
  NodeDialog& dialog = ask();
  EXPECT_EQ(plain(dialog.field("/devices").text()), "8");
  dialog.pasted().setPlainText(kMatrix);
  EXPECT_TRUE(dialog.keep().isEnabled()) << plain(dialog.said().text());
  EXPECT_EQ(plain(dialog.field("/devices").text()), "4");
  EXPECT_EQ(plain(dialog.field("/adapters").text()), "1");
  EXPECT_FALSE(dialog.said().text().isEmpty());
  dialog.pasted().setPlainText("Dear diary,");
  EXPECT_FALSE(dialog.keep().isEnabled());
  EXPECT_THAT(plain(dialog.said().text()), HasSubstr("neither"));
  dialog.reject();
}

// What nccl-tests print on 8 H100s: 439 GB/s on the bus at 1 GiB, 30 us for a kilobyte.
TEST_F(OwnHardware, LinksAreFittedToPastedOutputOfNcclTests) {
  begin(staged_scenario());
  NodeDialog& dialog = ask();
  choose(dialog.base(), "dgx-h100");
  QFile measured(QString(TRIVIUM_SOURCE_DIR) + "/tests/data/nccl_all_reduce.txt");
  ASSERT_TRUE(measured.open(QIODevice::ReadOnly));
  retype(dialog.name(), "my-measured-node");
  dialog.pasted().setPlainText(QString::fromUtf8(measured.readAll()));
  EXPECT_FALSE(dialog.said().text().isEmpty());
  ASSERT_TRUE(dialog.keep().isEnabled()) << plain(dialog.said().text());
  const hardware::Node& node = dialog.node();
  ASSERT_TRUE(node.allreduce_bus.contains(8));
  EXPECT_NEAR(node.allreduce_bus.at(8).value() / 438e9, 1, 0.03);
  dialog.keep().click();
  EXPECT_EQ(window_.document().scenario().cluster.name, "my-measured-node:1");
  EXPECT_NEAR(window_.document().scenario().cluster.groups[0].node.allreduce_bus.at(8).value() / 438e9, 1, 0.03);
}

TEST_F(OwnHardware, NamesOfShippedKindsAreRefused) {
  begin(staged_scenario());
  NodeDialog& dialog = ask();
  for (const char* name : {"h200", "../escape", "this-machine", "a b"}) {
    retype(dialog.name(), name);
    dialog.keep().click();
    EXPECT_TRUE(dialog.isVisible()) << name;
    EXPECT_FALSE(dialog.said().text().isEmpty()) << name;
  }
  dialog.reject();
}

TEST_F(OwnHardware, MeasuredAllReducesFollowTheLinkThatIsTyped) {
  OwnNode own{"my-node", "dgx-a100-80gb", "", {}};
  const hardware::Node before = make_node(own).node;
  own.typed["/intra/bandwidth"] = base::to_text(before.intra.bandwidth * 0.5);
  const hardware::Node after = make_node(own).node;
  ASSERT_FALSE(before.allreduce_bus.empty());
  for (const auto& [ranks, bus] : before.allreduce_bus) EXPECT_NEAR(after.allreduce_bus.at(ranks) / bus, 0.5, 1e-9);
}

}  // namespace
}  // namespace trivium::gui
