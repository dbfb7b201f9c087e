// What a rank says of a failure to the others.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace trivium::runtime {

/// The reason with the rank before it that it came from: `rank` where no rank stands there yet. A failure that ranks
/// agreed on names the one that failed, and goes through several hands.
inline std::string told_by(int rank, std::string_view reason) {
  constexpr std::string_view kWord = "rank ";
  const std::size_t end = reason.find_first_not_of("0123456789", kWord.size());
  const bool names_one = reason.starts_with(kWord) && end != kWord.size() && end != std::string_view::npos &&
                         reason.substr(end).starts_with(": ");
  return names_one ? std::string(reason) : fmt::format("rank {}: {}", rank, reason);
}

}  // namespace trivium::runtime
