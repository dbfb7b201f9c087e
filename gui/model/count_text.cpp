#include "gui/model/count_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/readable.h"

namespace trivium::gui {
namespace {

constexpr double kMostExact = 9007199254740992.0;  // 2^53: every whole number up to here is a double

constexpr std::pair<const char*, double> kUnits[] = {
    {"", 1},    {"k", 1e3}, {"thousand", 1e3}, {"m", 1e6},  {"million", 1e6},
    {"b", 1e9}, {"g", 1e9}, {"billion", 1e9},  {"t", 1e12}, {"trillion", 1e12}};

}  // namespace

std::optional<std::int64_t> parse_count(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != ',' && c != ' ') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  // strtod also reads "inf", "nan" and "0x1p3".
  if (plain.empty() || (std::isdigit(static_cast<unsigned char>(plain[0])) == 0 && plain[0] != '.') ||
      plain.find('x') != std::string::npos) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double number = std::strtod(plain.c_str(), &end);
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const auto& known) { return std::string(end) == known.first; });
  if (end == plain.c_str() || unit == std::end(kUnits)) return std::nullopt;
  const double count = number * unit->second;
  if (!(count >= 0 && count < kMostExact) || count != std::floor(count)) return std::nullopt;
  return static_cast<std::int64_t>(count);
}

std::string count_text(std::int64_t count) { return base::integer(static_cast<double>(count)); }

}  // namespace trivium::gui
