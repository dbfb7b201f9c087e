// Two plans side by side: their timelines, and what makes the difference.
#pragma once

#include <array>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/evaluation.h"
#include "gui/timeline/spans/span_store.h"

namespace trivium::gui {

/// A part of an iteration, mean over ranks.
struct PartDifference {
  simulator::Part part{};
  std::array<double, 2> seconds{};
  double change() const { return seconds[1] - seconds[0]; }
};

/// An op of any micro-batch and layer, mean over the ranks that are drawn; waiting is one of them.
struct OpDifference {
  std::string name;
  CategoryInfo category;
  std::array<double, 2> seconds{};
  std::array<double, 2> spans{};
  double change() const { return seconds[1] - seconds[0]; }
};

struct PlanDifference {
  std::array<std::shared_ptr<const Evaluation>, 2> plans;
  std::array<std::shared_ptr<const SpanStore>, 2> spans;
  std::vector<PartDifference> parts;  ///< in their own order; both sums are the iterations
  std::vector<OpDifference> ops;      ///< the largest change first
  std::string refusal;                ///< which of them cannot run, and why; the rest is empty then
};

/// Simulates both, op by op; one that is known already need not be. Stopped, it says so as a refusal.
PlanDifference plan_difference(const std::array<Scenario, 2>& scenarios, const std::shared_ptr<const Evaluation>& known,
                               const std::stop_token& stop);

}  // namespace trivium::gui
