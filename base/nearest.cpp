#include <algorithm>
#include <cctype>
#include <vector>

#include "base/json_reader.h"

namespace trivium::base {
namespace {

// No name of ours is longer; the comparison is quadratic, so absurd input stops here.
constexpr std::size_t kLongestName = 100;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Optimal string alignment distance without regard to case: insert, delete, replace, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// "dgx-a100" is a prefix of "dgx-a100-80gb": a family, where no other name is nearer.
bool begins_with_family(std::string_view name, std::string_view word) {
  constexpr std::size_t kShortest = 4;
  if (word.size() < kShortest || name.size() <= word.size() || (name[word.size()] != '-' && name[word.size()] != '_'))
    return false;
  return std::equal(word.begin(), word.end(), name.begin(), [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestName) return "";
  const auto member = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const auto& name) { return begins_with_family(name, word); });
  if (member != candidates.end()) return *member;
  std::string best;
  std::size_t best_distance = kLongestName;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const std::size_t distance = edit_distance(word, candidate);
    // A third of the letters may differ; beyond that a suggestion misleads more than it helps.
    const std::size_t limit = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (distance <= limit && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace trivium::base
