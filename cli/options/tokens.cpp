#include "cli/options/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/quote.h"
#include "base/units.h"

namespace trivium::cli {
namespace {

/// What a suffix multiplies by; 0: there is no such suffix.
double factor_of(std::string_view suffix) {
  constexpr std::string_view kDecimal = "kmbt", kBinary = "kmgt";  // thousand to trillion; kibi to tebi
  constexpr double kThousand = 1000, kKibi = 1024;
  if (suffix.empty()) return 1;
  const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(suffix.front())));
  const bool binary = suffix.size() == 2 && suffix.back() == 'i';
  const std::size_t power = (binary ? kBinary : kDecimal).find(letter);
  if (power == std::string_view::npos || suffix.size() > (binary ? 2U : 1U)) return 0;
  return std::pow(binary ? kKibi : kThousand, static_cast<double>(power + 1));
}

}  // namespace

std::int64_t parse_tokens(const std::string& option, const std::string& text) {
  constexpr double kMost = 9e15;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  value *= factor_of(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  if (error != std::errc() || !(value >= 1 && value <= kMost)) {
    throw base::Failure(
        base::ErrorKind::kUsage,
        fmt::format("{}: {} is no count of tokens; write 300B, 1.5T or 1000000", option, base::quote(text)));
  }
  return std::llround(value);
}

std::int64_t parse_size(const std::string& option, const std::string& text) {
  const bool bare =
      !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const auto size = base::parse_bytes(bare ? text + " B" : text);
  if (!size) throw base::Failure(base::ErrorKind::kUsage, fmt::format("{}: {}", option, size.error().message));
  return std::llround(size.value().value());
}

}  // namespace trivium::cli
