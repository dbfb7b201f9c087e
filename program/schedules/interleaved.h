// interleaved: 1f1b over virtual stages, in groups of p micro-batches (Narayanan et al. 2021, arXiv 2104.04473, section
// 2.2.2; Megatron-LM, forward_backward_pipelining_with_interleaving). A micro-batch goes through the stages v times, so
// the warm-up is longer: two forwards for every later stage, and p for every chunk but the last. A stage holds one
// forward more than these, a v-th of a stage's layers each. The bubble is (p - 1) / vm.
#pragma once

#include "program/schedules/bubble.h"
#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline constexpr ScheduleTraits kInterleaved{
    .schedule = Schedule::kInterleaved,
    .name = "interleaved",
    .pytorch = "Interleaved1F1B",
    .virtual_stages = true,
    .pairs = true,
    .warm_up =
        [](const StagePlace& at) {
          return 2 * (std::int64_t{at.pipeline} - 1 - at.stage) + (at.virtual_stages - 1) * std::int64_t{at.pipeline};
        },
    .bubble =
        [](const StagePlace& at, std::int64_t micro_batches) {
          return fill_and_drain("vm", at.pipeline, at.virtual_stages * micro_batches);
        },
};

}  // namespace trivium::program::schedules
