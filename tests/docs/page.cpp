#include "tests/docs/page.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>
#include <sstream>

namespace trivium::docs {
namespace {

constexpr std::string_view kAnything = "…";

// Without blanks at its end, which nobody sees in a page.
std::string trimmed_end(std::string line) {
  line.erase(line.find_last_not_of(" \t\r") + 1);
  return line;
}

// A line with "…" against a line: parts in turn, the first at the beginning, the last at the end.
bool matches(std::string_view shown, std::string_view line) {
  std::size_t gap = shown.find(kAnything);
  if (gap == std::string_view::npos) return shown == line;
  if (line.substr(0, gap) != shown.substr(0, gap)) return false;
  line.remove_prefix(gap);
  shown.remove_prefix(gap + kAnything.size());
  while ((gap = shown.find(kAnything)) != std::string_view::npos) {
    const std::size_t at = line.find(shown.substr(0, gap));
    if (at == std::string_view::npos) return false;
    line.remove_prefix(at + gap);
    shown.remove_prefix(gap + kAnything.size());
  }
  return line.ends_with(shown);
}

using Lines = std::vector<std::string>;

bool shows_from(const Lines& shown, std::size_t i, const Lines& lines, std::size_t j) {
  if (i == shown.size()) return j == lines.size();
  if (shown[i] == kAnything) {
    for (std::size_t next = j; next <= lines.size(); ++next) {
      if (shows_from(shown, i + 1, lines, next)) return true;
    }
    return false;
  }
  return j < lines.size() && matches(shown[i], lines[j]) && shows_from(shown, i + 1, lines, j + 1);
}

// The language of a fence that opens a block; nothing where the line is no fence.
std::optional<std::string> fence(const std::string& line) {
  const std::size_t start = line.find_first_not_of(' ');
  if (start == std::string::npos || line.compare(start, 3, "```") != 0) return std::nullopt;
  return line.substr(start + 3);
}

// Calls in one piece of text: up to a comment, a pipe or another command.
void add_calls(const std::string& text, int line, std::vector<NamedCommand>& calls) {
  static const std::regex kCall(R"((?:^|[\s(])(trivium|\./dev) ([a-z][^#|&;<>()`]*))");
  for (std::sregex_iterator call(text.begin(), text.end(), kCall), end; call != end; ++call) {
    NamedCommand named{line, {}, (*call)[1] == "./dev"};
    std::istringstream words((*call)[2]);
    for (std::string word; words >> word;) named.words.push_back(word);
    calls.push_back(std::move(named));
  }
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(trimmed_end(std::move(line)));
  return lines;
}

std::vector<ShownCommand> shown_commands(const std::string& page) {
  std::vector<ShownCommand> commands;
  bool console = false, inside = false;
  int number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (const auto language = fence(line)) {
      inside = !inside;
      console = inside && *language == "console";
    } else if (console && line.starts_with("$ ")) {
      commands.push_back({number, line.substr(2), {}});
    } else if (console && line.starts_with("> ") && !commands.empty()) {
      commands.back().command += "\n" + line.substr(2);
    } else if (console && !commands.empty()) {
      commands.back().output.push_back(line);
    }
  }
  for (ShownCommand& command : commands) {
    while (!command.output.empty() && command.output.back().empty()) command.output.pop_back();
  }
  return commands;
}

std::vector<NamedCommand> named_commands(const std::string& page) {
  static const std::regex kSpan("`([^`]+)`");
  std::vector<NamedCommand> calls;
  std::optional<std::string> block;
  int number = 0;
  std::string joined;  // a command that continues after a backslash
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (const auto language = fence(line)) {
      block = block ? std::nullopt : language;
    } else if (block && (*block == "sh" || *block == "console")) {
      joined += line.starts_with("> ") ? line.substr(2) : line;
      if (joined.ends_with("\\")) {
        joined.back() = ' ';
        continue;
      }
      add_calls(joined, number, calls);
      joined.clear();
    } else if (!block) {
      for (std::sregex_iterator span(line.begin(), line.end(), kSpan), end; span != end; ++span) {
        add_calls((*span)[1], number, calls);
      }
    }
  }
  return calls;
}

std::vector<Link> links(const std::string& page) {
  static const std::regex kLink(R"(\]\(([^)\s#]*)(?:#([^)\s]+))?\))");
  std::vector<Link> found;
  bool inside = false;
  int number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (fence(line)) inside = !inside;
    if (inside) continue;
    for (std::sregex_iterator link(line.begin(), line.end(), kLink), end; link != end; ++link) {
      if ((*link)[1].str().find("://") == std::string::npos) found.push_back({number, (*link)[1], (*link)[2]});
    }
  }
  return found;
}

std::set<std::string> anchors(const std::string& page) {
  static const std::regex kHeading("#+ +(.*)");
  std::set<std::string> found;
  bool inside = false;
  for (const std::string& line : lines_of(page)) {
    if (fence(line)) inside = !inside;
    std::smatch heading;
    if (inside || !std::regex_match(line, heading, kHeading)) continue;
    std::string anchor;
    for (const unsigned char c : heading[1].str()) {
      if (c == ' ') anchor += '-';
      if (c >= 0x80 || std::isalnum(c) != 0 || c == '-' || c == '_') anchor += static_cast<char>(std::tolower(c));
    }
    found.insert(anchor);
  }
  return found;
}

bool shows(const Lines& shown, const Lines& lines) { return shows_from(shown, 0, lines, 0); }

std::vector<std::filesystem::path> pages(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> all{root / "README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  }
  std::sort(all.begin() + 1, all.end());
  return all;
}

}  // namespace trivium::docs
