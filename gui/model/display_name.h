// What the library says with the names of fields, in words that people read.
#pragma once

#include <string>

namespace trivium::gui {

/// The text with names of the plan's fields and of their values as their plan controls call them: "micro_batch 1 to 2"
/// is "micro-batch 1 to 2". The axes of a placement are short: "TP-CP-DP-PP". Names in quotes, parts of file names and
/// whatever is no such name stay as they are.
std::string display_name(const std::string& text);

}  // namespace trivium::gui
