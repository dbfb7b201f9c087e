#include "hardware_profiles/price_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hardware_profiles/quantity_text.h"

namespace trivium::hardware {
namespace {

constexpr const char* kPrice = "/price";

/// A part of a node costs its share, which need not be whole cents.
base::DollarsPerHour to_cents(base::DollarsPerHour price) {
  constexpr double kCents = 100;
  return price.value() < 1 / kCents ? price : base::DollarsPerHour(std::round(price.value() * kCents) / kCents);
}

std::string prices(const Cluster& cluster, bool with_sources) {
  const auto same_name = [&](const NodeGroup& g) { return g.node.name == cluster.groups.front().node.name; };
  const bool alike = std::ranges::all_of(cluster.groups, same_name);
  std::vector<std::string> texts;
  for (const NodeGroup& group : cluster.groups) {
    const Node& node = group.node;
    if (!(node.price.value() > 0)) return "";
    const auto source = node.sources.find(kPrice);
    std::string text = fmt::format("{} a {}", exact_text(to_cents(node.price)), alike ? "node" : node.name);
    if (with_sources && source != node.sources.end()) text += ": " + source->second;
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string price_text(const Cluster& cluster) { return prices(cluster, true); }

std::string price_rates(const Cluster& cluster) { return prices(cluster, false); }

void set_device_price(Cluster& cluster, base::DollarsPerHour price, const std::string& source) {
  for (NodeGroup& group : cluster.groups) {
    group.node.price = price * group.node.devices;
    group.node.sources[kPrice] = source;
  }
}

}  // namespace trivium::hardware
