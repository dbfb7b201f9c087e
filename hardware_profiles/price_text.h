// What nodes cost, in words: a price is worth as much as its source and date.
#pragma once

#include <string>

#include "hardware_profiles/hardware.h"

namespace trivium::hardware {

/// "98.32 $/h a node: SOURCE"; on a cluster of heterogeneous nodes "… a NAME: SOURCE; …", each once. Empty where a node
/// has no price.
std::string price_text(const Cluster& cluster);

/// The same without the sources: "98.32 $/h a node".
std::string price_rates(const Cluster& cluster);

/// Puts a price of one device for an hour in the place of what the profiles say of nodes.
void set_device_price(Cluster& cluster, base::DollarsPerHour price, const std::string& source);

}  // namespace trivium::hardware
