// What a foreign run's traces say of a plan: which ops take longer than it says, what waits, and what that costs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "calibration/foreign/foreign_files.h"
#include "hardware_profiles/hardware.h"
#include "program/plan/job.h"

namespace trivium::calibration::foreign {

/// Of one iteration, the mean over whole iterations and over the ranks that were traced.
struct OpRow {
  std::string op;  ///< kind or product of the plan; "unmatched: NAME" of kernels that match none
  double count = 0, measured_s = 0, predicted_s = 0;
};

/// Where in a rank's trace something is seen. Microseconds as the file has them.
struct SeenAt {
  int rank = 0, step = 0;
  double begin_us = 0, end_us = 0;
};

/// Something that costs time. Seconds of findings do not overlap.
struct Finding {
  std::string what;
  std::optional<int> rank;  ///< none: all
  double seconds = 0;
  std::string remedy;
  std::string cause{};          ///< one word of a fixed list: docs/explanation/traces.md
  double confidence = 0.5;      ///< 0 to 1: how surely it is this cause, and no noise of the host
  std::vector<SeenAt> spans{};  ///< examples of what it is told from
};

struct Explanation {
  double matched_share = 0;                ///< of the time of all kernels but collectives
  double measured_s = 0, predicted_s = 0;  ///< an iteration
  double traced_s = 0;             ///< an iteration under the profiler; `measured_s` is a log's where one is given
  int ranks = 0, steps = 0;        ///< traces, and whole iterations of the one that has fewest
  std::vector<OpRow> ops;          ///< the longest first
  std::vector<Finding> findings;   ///< the worst first
  double winnable_s = 0;           ///< their sum, never more than `measured_s`
  std::vector<std::string> notes;  ///< what a reader must know of the traces
};

/// Simulates the job op by op and compares its ranks with the traced ones. Errors: Failure(kInput) naming the file
/// where ranks, groups or shapes are not the plan's, or no iteration is whole; as simulator::prepare() and simulate().
Explanation explain_foreign(const ForeignRun& run, const program::Job& job, const hardware::Cluster& cluster,
                            const std::stop_token& stop = {});

/// Schema `trivium.trace-explanation/1`.
nlohmann::json to_json(const Explanation& explanation);

}  // namespace trivium::calibration::foreign
