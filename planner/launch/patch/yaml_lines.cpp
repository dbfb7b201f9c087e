// Arguments of a command line as YAML: one on a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "planner/launch/patch/rewrites.h"

namespace trivium::planner::launch::patch {
namespace {

/// A line `  --name: value  # comment`.
struct ArgumentLine {
  Span whole;  ///< with its newline
  std::string indent;
  Span value;
};

std::optional<ArgumentLine> argument_line(const std::string& text, const std::string& name) {
  const std::string key = "--" + name + ":";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = text.find_first_not_of(' ', at);
    std::string written = first < end ? text.substr(first, key.size()) : "";
    std::replace(written.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, written.size())), written.end(),
                 '_', '-');
    if (written == key && first > at) {
      const std::size_t begin = std::min(text.find_first_not_of(' ', first + key.size()), end);
      const std::size_t comment = std::min(text.find(" #", begin), end);
      std::size_t last = comment;
      while (last > begin && (text[last - 1] == ' ' || text[last - 1] == '\r')) --last;
      return ArgumentLine{{at, std::min(end + 1, text.size())}, text.substr(at, first - at), {begin, last}};
    }
    at = end + 1;
  }
  return std::nullopt;
}

std::string yaml_value(const std::vector<std::string>& values) {
  if (values.empty()) return "true";
  const std::string all = fmt::format("{}", fmt::join(values, " "));
  const bool is_plain = all.find_first_of("|*[]{}()#:,") == std::string::npos;
  return is_plain ? all : "\"" + all + "\"";
}

}  // namespace

Texts with_argument_line(const std::string& text, const std::string& name, const std::vector<std::string>& values,
                         const std::vector<std::string>& anchors) {
  if (const auto line = argument_line(text, name)) return {replaced(text, line->value, yaml_value(values))};
  for (const std::string& anchor : anchors) {
    const auto line = argument_line(text, anchor);
    if (!line) continue;
    const std::string added = line->indent + "--" + name + ": " + yaml_value(values) + "\n";
    return {replaced(text, {line->whole.end, line->whole.end}, added)};
  }
  return {};
}

Texts without_argument_line(const std::string& text, const std::string& name) {
  const auto line = argument_line(text, name);
  return line ? Texts{replaced(text, line->whole, "")} : Texts{};
}

}  // namespace trivium::planner::launch::patch
