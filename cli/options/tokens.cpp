#include "cli/options/tokens.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::cli {

std::int64_t parse_tokens(const std::string& option, const std::string& text) {
  constexpr std::string_view kSuffixes = "KMBT";  // thousand, million, billion, trillion
  constexpr double kThousand = 1000, kMost = 9e15;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::size_t power = suffix.size() == 1 ? kSuffixes.find(suffix.front()) : std::string_view::npos;
  const bool known = suffix.empty() || power != std::string_view::npos;
  if (known && !suffix.empty()) value *= std::pow(kThousand, static_cast<double>(power + 1));
  if (error != std::errc() || !known || !(value >= 1 && value <= kMost)) {
    throw base::Failure(
        base::ErrorKind::kUsage,
        fmt::format("{}: {} is no count of tokens; write 300B, 1.5T or 1000000", option, base::quote(text)));
  }
  return std::llround(value);
}

}  // namespace trivium::cli
