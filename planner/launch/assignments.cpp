// Settings that are assigned, in TOML and in Python.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "planner/launch/arguments.h"

namespace trivium::planner::launch {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// Up to the comment; `open`: how many brackets are open after it.
std::string_view without_comment(std::string_view line, int& open) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '#') return line.substr(0, i);
    if (c == '[' || c == '(' || c == '{') ++open;
    if (c == ']' || c == ')' || c == '}') --open;
  }
  return line;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  });
}

std::string unquoted(std::string_view text) {
  const bool is_quoted =
      text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
  return std::string(is_quoted ? text.substr(1, text.size() - 2) : text);
}

class AssignmentReader {
 public:
  AssignmentReader(std::string_view text, const std::string& where) : text_(text), where_(where) {
    script_.assigns = true;
  }

  Script read() {
    while (at_ < text_.size()) {
      const std::string_view line = next();
      if (line.empty() || kBlanks.find(line.front()) != std::string_view::npos) continue;
      statement(line);
    }
    return std::move(script_);
  }

 private:
  std::string_view next() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return line;
  }

  void statement(std::string_view line) {
    const int first = number_;
    int open = 0;
    std::string whole(without_blanks(without_comment(line, open)));
    while (open > 0) {
      if (at_ >= text_.size()) {
        throw base::Failure(base::ErrorKind::kInput,
                            fmt::format("{}: a bracket of line {} is never closed", where_, first));
      }
      whole += " ";
      whole += without_blanks(without_comment(next(), open));
    }
    if (whole.size() > 2 && whole.front() == '[' && whole.back() == ']') {
      section_ = std::string(without_blanks(std::string_view(whole).substr(1, whole.size() - 2))) + ".";
      return;
    }
    const std::size_t equals = whole.find('=');
    if (equals == std::string::npos) return;
    const std::string_view name = without_blanks(std::string_view(whole).substr(0, equals));
    const std::string_view value = without_blanks(std::string_view(whole).substr(equals + 1));
    if (is_name(name) && !value.empty()) script_.arguments.push_back({section_ + std::string(name), {unquoted(value)}});
  }

  std::string_view text_;
  const std::string& where_;
  Script script_;
  std::string section_;
  std::size_t at_ = 0;
  int number_ = 0;
};

}  // namespace

Script read_assignments(std::string_view text, const std::string& where) {
  return AssignmentReader(text, where).read();
}

std::map<std::string, std::string> keywords_of(std::string_view text, std::string_view function) {
  std::map<std::string, std::string> found;
  const std::size_t call = text.find(std::string(function) + "(");
  if (call == std::string_view::npos) return found;
  std::size_t begin = call + function.size() + 1;
  int depth = 0;
  for (std::size_t i = begin; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ')';
    if (c == '(' || c == '[') ++depth;
    if (depth == 0 && (c == ',' || c == ')')) {
      std::string pair(text.substr(begin, i - begin));
      std::ranges::replace(pair, '\n', ' ');
      const std::size_t equals = pair.find('=');
      if (equals != std::string::npos) {
        const std::string_view whole = pair;
        found[std::string(without_blanks(whole.substr(0, equals)))] =
            unquoted(without_blanks(whole.substr(equals + 1)));
      }
      begin = i + 1;
      if (c == ')') break;
    }
    if (c == ')' || c == ']') --depth;
  }
  return found;
}

}  // namespace trivium::planner::launch
