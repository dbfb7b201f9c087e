// Where quoted parts of shell text end.
#include <cctype>

#include "planner/launch/shell/syntax.h"

namespace trivium::planner::launch::shell {
namespace {

constexpr int kMostNested = 64;

std::size_t end_of_part(std::string_view text, std::size_t at, int depth);

[[noreturn]] void unclosed(const char* what) { throw SyntaxError{0, std::string(what) + " is never closed"}; }

/// From after the opening bracket to after its partner, over quotes and brackets inside.
std::size_t end_of_brackets(std::string_view text, std::size_t at, char open, char close, int depth) {
  if (depth > kMostNested) throw SyntaxError{0, "brackets nest too deep"};
  int nested = 1;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\\' || c == '\'' || c == '"' || c == '`' || c == '$') {
      // A single quote inside ${…} is only itself in bash when the whole is in double quotes: words like ${X:-it's}.
      if (c == '\'' && open == '{' && text.find('\'', at + 1) == std::string_view::npos) {
        ++at;
        continue;
      }
      at = end_of_part(text, at, depth + 1);
      continue;
    }
    if (c == '#' && open == '(' && at > 0 && std::isspace(static_cast<unsigned char>(text[at - 1])) != 0) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == open) ++nested;
    if (c == close && --nested == 0) return at + 1;
    ++at;
  }
  unclosed(open == '(' ? "$(" : "${");
}

std::size_t end_of_quotes(std::string_view text, std::size_t at, int depth) {
  for (++at; at < text.size();) {
    const char c = text[at];
    if (c == '"') return at + 1;
    if (c == '\\') {
      at += 2;
    } else if (c == '$' || c == '`') {
      at = end_of_part(text, at, depth + 1);
    } else {
      ++at;
    }
  }
  unclosed("a double quote");
}

std::size_t end_of_expansion(std::string_view text, std::size_t at, int depth) {
  if (at + 1 >= text.size()) return at + 1;
  const char next = text[at + 1];
  if (next == '(') return end_of_brackets(text, at + 2, '(', ')', depth);
  if (next == '{') return end_of_brackets(text, at + 2, '{', '}', depth);
  if (next == '\'') {
    for (std::size_t i = at + 2; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '\'') {
        return i + 1;
      }
    }
    unclosed("$'");
  }
  if (next == '"') return end_of_quotes(text, at + 1, depth);
  if (is_name_start(next)) {
    std::size_t end = at + 1;
    while (end < text.size() && is_name_part(text[end])) ++end;
    return end;
  }
  const bool special = std::isdigit(static_cast<unsigned char>(next)) != 0 ||
                       std::string_view("@*#?$!-").find(next) != std::string_view::npos;
  return at + (special ? 2 : 1);
}

std::size_t end_of_part(std::string_view text, std::size_t at, int depth) {
  if (depth > kMostNested) throw SyntaxError{0, "quotes nest too deep"};
  switch (text[at]) {
    case '\\':
      return std::min(at + 2, text.size());
    case '\'':
      return end_of_single(text, at);
    case '"':
      return end_of_quotes(text, at, depth);
    case '`':
      return end_of_backticks(text, at);
    default:
      return end_of_expansion(text, at, depth);
  }
}

}  // namespace

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t end_of_single(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('\'', at + 1);
  if (end == std::string_view::npos) unclosed("a single quote");
  return end + 1;
}

std::size_t end_of_double(std::string_view text, std::size_t at) { return end_of_quotes(text, at, 0); }

std::size_t end_of_backticks(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '`') {
      return at + 1;
    }
  }
  unclosed("a backtick");
}

std::size_t end_of_dollar(std::string_view text, std::size_t at) { return end_of_expansion(text, at, 0); }

}  // namespace trivium::planner::launch::shell
