// sequential: F0 B0 F1 B1 …: a micro-batch goes through all stages and back before the next one begins, as where layers
// are put on devices and nothing is done about it (naive model parallelism). A stage holds one micro-batch.
#pragma once

#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline constexpr ScheduleTraits kSequential{
    .schedule = Schedule::kSequential,
    .name = "sequential",
    .pytorch = "",
    .overlaps_stages = false,
    .searched = false,
    .warm_up = [](const StagePlace&) { return std::int64_t{0}; },
    .bubble = [](const StagePlace&,
                 std::int64_t) { return std::string("the sequential schedule runs one stage at a time"); },
};

}  // namespace trivium::program::schedules
