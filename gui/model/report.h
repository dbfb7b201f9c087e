// What leaves the program as text: tables and reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/validate/validate.h"
#include "gui/model/evaluation.h"
#include "gui/model/plan_rows.h"
#include "gui/model/sensitivity.h"
#include "report/plan_report.h"

namespace trivium::gui {

/// A row a rank: coordinates, node, memory, where the time of its stage goes. Precondition: the evaluation runs.
std::string ranks_csv(const Evaluation& evaluation);
/// A row a plan: summary and figures.
std::string plans_csv(const std::vector<PlanRow>& plans);
/// A row a stage: memory by part, capacity.
std::string memory_csv(const Evaluation& evaluation);
/// The same, a row a rank.
std::string ranks_memory_csv(const Evaluation& evaluation);
/// A row an event of the timeline, with the event's name.
std::string timeline_csv(const Evaluation& evaluation);
/// A row a statement: kind, change, gain.
std::string insight_csv(const Insight& insight);

/// A row a group of a validation: what it has in common, its cases and errors as shares.
std::string validation_csv(const calibration::Validation& validation);

/// One HTML page that stands alone (report/plan_report.h). Precondition: the evaluation runs.
std::string report_html(const Evaluation& evaluation, const Insight& insight,
                        const std::optional<report::Spread>& spread, const std::vector<PlanRow>& plans,
                        std::vector<report::Picture> pictures);

}  // namespace trivium::gui
