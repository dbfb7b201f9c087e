// Counts as people type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trivium::gui {

/// "1536", "2,048", "300e9", "300 B", "1.5 trillion"; nothing where it is no whole number below 2^53.
std::optional<std::int64_t> parse_count(const std::string& text);

/// "300,000,000,000".
std::string count_text(std::int64_t count);

}  // namespace trivium::gui
