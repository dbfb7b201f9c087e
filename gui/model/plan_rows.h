// Plans side by side: rows of a table, points of a plot, differences.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gui/model/evaluation.h"
#include "planner/search/search.h"

namespace trivium::gui {

/// What is shown of one plan.
struct PlanRow {
  program::Plan plan;
  std::string summary;
  double iteration_s = 0;
  double tokens_per_s = 0;
  double mfu = 0, hfu = 0;
  double peak_memory_bytes = 0;
  simulator::Certainty certainty{};
  double dollars_per_iteration = 0;  ///< of the nodes used; 0 where one has no price
  std::array<double, simulator::kParts> breakdown_s{};
  bool interim = false;  ///< of a search that goes on: nothing but the time is known yet
  std::string job = {};  ///< in words: what it was simulated for; figures of different jobs do not compare
};

PlanRow row_of(const program::Plan& plan, const simulator::Simulation& figures, const hardware::Cluster& cluster);

/// Price of an iteration on the nodes that the plan uses, whole; 0 where one has no price.
double dollars_per_iteration(const program::Plan& plan, const hardware::Cluster& cluster, double iteration_s);

/// "$28.81"; small amounts with two digits that count: "$0.00042".
std::string dollars_text(double dollars);

/// Points that no other is at or below in both coordinates (one of equal points stays), by ascending x: indices.
std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points);

/// One line of a comparison: a field or figure, its value in every plan, and whether they differ.
struct DifferenceRow {
  std::string name;
  std::vector<std::string> values;
  bool differs = false;
};
/// Figures first, then what they were simulated for where that is known, then every field of the plan.
std::vector<DifferenceRow> differences(const std::vector<PlanRow>& plans);

/// Why `slower` is not chosen over `faster`: the parts of an iteration that make the difference, in words.
std::vector<std::string> why_not(const PlanRow& slower, const PlanRow& faster);

}  // namespace trivium::gui
