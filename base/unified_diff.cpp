#include "base/unified_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace trivium::base {
namespace {

constexpr std::size_t kAround = 3;            // lines before and after a change
constexpr std::size_t kMostCells = 16 << 20;  // of the table; larger middles are replaced as a whole

/// Lines with their newlines.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct Line {
  char sign = ' ';
  std::string_view text;
};

/// The longest common subsequence of the lines between a common begin and a common end.
std::vector<Line> script_of(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  const std::size_t rows = a.size() - head - tail, columns = b.size() - head - tail;
  std::vector<Line> lines;
  for (std::size_t i = 0; i < head; ++i) lines.push_back({' ', a[i]});
  const bool is_small = rows == 0 || columns < kMostCells / rows;
  std::vector<std::vector<std::uint32_t>> common(is_small ? rows + 1 : 0, std::vector<std::uint32_t>(columns + 1));
  for (std::size_t i = is_small ? rows : 0; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      common[i][j] =
          a[head + i] == b[head + j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::size_t i = 0, j = 0;
  while (i < rows || j < columns) {
    if (is_small && i < rows && j < columns && a[head + i] == b[head + j]) {
      lines.push_back({' ', a[head + i]});
      ++i, ++j;
    } else if (i < rows && (j == columns || !is_small || common[i + 1][j] >= common[i][j + 1])) {
      lines.push_back({'-', a[head + i++]});
    } else {
      lines.push_back({'+', b[head + j++]});
    }
  }
  for (std::size_t k = a.size() - tail; k < a.size(); ++k) lines.push_back({' ', a[k]});
  return lines;
}

/// "12,5", as a hunk's header has it.
std::string range(std::size_t first, std::size_t count) {
  return fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, const std::string& name) {
  if (before == after) return "";
  const std::vector<Line> lines = script_of(lines_of(before), lines_of(after));
  std::string text = fmt::format("--- {0}\n+++ {0}\n", name);
  std::size_t old_at = 0, new_at = 0, at = 0;
  const auto next_change = [&](std::size_t from) {
    while (from < lines.size() && lines[from].sign == ' ') ++from;
    return from;
  };
  for (std::size_t change = next_change(0); change < lines.size();) {
    const std::size_t begin = std::max(at, change - std::min(change, kAround));
    old_at += begin - at, new_at += begin - at;
    std::size_t end = change;
    while (end < lines.size() && next_change(end) - end <= 2 * kAround && next_change(end) < lines.size()) {
      end = next_change(end) + 1;
    }
    end = std::min(lines.size(), end + kAround);
    std::string hunk;
    std::size_t old_count = 0, new_count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      hunk += lines[i].sign;
      hunk += lines[i].text;
      if (!lines[i].text.ends_with('\n')) hunk += "\n\\ No newline at end of file\n";
      old_count += lines[i].sign != '+' ? 1U : 0U;
      new_count += lines[i].sign != '-' ? 1U : 0U;
    }
    text += fmt::format("@@ -{} +{} @@\n{}", range(old_at, old_count), range(new_at, new_count), hunk);
    old_at += old_count, new_at += new_count, at = end;
    change = next_change(end);
  }
  return text;
}

}  // namespace trivium::base
