#include "simulator/certainty/measured_machine.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "hardware_profiles/load.h"

namespace trivium::simulator {
namespace {

/// All that a prediction of time depends on: not what the profile is called, who says so, what the node costs, nor how
/// much of its memory a search fills.
std::string constants_of(hardware::Node node) {
  node.name.clear(), node.sources.clear(), node.price = {}, node.device.usable = 1;
  return hardware::to_json(node).dump();
}

/// Names of the shipped profiles by their constants; of equal ones the first.
const std::map<std::string, std::string>& shipped_by_constants() {
  static const std::map<std::string, std::string> kShipped = [] {
    std::map<std::string, std::string> shipped;
    for (const std::string& name : hardware::shipped_profiles()) {
      shipped.try_emplace(constants_of(hardware::load_node(name)), name);
    }
    return shipped;
  }();
  return kShipped;
}

}  // namespace

std::string measured_machine(const hardware::Node& node, const TimeErrors& errors) {
  const auto measured = [&](const std::string& name) {
    return std::ranges::any_of(errors.cells(), [&](const RunCell& cell) { return cell.like.machine == name; });
  };
  if (measured(node.name)) return node.name;
  const auto base = std::ranges::find_if(node.bases, measured);
  if (base != node.bases.end()) return *base;
  const auto same = shipped_by_constants().find(constants_of(node));
  return same != shipped_by_constants().end() && measured(same->second) ? same->second : node.name;
}

}  // namespace trivium::simulator
