// zero_bubble: 1f1b with the backward in two halves; stage s runs the second one s micro-batches late, which fills the
// time in which 1f1b waits for the next gradient (ZB-H1; Qi et al. 2023, arXiv 2401.10241). Every stage holds p
// micro-batches, as many as the first one of 1f1b, s + 1 of them between their halves. With f, b and w for the forward
// and the halves of a micro-batch, equal stages idle (p - 1)(f + b - w) where w <= f, w <= b and m >= p.
#pragma once

#include <fmt/format.h>

#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline constexpr ScheduleTraits kZeroBubble{
    .schedule = Schedule::kZeroBubble,
    .name = "zero_bubble",
    .pytorch = "InterleavedZeroBubble",
    .splits_backward = true,
    .warm_up = [](const StagePlace& at) { return std::int64_t{at.pipeline} - 1 - at.stage; },
    .delay = [](const StagePlace& at) { return std::int64_t{at.stage}; },
    .bubble =
        [](const StagePlace& at, std::int64_t micro_batches) {
          return fmt::format("equal stages idle (p - 1)(f + b - w), p - 1 = {} of {} micro-batches", at.pipeline - 1,
                             micro_batches);
        },
};

}  // namespace trivium::program::schedules
