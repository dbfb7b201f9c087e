// Fields of a plan with a value for every chunk or stage, as text that can be read and typed.
#pragma once

#include <string>
#include <vector>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// A field that names each chunk (or stage) apart. Empty in the plan: all are treated alike.
struct StageList {
  const char* field;  ///< name of program::set_field: "stage_recompute"
  const char* after;  ///< the plan control below which it stands
  const char* words;
  const char* help;
};

/// In the order in which they are shown.
const std::vector<StageList>& stage_lists();

/// Runs of equal values: "selective:40, none:56", "6x8, 3x8"; empty where the plan names none.
std::string list_text(const program::Plan& plan, const std::string& field);

/// What holds where the plan names none: "none in all 96 chunks", "even", "in order".
std::string list_hint(const Scenario& scenario, const std::string& field);

/// Whether there is anything to distinguish: two chunks, or stages and kinds of nodes.
bool list_applies(const Scenario& scenario, const std::string& field);

/// Sets the field from such text, or from single values ("full, none"); without text all are alike again. Errors:
/// Failure(kUsage): no such value, not one for every chunk, layers that do not add up.
Scenario with_list(Scenario scenario, const std::string& field, const std::string& text);

}  // namespace trivium::gui
