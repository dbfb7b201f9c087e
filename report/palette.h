// Colours as 0xRRGGBB: those of Okabe and Ito ("Color Universal Design", 2008), which colour-blind readers tell apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "simulator/iteration/breakdown.h"

namespace trivium::report {

/// Blue, orange, green, purple, light blue, vermilion, yellow, grey.
constexpr std::array<std::uint32_t, 8> kSeries{0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7,
                                               0x56b4e9, 0xd55e00, 0xf0e442, 0x8c8c8c};
constexpr std::uint32_t kAlarm = 0xd52b1e;  ///< what is wrong: more memory than there is
constexpr std::uint32_t kIdle = 0xb4b9c0;

/// The same part of an iteration has the same colour in the desktop program and in reports.
std::uint32_t colour_of(simulator::Part part);
/// "#0072b2".
std::string hex(std::uint32_t colour);

}  // namespace trivium::report
