// What leaves the program as text: tables and reports.
#pragma once

#include <string>
#include <vector>

#include "gui/model/evaluation.h"
#include "gui/model/plan_rows.h"
#include "gui/model/sensitivity.h"

namespace trivium::gui {

/// A row a rank: coordinates, node, memory, where the time of its stage goes. Precondition: the evaluation runs.
std::string ranks_csv(const Evaluation& evaluation);
/// A row a plan: summary and figures.
std::string plans_csv(const std::vector<PlanRow>& plans);
/// A row a stage: memory by part, capacity.
std::string memory_csv(const Evaluation& evaluation);
/// A row an event of the timeline, with the event's name.
std::string timeline_csv(const Evaluation& evaluation);
/// A row a statement: kind, change, gain.
std::string insight_csv(const Insight& insight);

/// A picture of a report: PNG bytes in base64.
struct ReportPicture {
  std::string title;
  std::string png_base64;
};

/// One HTML page that stands alone. Precondition: the evaluation runs.
std::string report_html(const Evaluation& evaluation, const Insight& insight, const std::vector<PlanRow>& plans,
                        const std::vector<ReportPicture>& pictures);

/// `text` with <, >, & and quotes written so that HTML shows them.
std::string html(const std::string& text);

}  // namespace trivium::gui
