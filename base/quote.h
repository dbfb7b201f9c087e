// Text of the user inside a message of ours: quoted, cut when long, and always on one line.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trivium::base {

/// `text` in double quotes; control characters become `\xNN`, and text beyond 60 bytes is cut and ends in `…`.
std::string quote(std::string_view text);

/// `text` with its control characters, and bytes that are not UTF-8, written as `\xNN`: a message stays one line.
std::string one_line(std::string_view text);

/// "a, b, c", of more than a dozen "a, b, … and 5 more". The names are printed as they are.
std::string listed(std::span<const std::string> names);

/// As `one_line`, but newlines and tabs stay.
std::string printable(std::string_view text);

}  // namespace trivium::base
