// What is shown, as a command of the other program.
#pragma once

#include <string>
#include <string_view>

#include "gui/model/scenario.h"

namespace trivium::gui {

/// The `trivium simulate` that predicts the same: every field that is not as plans are by default, as options. Where
/// options cannot say it (an altered cluster, a model of the user's own), the command for the exported plan,
/// `plan.json`.
std::string command_line(const Scenario& scenario);

/// The `trivium plan`, or another command that searches, for the best plan of the scenario's job: what is held there is
/// `--fix` here.
std::string search_command(const Scenario& scenario, std::string_view command);

/// For a shell: nothing that it reads in another way.
std::string shell_quoted(const std::string& word);

/// Whether it needs no file.
bool is_said_by_options(const Scenario& scenario);

}  // namespace trivium::gui
