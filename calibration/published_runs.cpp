#include "calibration/published_runs.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "calibration/quantities.h"
#include "calibration/replay.h"
#include "simulator/engine/costed_program.h"
#include "simulator/engine/engine.h"
#include "simulator/memory/crowding.h"

namespace trivium::calibration {

std::vector<PublishedRun> read_published_runs(const std::filesystem::path& csv) {
  const CsvTable table(base::read_file(csv), csv.string());
  table.require(published_columns());
  if (table.rows() == 0) {
    throw base::Failure(base::ErrorKind::kInput,
                        fmt::format("{}: has a header and no rows; add a line for every run", csv.string()));
  }
  std::vector<PublishedRun> runs;
  for (std::size_t i = 0; i < table.rows(); ++i) runs.push_back(read_published_run(table.row(i)));
  return runs;
}

PreparedRun::PreparedRun(const PublishedRun& run) : cluster_(run.cluster), by_op_(needs_ops(run.job)) {
  auto result = prepare(run.job, run.cluster);
  if (const auto* no = std::get_if<Unsupported>(&result)) {
    reason_ = no->reason;
  } else {
    program_ = std::make_shared<program::Program>(std::get<program::Program>(std::move(result)));
    crowding_ = simulator::crowding(*program_, cluster_);
  }
}

double PreparedRun::iteration_s(const hardware::Node& node) const {
  hardware::Cluster cluster = cluster_;
  cluster.groups.front().node = node;
  const auto costed = simulator::cost(*program_, cluster);
  const auto granularity = by_op_ ? simulator::Granularity::kOp : simulator::Granularity::kSegment;
  return static_cast<double>(simulator::play(costed, granularity).value_or_throw().makespan_ps) * kSecondsPerPs *
         crowding_;
}

}  // namespace trivium::calibration
