// gpipe: all forwards, then all backwards (Huang et al. 2018, arXiv 1811.06965). A stage holds all micro-batches. Its
// bubble is that of 1f1b, so searches leave it out.
#pragma once

#include "program/schedules/bubble.h"
#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline constexpr ScheduleTraits kGpipe{
    .schedule = Schedule::kGpipe,
    .name = "gpipe",
    .pytorch = "GPipe",
    .searched = false,
    .warm_up = [](const StagePlace&) { return kAllForwards; },
    .bubble = [](const StagePlace& at,
                 std::int64_t micro_batches) { return fill_and_drain("m", at.pipeline, micro_batches); },
};

}  // namespace trivium::program::schedules
