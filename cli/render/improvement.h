// What a launch file gains by another plan, as JSON and as a report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/advice/improvement.h"
#include "planner/launch/patch/patch.h"

namespace trivium::cli {

/// All that `trivium improve` says.
struct ImprovementAnswer {
  std::string file;  ///< as the user named it
  planner::launch::Trainer trainer{};
  program::Job today;
  std::string cluster;
  planner::Improvement found;
  std::string no_plan;  ///< why the search found none; empty: it did
  std::vector<std::vector<planner::launch::patch::OptionChange>> settings;  ///< of each step, in the file's words
  planner::launch::Patch patch;
  std::string diff;  ///< unified; empty where nothing is gained or the patch is not the plan
};

/// Whether the patch makes the file say the whole plan.
bool is_whole(const planner::launch::Patch& patch);

/// Schema `trivium.improvement/1`.
nlohmann::json improvement_json(const ImprovementAnswer& answer);

/// The same for people: the answer first, at most 25 lines unless `all`, none wider than 80 columns.
std::string improvement_report(const ImprovementAnswer& answer, bool all);

/// What has to be set by hand, a line each; empty where the patch is whole.
std::string by_hand_lines(const planner::launch::Patch& patch);

}  // namespace trivium::cli
