#include "calibration/validate/groups.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace trivium::calibration {

ValidationGroup group_of(std::string by, std::string name, std::span<const Pair> pairs) {
  ValidationGroup group;
  group.by = std::move(by);
  group.name = std::move(name);
  group.cases = static_cast<int>(pairs.size());
  std::vector<double> absolute;
  for (const Pair& pair : pairs) {
    absolute.push_back(std::abs(pair.error()));
    group.bias += pair.error() / static_cast<double>(pairs.size());
    group.measured += pair.measured / static_cast<double>(pairs.size());
    group.predicted += pair.predicted / static_cast<double>(pairs.size());
    group.mape += absolute.back() / static_cast<double>(pairs.size());
    group.max = std::max(group.max, absolute.back());
  }
  group.median = median(absolute);
  group.spearman = spearman(pairs);
  return group;
}

}  // namespace trivium::calibration
