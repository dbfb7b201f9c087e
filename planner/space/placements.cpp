#include "planner/space/placements.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace trivium::planner {
namespace {

using program::Plan;

constexpr std::array<std::string_view, 4> kNames{"tensor", "context", "data", "pipeline"};

std::array<int, 4> extents_of(const Plan& split) { return {split.tensor, split.context, split.data, split.pipeline}; }

// Dimensions above 1, innermost first.
std::vector<int> order_of(const Plan& split, std::string_view placement) {
  std::vector<std::pair<std::size_t, int>> places;
  for (int d = 0; d < 4; ++d) {
    const auto dimension = static_cast<std::size_t>(d);
    if (extents_of(split)[dimension] > 1) places.emplace_back(placement.find(kNames[dimension]), d);
  }
  std::sort(places.begin(), places.end());
  std::vector<int> order;
  for (const auto& [place, dimension] : places) order.push_back(dimension);
  return order;
}

}  // namespace

std::vector<std::string> placements_of(const Plan& split) {
  std::set<std::vector<int>> seen;
  std::vector<std::string> found;
  std::array<int, 4> order{0, 1, 2, 3};
  do {
    std::string text;
    for (const int d : order) text += (text.empty() ? "" : "-") + std::string(kNames[static_cast<std::size_t>(d)]);
    if (seen.insert(order_of(split, text)).second) found.push_back(std::move(text));
  } while (std::next_permutation(order.begin(), order.end()));
  return found;
}

Seating seating_of(const Plan& split, const std::string& placement, const hardware::Cluster& cluster) {
  const hardware::Node& node = cluster.groups.front().node;
  std::vector<int> levels{node.devices};  // ranks that a node holds, and a leaf switch
  if (node.leaf_nodes > 0) levels.push_back(node.devices * node.leaf_nodes);
  const std::vector<int> order = order_of(split, placement);
  const auto alone = [&] {
    Seating own;
    for (const int d : order) own.push_back({{d, extents_of(split)[static_cast<std::size_t>(d)]}});
    return own;
  };
  Seating seating(1);
  std::int64_t inside = 1;  // ranks among which the pieces so far tell
  for (const int d : order) {
    int left = extents_of(split)[static_cast<std::size_t>(d)];
    while (seating.size() <= levels.size() && inside * left > levels[seating.size() - 1]) {
      const int level = levels[seating.size() - 1];
      const auto piece = static_cast<int>(level / inside);
      if (level % inside != 0 || left % piece != 0) return alone();
      if (piece > 1) seating.back().emplace_back(d, piece);
      left /= piece;
      inside = level;
      seating.emplace_back();
    }
    if (left > 1) seating.back().emplace_back(d, left);
    inside *= left;
  }
  for (auto& level : seating) std::sort(level.begin(), level.end());
  return seating;
}

}  // namespace trivium::planner
