// The pipeline schedules: in what order a stage runs its forwards and backwards, and what follows from that. Each is a
// file of this folder and a row of the table (table.cpp); all else asks the traits. Every schedule ends a step with all
// micro-batches through (it flushes), so a stage keeps one version of its weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace trivium::program {

enum class Schedule : std::uint8_t { kSequential, kGpipe, k1f1b, kInterleaved, kZeroBubble };

inline constexpr std::size_t kSchedules = static_cast<std::size_t>(Schedule::kZeroBubble) + 1;

/// What a plan runs that says nothing else.
inline constexpr Schedule kUsualSchedule = Schedule::k1f1b;

/// One stage of a pipeline.
struct StagePlace {
  int stage = 0;
  int pipeline = 1;
  int virtual_stages = 1;  ///< model chunks of the stage
  bool pairs = false;      ///< a forward and the backward behind it run as a pair: one forward more goes ahead of them
};

/// The warm-up of a schedule that runs all forwards before the first backward.
inline constexpr std::int64_t kAllForwards = std::numeric_limits<std::int64_t>::max();

/// What a schedule is. A stage runs `warm_up` forwards, then rounds of a forward, while there are any, a backward and,
/// where backwards are split, the second half of the one `delay` before it, then the second halves that are left: its
/// slots (slots.h), and with them the micro-batches that it holds at once.
struct ScheduleTraits {
  Schedule schedule{};
  std::string_view name;     ///< in files, options and tables: "1f1b"
  std::string_view pytorch;  ///< in torch.distributed.pipelining.schedules: "1F1B"; empty: not there
  /// A stage holds several chunks, which take turns after `pipeline` micro-batches, so that there must be a multiple of
  /// `pipeline` of these. Else a stage is one chunk.
  bool virtual_stages = false;
  bool splits_backward = false;  ///< gradients of activations first, those of weights later
  bool overlaps_stages = true;   ///< stages work at once, on different micro-batches
  bool searched = true;          ///< searches try it; else it runs where a plan names it

  /// Forwards before the first backward, of as many as there are; kAllForwards.
  std::int64_t (*warm_up)(const StagePlace&) = nullptr;
  /// Micro-batches by which the second half of a backward comes later than the first; 0 where backwards are whole.
  std::int64_t (*delay)(const StagePlace&) = [](const StagePlace&) { return std::int64_t{0}; };
  /// What equal stages idle in a step whose transfers take no time, as a clause: "equal stages idle (p - 1) / m = 3 / 8
  /// = 37.5 % of their passes". Of any stage.
  std::string (*bubble)(const StagePlace&, std::int64_t micro_batches) = nullptr;

  /// Rounds of a forward and a backward that repeat themselves, however many micro-batches there are.
  constexpr bool has_steady_state() const { return warm_up(StagePlace{}) != kAllForwards; }
};

/// Every schedule, in the order of the enumeration.
std::span<const ScheduleTraits, kSchedules> schedule_table();

const ScheduleTraits& traits_of(Schedule schedule);

std::string_view name_of(Schedule value);  ///< "sequential" "gpipe" "1f1b" "interleaved" "zero_bubble"

/// The schedule of stages that hold so many chunks, with backwards whole or split, where nothing else is said: the
/// first of the table that is searched. Precondition: there is one; none splits the backwards of several chunks.
Schedule usual_schedule(int virtual_stages, bool splits_backward = false);

}  // namespace trivium::program
