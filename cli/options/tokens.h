// Counts of tokens and of bytes as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace trivium::cli {

/// "300B", "1.5T", "40M", "8Ki", "1000000" as a number; K, M, B and T are thousand to trillion, Ki, Mi, Gi and Ti
/// powers of 1024, in letters of either case. Errors: Failure(kUsage) naming `option`.
std::int64_t parse_tokens(const std::string& option, const std::string& text);

/// "2GiB", "500 MB", "1073741824" as a number of bytes. Errors: Failure(kUsage) naming `option`.
std::int64_t parse_size(const std::string& option, const std::string& text);

}  // namespace trivium::cli
