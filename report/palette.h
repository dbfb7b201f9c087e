// Colours as 0xRRGGBB, the same in the desktop program and in reports.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "simulator/iteration/breakdown.h"

namespace trivium::report {

/// What work is, wherever it is drawn. Foreign kernels and parts of memory, which never appear together with these,
/// reuse their colours.
enum class Kind : std::uint8_t {
  kForward,
  kBackward,
  kRecompute,
  kOptimizer,
  kTensor,
  kContext,
  kExpert,
  kData,
  kPipeline,
  kOffload,
  kWaiting,  ///< for a partner or another stage
  kOther
};

/// Every two of them differ by 14 or more in CIEDE2000, and by 16 from the grounds of both themes, also for people with
/// protanopia, deuteranopia and tritanopia, and none is darker than 1.45 times the dark grounds by WCAG's contrast:
/// found by annealing from the hues of Okabe and Ito, held by a test.
constexpr std::array<std::uint32_t, 12> kKinds{0x095991, 0x16d290, 0xb6c9ff, 0xffe413, 0xde9000, 0x706700,
                                               0xdc4659, 0x2e977b, 0xaa67fd, 0x653e29, 0xa8abb4, 0x595e68};
constexpr std::uint32_t colour_of(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

/// Work of other trainers' kernels.
constexpr Kind kProductKind = Kind::kForward, kAttentionKind = Kind::kBackward, kElementwiseKind = Kind::kRecompute,
               kNormKind = Kind::kExpert, kCollectiveKind = Kind::kTensor;
/// Parameters, gradients, optimizer states, activations, workspace, what the device reserves.
constexpr std::array<Kind, 6> kMemoryKinds{Kind::kForward,   Kind::kBackward, Kind::kOptimizer,
                                           Kind::kRecompute, Kind::kExpert,   Kind::kOther};

/// The i-th thing of many: blue, orange, green, purple, light blue, vermilion, yellow, grey. Those of Okabe and Ito
/// ("Color Universal Design", 2008), which colour-blind readers can distinguish.
constexpr std::array<std::uint32_t, 8> kSeries{0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7,
                                               0x56b4e9, 0xd55e00, 0xf0e442, 0x8c8c8c};
constexpr std::uint32_t kAlarm = 0xd52b1e;  ///< what is wrong: more memory than there is

Kind kind_of(simulator::Part part);
inline std::uint32_t colour_of(simulator::Part part) { return colour_of(kind_of(part)); }
/// "#0072b2".
std::string hex(std::uint32_t colour);

}  // namespace trivium::report
