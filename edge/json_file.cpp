#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "edge/error.h"
#include "edge/files.h"
#include "edge/json_reader.h"
#include "edge/quote.h"

namespace trivium::edge {
namespace {

// Copying and printing a document recurse once per level; no format of ours nests deeper than a dozen.
constexpr int kDeepestNesting = 200;

/// Position of a byte as people count it, from 1.
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const std::size_t line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t last_break = before.rfind('\n');
  const std::size_t column = before.size() - (last_break == std::string_view::npos ? 0 : last_break + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

/// Offset of the first bracket that nests too deep, or npos. Brackets inside strings do not count.
std::size_t too_deep(std::string_view text) {
  int depth = 0;
  bool inside_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside_string) {
      if (c == '\\') ++i;
      if (c == '"') inside_string = false;
    } else if (c == '"') {
      inside_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestNesting) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::string_view::npos;
}

/// The part of the parser's message that tells what is wrong ("… syntax error while parsing value - unexpected ']'").
std::string reason(std::string_view message) {
  constexpr std::size_t kLongest = 160;
  if (const std::size_t dash = message.find(" - "); dash != std::string_view::npos) message.remove_prefix(dash + 3);
  std::string kept(message.substr(0, kLongest));
  for (char& c : kept) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';  // the cut may fall inside a character
  }
  return one_line(kept);
}

}  // namespace

nlohmann::json read_json_file(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  const auto fail = [&](const std::string& what) {
    throw Failure(ErrorKind::kInput, fmt::format("{}: {}", one_line(path.string()), what));
  };
  if (const std::size_t offset = too_deep(text); offset != std::string_view::npos) {
    fail(fmt::format("not readable JSON at {}: nested deeper than {} levels", line_and_column(text, offset),
                     kDeepestNesting));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    fail(fmt::format("not valid JSON at {}: {}", line_and_column(text, offset), reason(error.what())));
  } catch (const nlohmann::json::out_of_range& error) {
    // The only such error while parsing is a number beyond double ("number overflow parsing '1e999'").
    const std::string_view message = error.what();
    const std::size_t start = message.find("number overflow");
    fail(fmt::format("not readable JSON: {}",
                     reason(start == std::string_view::npos ? message : message.substr(start))));
  }
  return {};
}

}  // namespace trivium::edge
