// Counts of tokens as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace trivium::cli {

/// "300B", "1.5T", "40M", "1000000" as a number. Errors: Failure(kUsage) naming `option`.
std::int64_t parse_tokens(const std::string& option, const std::string& text);

}  // namespace trivium::cli
