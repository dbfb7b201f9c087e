#include "planner/launch/shell/pattern.h"

#include <tuple>
#include <utility>
#include <vector>

namespace trivium::planner::launch::shell {
namespace {

// Patterns and texts longer than this are not a launch file's: matching takes their product.
constexpr std::size_t kLongestMatch = 4096;

/// One past the set that begins at pattern[at], and whether it holds c.
std::pair<std::size_t, bool> in_set(std::string_view pattern, std::size_t at, char c) {
  std::size_t i = at + 1;
  const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (inverted) ++i;
  bool found = false;
  for (std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  if (i >= pattern.size()) return {at + 1, c == '['};
  return {i + 1, found != inverted};
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.size() > kLongestMatch || text.size() > kLongestMatch) return pattern == text;
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    std::size_t next = p;
    bool fits = false;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
      continue;
    }
    if (p < pattern.size()) {
      if (pattern[p] == '?') {
        fits = true, next = p + 1;
      } else if (pattern[p] == '[') {
        std::tie(next, fits) = in_set(pattern, p, text[t]);
      } else {
        const std::size_t at = pattern[p] == '\\' && p + 1 < pattern.size() ? p + 1 : p;
        fits = pattern[at] == text[t], next = at + 1;
      }
    }
    if (fits) {
      p = next, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string without_prefix(const std::string& text, std::string_view pattern, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t size = longest ? text.size() - i : i;
    if (matches(pattern, std::string_view(text).substr(0, size))) return text.substr(size);
  }
  return text;
}

std::string without_suffix(const std::string& text, std::string_view pattern, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t size = longest ? i : text.size() - i;
    if (matches(pattern, std::string_view(text).substr(size))) return text.substr(0, size);
  }
  return text;
}

std::string replaced(const std::string& text, std::string_view pattern, std::string_view by, bool all) {
  if (pattern.empty() || text.size() > kLongestMatch) return text;
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t size = text.size() - at;
    while (size > 0 && !matches(pattern, std::string_view(text).substr(at, size))) --size;
    if (size == 0) {
      result += text[at++];
      continue;
    }
    result += by;
    at += size;
    if (!all) return result + text.substr(at);
  }
  return result;
}

}  // namespace trivium::planner::launch::shell
