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
#include <vector>

namespace trivium::program {

enum class Schedule : std::uint8_t { kSequential, kGpipe, k1f1b, kInterleaved, kZeroBubble, kZbv, kDualPipeV };

inline constexpr std::size_t kSchedules = static_cast<std::size_t>(Schedule::kDualPipeV) + 1;

/// What a plan runs that says nothing else.
inline constexpr Schedule kUsualSchedule = Schedule::k1f1b;

/// One stage of a pipeline.
struct StagePlace {
  int stage = 0;
  int pipeline = 1;
  int virtual_stages = 1;  ///< model chunks of the stage
  bool pairs = false;      ///< a forward and the next backward run as a pair: one forward more goes ahead of them
};

/// The warm-up of a schedule that runs all forwards before the first backward.
inline constexpr std::int64_t kAllForwards = std::numeric_limits<std::int64_t>::max();

/// Slots that a stage runs `times` times: "F0B1W1" is a forward of its first chunk, then a backward of its second one
/// and that backward's second half. "f0b1": the two take turns (StagePlace::pairs), and the backward has its second
/// half in it, as every b. Micro-batches of a kind and chunk come in order.
struct SlotRun {
  std::int64_t times = 1;
  std::string_view slots;
  bool repeats = false;  ///< the run that grows with the number of micro-batches
};

/// What a schedule is. A stage runs `warm_up` forwards, then rounds of a forward, while there are any, a backward and,
/// where backwards are split, the second half of the one `delay` before it, then the second halves that are left: its
/// slots (slots.h), and with them the micro-batches that it holds at once. A schedule of another shape says its `runs`.
struct ScheduleTraits {
  Schedule schedule{};
  std::string_view name;     ///< in files, options and tables: "1f1b"
  std::string_view pytorch;  ///< in torch.distributed.pipelining.schedules: "1F1B"; empty: not there
  /// A stage holds several chunks. Without `runs` they take turns after `pipeline` micro-batches, so that there must be
  /// a multiple of `pipeline` of these. Else a stage is one chunk.
  bool virtual_stages = false;
  int chunks = 0;                ///< how many, where it cannot be any number; 0: any
  bool folds = false;            ///< chunks lie on the stages to and fro, in a V: see stage_of
  bool splits_backward = false;  ///< gradients of activations first, those of weights later
  bool overlaps_stages = true;   ///< stages work at once, on different micro-batches
  bool searched = true;          ///< searches try it; else it runs where a plan names it
  bool pairs = false;            ///< its order can have pairs of passes (StagePlace::pairs)

  /// Forwards before the first backward, of as many as there are; kAllForwards.
  std::int64_t (*warm_up)(const StagePlace&) = nullptr;
  /// Micro-batches by which the second half of a backward comes later than the first; 0 where backwards are whole.
  std::int64_t (*delay)(const StagePlace&) = [](const StagePlace&) { return std::int64_t{0}; };
  /// All slots, in place of rounds after a warm-up; for as many micro-batches or more, of which only the existing ones
  /// count. `warm_up` is then the most that forwards are ahead of backwards in the run that repeats: summed over chunks
  /// as if each were as far ahead as the farthest.
  std::vector<SlotRun> (*runs)(const StagePlace&, std::int64_t micro_batches) = nullptr;
  /// What equal stages idle in a step whose transfers take no time, as a clause: "equal stages idle (p - 1) / m = 3 / 8
  /// = 37.5 % of their passes". Of any stage.
  std::string (*bubble)(const StagePlace&, std::int64_t micro_batches) = nullptr;

  /// Rounds of a forward and a backward that repeat themselves, however many micro-batches there are.
  constexpr bool has_steady_state() const { return warm_up(StagePlace{}) != kAllForwards; }

  /// Micro-batches after which a stage's slots repeat themselves; the total must be a multiple.
  constexpr int round(int pipeline) const { return virtual_stages && runs == nullptr ? pipeline : 1; }

  /// Whether a stage may hold so many chunks.
  constexpr bool takes(int count) const { return chunks > 0 ? count == chunks : (count > 1) == virtual_stages; }

  /// Whether a stage's chunk of this number lies on the way back, from the last stage to the first.
  constexpr bool leads_back(int chunk) const { return folds && chunk % 2 == 1; }
  /// The stage that holds the chunk at `position` in the model: in turn, chunk c on stage c mod p, or in a V, where the
  /// next chunk after the last stage's lies on the last stage again and the way leads back.
  constexpr int stage_of(int position, int pipeline) const {
    const int along = position % pipeline;
    return leads_back(position / pipeline) ? pipeline - 1 - along : along;
  }
  /// Where chunk `chunk` of a stage is in the model.
  constexpr int position_of(int stage, int chunk, int pipeline) const {
    return chunk * pipeline + (leads_back(chunk) ? pipeline - 1 - stage : stage);
  }
  /// Whether the chunk at `position` and the one before it lie on one stage: nothing is sent between them.
  constexpr bool stays(int position, int pipeline) const {
    return position > 0 && stage_of(position - 1, pipeline) == stage_of(position, pipeline);
  }
};

/// Every schedule, in the order of the enumeration.
std::span<const ScheduleTraits, kSchedules> schedule_table();

const ScheduleTraits& traits_of(Schedule schedule);

std::string_view name_of(Schedule value);  ///< "1f1b", "zero_bubble" …

/// The schedule of stages that hold so many chunks, with backwards whole or split, where nothing else is said: the
/// first of the table that is searched. Precondition: there is one; none splits the backwards of several chunks.
Schedule usual_schedule(int virtual_stages, bool splits_backward = false);

/// The schedule that has pairs of passes on stages in a V.
const ScheduleTraits& paired_in_v();

}  // namespace trivium::program
