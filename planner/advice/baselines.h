// What a plan is measured against: the ways to split a training that need no search.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace trivium::planner {

/// One naive way on all devices of the request.
struct Baseline {
  std::string name;               ///< "naive layer split"
  std::string words;              ///< what it does
  std::optional<Candidate> runs;  ///< simulated by segments
  std::string why_not;            ///< where it does not run: why
};

/// - naive layer split: layers on as few stages as hold them, one micro-batch at a time (schedule sequential), so that
///   one stage works and the others wait; replicas on the rest of the devices;
/// - data parallel: a whole model on every device;
/// - fully sharded: the same with ZeRO-3;
/// - tensor parallel alone: every matrix over as many devices as the heads allow, over nodes too.
/// Each with the largest micro-batch that fits, recomputing everything only where nothing fits otherwise; the two with
/// replicas with collectives overlapping the passes or not, whichever is faster and fits. Each is at most one plan of
/// many in a search's space (the first is not in it). Bounds of the request do not count here, but what its trainer
/// can run does. When stopped, baselines that were not tried have neither figures nor a reason. `threads`: 0 for all
/// cores.
std::vector<Baseline> baselines(const SearchRequest& request, int threads, const std::stop_token& stop);

/// Share of an iteration in which devices compute: passes, recomputation and optimizer (mean over ranks).
double busy_share(const simulator::Simulation& simulation);

/// How many times as fast the plan is; 0 where the baseline does not run.
double speed_up(const Baseline& baseline, const Candidate& best);

}  // namespace trivium::planner
