#include "calibration/measurements/json_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace trivium::calibration::imports {
namespace {

using nlohmann::json;

/// A copy in which bare NaN, Infinity and -Infinity are null and blanks, position by position.
std::string without_nan(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords{"-Infinity", "Infinity", "NaN"};
  std::string clean(text);
  bool quoted = false;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if (quoted && clean[i] == '\\') {
      ++i;
    } else if (clean[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (clean[i] == 'N' || clean[i] == 'I' || clean[i] == '-')) {
      const auto word =
          std::find_if(kWords.begin(), kWords.end(), [&](std::string_view w) { return text.substr(i, w.size()) == w; });
      if (word == kWords.end()) continue;
      constexpr std::string_view kNull = "null     ";
      // "NaN" is shorter than "null": what follows a value is never needed to be a blank, so the 0 does.
      clean.replace(i, word->size(), word->size() < 4 ? std::string_view("0  ") : kNull.substr(0, word->size()));
    }
  }
  return clean;
}

}  // namespace

JsonList read_list(std::string_view text, const std::string& list, const std::function<void(json&&)>& take) {
  JsonList result;
  std::string key;  // the member of the document that is being read
  const auto on_event = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::key && depth == 1) {
      key = parsed.get<std::string>();
      return true;
    }
    const bool ends = event == Event::object_end || event == Event::array_end || event == Event::value;
    if (ends && depth == 2 && key == list) {
      take(std::move(parsed));
      return false;
    }
    if (ends && depth == 1 && key != list) result.head[key] = parsed;
    return true;
  };
  const std::string clean = without_nan(text);
  try {
    [[maybe_unused]] const json rest = json::parse(clean, on_event);
  } catch (const json::parse_error& broken) {
    result.is_whole = false;
    result.fault = fmt::format("byte {}", broken.byte);
  } catch (const json::exception&) {  // a number beyond any
    result.is_whole = false;
    result.fault = "a number that is too large";
  }
  return result;
}

}  // namespace trivium::calibration::imports
