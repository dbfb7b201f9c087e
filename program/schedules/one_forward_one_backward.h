// 1f1b: a forward for every later stage, then one forward and one backward in turn (Narayanan et al. 2019,
// PipeDream-Flush). Stage s of p holds p - s micro-batches. The bubble is (p - 1) / m (Narayanan et al. 2021, arXiv
// 2104.04473, section 2.2.1).
#pragma once

#include "program/schedules/bubble.h"
#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline constexpr ScheduleTraits kOneForwardOneBackward{
    .schedule = Schedule::k1f1b,
    .name = "1f1b",
    .pytorch = "1F1B",
    .pairs = true,
    .warm_up = [](const StagePlace& at) { return std::int64_t{at.pipeline} - 1 - at.stage; },
    .bubble = [](const StagePlace& at,
                 std::int64_t micro_batches) { return fill_and_drain("m", at.pipeline, micro_batches); },
};

}  // namespace trivium::program::schedules
