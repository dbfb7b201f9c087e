// Published runs did run: no row may ask hardware for what the table of capabilities says it cannot do.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "calibration/measurements/published_row.h"
#include "program/plan/stack.h"
#include "simulator/cost/supported.h"
#include "simulator/placement/peer_buffers.h"

namespace trivium::calibration {
namespace {

TEST(PublishedRow, RunsOnHardwareThatCanDoIt) {
  int overlapped = 0, dispatched = 0;
  for (const char* folder : {"runs", "runs_modern"}) {
    const auto path = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "validation" / folder;
    for (const auto& file : std::filesystem::directory_iterator(path)) {
      const CsvTable table(base::read_file(file.path().string()), file.path().string());
      for (std::size_t i = 0; i < table.rows(); ++i) {
        const PublishedRun run = read_published_run(table.row(i));
        if (run.unsupported || run.iteration_s <= 0) continue;
        const program::Plan& plan = run.job.plan;
        const auto no = simulator::tensor_overlap_refused(plan, run.cluster);
        EXPECT_FALSE(no) << run.case_name << ": " << no->reason;
        EXPECT_FALSE(simulator::dispatch_lacks_hardware(plan, run.cluster.groups.front().node)) << run.case_name;
        overlapped += plan.overlap.tensor && program::find_stack(plan.stack)->peer_buffers ? 1 : 0;
        dispatched += plan.expert > 1 && sends_once(program::stack_of(plan).expert_dispatch) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(overlapped, 100);
  EXPECT_GT(dispatched, 10);
}

// 128 GPUs are 64 of each of two racks (block scheduling), which a cluster's text says, too.
TEST(PublishedRow, TakesEqualPartsOfRacks) {
  const auto path = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "validation/runs_modern/megatron_bridge_summary.csv";
  const CsvTable table(base::read_file(path.string()), path.string());
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const PublishedRun run = read_published_run(table.row(i));
    if (run.case_name != "MB-26.08-gb200-nvl72-deepseek-v3-g256-mxfp8-gbs4096") continue;
    EXPECT_EQ(run.cluster.name, "gb200-nvl72:4x64");
    EXPECT_EQ(run.cluster.devices(), 256);
    return;
  }
  FAIL() << "the row is gone";
}

}  // namespace
}  // namespace trivium::calibration
