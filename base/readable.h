// Figures as text for people: one form for the command line, the desktop program and reports.
#pragma once

#include <cstdint>
#include <string>

namespace trivium::base {

std::string percent(double share);     ///< "51.4 %"
std::string size(std::int64_t bytes);  ///< "61.0 GiB"
std::string integer(double value);     ///< "1,234,567"
std::string seconds(double value);     ///< "32.4 s"
/// In the unit in which `beside` is shown: the end of an interval beside its middle.
std::string seconds_beside(double value, double beside);
std::string dollars(double value);     ///< three digits: "$11.1M", "$2.60M", "$84,200", "$12.5"
std::string energy(double joules);     ///< "8,120 MWh", "12 kWh", "3.2 Wh"
std::string duration(double seconds);  ///< of a training, for people: "33.9 days", "2.5 hours"

}  // namespace trivium::base
