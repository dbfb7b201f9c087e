#include "calibration/measurements/text_lines.h"

#include <charconv>
#include <cmath>
#include <regex>

namespace trivium::calibration::imports {
namespace {

std::string without_escapes(std::string_view line) {
  std::string clean;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      clean += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() && (line[i + 1] < '@' || line[i + 1] > '~')) ++i;
    if (i + 1 < line.size()) ++i;  // the letter that ends it
  }
  return clean;
}

std::string without_rank(std::string line) {
  static const std::regex kMark(R"(^(\[\d+,\d+\]<std(out|err)>:|\[default\d+\]:|\[rank\d+\]:|\d+: ))");
  std::smatch mark;
  if (line.size() < 4096 && std::regex_search(line, mark, kMark)) return mark.suffix().str();
  return line;
}

}  // namespace

TextLines lines_of(std::string_view text) {
  TextLines result;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = text.find_first_of("\r\n", at);
    result.is_last_whole = end != std::string_view::npos;
    if (!result.is_last_whole) end = text.size();
    if (end > at) result.lines.push_back(without_rank(without_escapes(text.substr(at, end - at))));
    at = end + 1;
  }
  return result;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t found = line.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  const std::size_t begin = line.find_first_not_of(' ', found + key.size());
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = std::min(line.find_first_not_of("0123456789.eE+-", begin), line.size());
  return number_of(line.substr(begin, end - begin));
}

}  // namespace trivium::calibration::imports
