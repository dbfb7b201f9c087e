// One line of help for every field of a plan and training.
#pragma once

#include <string_view>

namespace trivium::cli {

/// What a field of program::set_field means; empty for an unknown one.
std::string_view help_of(std::string_view field);

/// What may be given, as help shows it: "N", "none|selective|full". "VALUE" for an unknown one.
std::string_view values_of(std::string_view field);

}  // namespace trivium::cli
