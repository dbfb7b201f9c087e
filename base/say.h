// What the program tells people, on stderr.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace trivium::base {

/// Writes to stderr at once. Never throws: where stderr is closed, full or a broken pipe, the text is lost.
void say_text(std::string_view text) noexcept;

/// As `say_text`, formatted.
template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  try {
    say_text(fmt::format(format, std::forward<Arguments>(arguments)...));
  } catch (...) {  // no memory for the text
    say_text("error: out of memory\n");
  }
}

}  // namespace trivium::base
