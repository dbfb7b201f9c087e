#include "cli/render/page.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "cli/render/render.h"

namespace trivium::cli {
namespace {

constexpr std::size_t kUsualColumns = 80, kFewestColumns = 60, kMostColumns = 120;
constexpr std::size_t kLabel = 11;  // columns of a row's label and the gap behind it
constexpr std::size_t kIndent = 2;
constexpr std::string_view kCut = " …";

std::optional<std::size_t> environment_columns() {
  const char* text = std::getenv("COLUMNS");
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
  if (error != std::errc() || end != digits.data() + digits.size() || columns == 0) return std::nullopt;
  return columns;
}

std::size_t terminal_columns() {
  if (const auto columns = environment_columns()) return *columns;
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

/// How many bytes the first `columns` characters have.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if (!continues_character(text[at]) && seen++ == columns) break;
  }
  return at;
}

/// Whether the word is the unit of the figure before it, which stays on its line.
bool is_unit_of(std::string_view figure, std::string_view word) {
  static constexpr std::string_view kUnits[] = {
      "s",   "ms",  "us",  "min", "h", "days",   "hours", "%", "B",      "KiB",      "MiB",     "GiB",
      "TiB", "MWh", "kWh", "Wh",  "x", "points", "$/h",   "K", "tokens", "tokens/s", "million", "billion"};
  const auto letter = [](char c) { return c != '(' && c != ')' && c != ',' && c != '.' && c != ';' && c != ':'; };
  while (!word.empty() && !letter(word.back())) word.remove_suffix(1);
  return !figure.empty() && std::isdigit(static_cast<unsigned char>(figure.back())) != 0 &&
         std::ranges::find(kUnits, word) != std::end(kUnits);
}

/// The words of the text, figures with their units.
std::vector<std::string> words_to_wrap(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    if (!words.empty() && is_unit_of(words.back(), word)) {
      words.back() += " " + word;
    } else {
      words.push_back(std::move(word));
    }
  }
  return words;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::size_t page_columns() { return std::clamp(terminal_columns(), kFewestColumns, kMostColumns); }

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  const std::size_t room = columns > indent ? columns - indent : 1;
  std::string out;
  std::size_t used = 0;
  const auto new_line = [&] {
    out += "\n" + std::string(indent, ' ');
    used = 0;
  };
  for (std::string& word : words_to_wrap(text)) {
    if (used > 0 && used + 1 + columns_of(word) > room) new_line();
    if (used > 0) out += " ", ++used;
    for (; columns_of(word) > room; new_line()) {
      const std::size_t bytes = bytes_of(word, room);
      out += word.substr(0, bytes);
      word.erase(0, bytes);
    }
    out += word;
    used += columns_of(word);
  }
  return out;
}

std::string cut(const std::string& text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  const std::size_t room = columns - std::min(columns, columns_of(kCut));
  std::string kept = text.substr(0, bytes_of(text, room + 1));
  kept.resize(std::min(kept.rfind(' '), bytes_of(kept, room)));
  return kept + std::string(kCut);
}

void Page::answer(const std::string& sentence) {
  for (const std::string& line : split_lines(wrapped(sentence, 0, columns_))) lines_.push_back(heading(line));
}

void Page::row(const std::string& label, const std::string& text, std::size_t most) {
  if (text.empty()) return;
  const std::size_t indent = kIndent + kLabel;
  std::vector<std::string> lines = split_lines(wrapped(text, indent, columns_));
  lines.front() = fmt::format("{:{}}{:<{}}{}", "", kIndent, label, kLabel, lines.front());
  if (lines.size() > most) {
    lines.resize(most);
    std::string& last = lines.back();
    while (columns_of(last) + columns_of(kCut) > columns_ && last.rfind(' ') > indent) last.erase(last.rfind(' '));
    last += kCut;
  }
  lines_.insert(lines_.end(), lines.begin(), lines.end());
}

void Page::block(const std::string& lines) {
  for (std::string& line : split_lines(lines)) lines_.push_back(std::move(line));
}

void Page::gap() {
  if (!lines_.empty() && !lines_.back().empty()) lines_.emplace_back();
}

std::size_t Page::lines() const {
  const std::string all = text();
  return static_cast<std::size_t>(std::ranges::count(all, '\n'));
}

std::size_t Page::full_lines() const {
  return static_cast<std::size_t>(std::ranges::count_if(lines_, [](const auto& line) { return !line.empty(); }));
}

std::string Page::text(std::size_t most) const {
  std::vector<std::string> lines = lines_;
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  while (lines.size() > most) {
    const auto gap = std::find(lines.rbegin(), lines.rend(), "");
    if (gap == lines.rend()) break;
    lines.erase(std::next(gap).base());
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace trivium::cli
