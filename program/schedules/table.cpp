// The table of schedules: one row each, in the order of the enumeration.
#include <algorithm>
#include <array>

#include "program/schedules/dualpipev.h"
#include "program/schedules/gpipe.h"
#include "program/schedules/interleaved.h"
#include "program/schedules/one_forward_one_backward.h"
#include "program/schedules/schedule.h"
#include "program/schedules/sequential.h"
#include "program/schedules/zbv.h"
#include "program/schedules/zero_bubble.h"

namespace trivium::program {
namespace {

constexpr std::array kScheduleTraits{
    schedules::kSequential,  schedules::kGpipe,      schedules::kOneForwardOneBackward,
    schedules::kInterleaved, schedules::kZeroBubble, schedules::kZbv,
    schedules::kDualPipeV,
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kScheduleTraits.size(); ++i) {
    if (kScheduleTraits[i].schedule != static_cast<Schedule>(i)) return false;
  }
  return true;
}

static_assert(kScheduleTraits.size() == kSchedules, "a row for every schedule");
static_assert(is_in_order(), "rows stand in the order of the enumeration");

}  // namespace

std::span<const ScheduleTraits, kSchedules> schedule_table() { return kScheduleTraits; }

const ScheduleTraits& traits_of(Schedule schedule) { return kScheduleTraits[static_cast<std::size_t>(schedule)]; }

std::string_view name_of(Schedule value) { return traits_of(value).name; }

Schedule usual_schedule(int virtual_stages, bool splits_backward) {
  return std::ranges::find_if(kScheduleTraits,
                              [&](const ScheduleTraits& traits) {
                                return traits.searched && traits.virtual_stages == (virtual_stages > 1) &&
                                       traits.splits_backward == splits_backward;
                              })
      ->schedule;
}

const ScheduleTraits& paired_in_v() {
  return *std::ranges::find_if(kScheduleTraits,
                               [](const ScheduleTraits& traits) { return traits.pairs && traits.folds; });
}

}  // namespace trivium::program
