#include "gui/model/alteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gui/model/cluster_edit.h"
#include "hardware_profiles/load.h"

namespace trivium::gui {
namespace {

constexpr const char* kAltered = ", altered";

/// As its profile has it; none where no profile of that name is known.
std::optional<hardware::Node> stock_of(const hardware::Node& node) {
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), node.name) != names.end();
  };
  if (!is_in(hardware::shipped_profiles()) && !is_in(hardware::user_profiles())) return std::nullopt;
  try {
    return hardware::load_node(node.name);
  } catch (const base::Failure&) {
    return std::nullopt;  // a profile of the user's that is broken now
  }
}

/// What the two say, without where they have it from: a file keeps values, and may have lost the way to them.
nlohmann::json values_of(const hardware::Node& node) {
  nlohmann::json json = hardware::to_json(node);
  json.erase("sources");
  return json;
}

std::vector<std::string> changes_of(const hardware::Node& node, const hardware::Node& stock) {
  std::vector<std::string> changes;
  for (int c = 0; c < kNodeConstants; ++c) {
    const auto constant = static_cast<NodeConstant>(c);
    const std::string now = text_of(node, constant), before = text_of(stock, constant);
    if (now != before)
      changes.push_back(fmt::format("{}: {} {} instead of {}", node.name, words_of(constant), now, before));
  }
  if (changes.empty()) changes.push_back(fmt::format("{}: constants that no field here shows", node.name));
  return changes;
}

}  // namespace

bool is_altered(const hardware::Node& node) {
  const std::optional<hardware::Node> stock = stock_of(node);
  return stock && values_of(*stock) != values_of(node);
}

std::string nodes_text(const hardware::Cluster& cluster) {
  std::string text;
  for (const hardware::NodeGroup& group : cluster.groups) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : "+", group.node.name, group.count);
  }
  return text;
}

std::optional<Alteration> alteration(const hardware::Cluster& cluster) {
  Alteration found;
  for (const hardware::NodeGroup& group : cluster.groups) {
    const std::optional<hardware::Node> stock = stock_of(group.node);
    if (!stock) return std::nullopt;  // there would be no way back
    if (values_of(*stock) == values_of(group.node)) continue;
    for (std::string& change : changes_of(group.node, *stock)) found.changes.push_back(std::move(change));
  }
  if (found.changes.empty()) return std::nullopt;
  found.stock = nodes_text(cluster);
  return found;
}

hardware::Cluster named_by_its_nodes(hardware::Cluster cluster) {
  const auto is_known = [](const hardware::NodeGroup& group) { return stock_of(group.node).has_value(); };
  if (std::none_of(cluster.groups.begin(), cluster.groups.end(), is_known)) return cluster;
  cluster.name = nodes_text(cluster) + (alteration(cluster) ? kAltered : "");
  return cluster;
}

}  // namespace trivium::gui
