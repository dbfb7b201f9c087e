// The slots of a pipeline stage: which forward or backward it runs next. Lists of them, for the lowering, and the walk
// of the analytic bounds step through the same order.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "program/schedules/schedule.h"

namespace trivium::program {

/// One compute task of a stage.
struct Slot {
  bool forward = true;
  int chunk = 0;  ///< of the stage, 0 … virtual_stages-1
  std::int64_t micro_batch = 0;
  bool weights = false;  ///< the second half of a backward: its weight gradients
  bool operator==(const Slot&) const = default;
};

/// The order of one stage's slots in a few numbers (ScheduleTraits).
struct SlotOrder {
  std::int64_t passes = 0;   ///< forwards, and as many backwards: micro-batches of all chunks
  std::int64_t warm_up = 0;  ///< at most `passes`
  std::int64_t delay = 0;
  std::int64_t pipeline = 1, chunks = 1;  ///< chunks of the stage; they take turns after `pipeline` micro-batches
  bool splits_backward = false;

  /// Which chunk and micro-batch the forward or backward of this number is of. Backwards come to the last chunk first.
  std::int64_t chunk_of(std::int64_t number, bool forward) const {
    if (chunks == 1) return 0;
    const std::int64_t chunk = number % (pipeline * chunks) / pipeline;
    return forward ? chunk : chunks - 1 - chunk;
  }
  std::int64_t micro_batch_of(std::int64_t number) const {
    return chunks == 1 ? number : number / (pipeline * chunks) * pipeline + number % pipeline;
  }

  /// Where passes run in pairs (StagePlace): whether the backward of this number has a forward right before it.
  bool has_forward_before(std::int64_t backward) const { return backward + warm_up < passes; }

  /// The memory rule. Forwards whose backward has not ended at once, at most, of all chunks together; of these, those
  /// between the halves of their backwards.
  std::int64_t in_flight() const;
  std::int64_t between_halves() const;
};

SlotOrder order_of(Schedule schedule, const StagePlace& place, std::int64_t micro_batches);

/// Steps through the slots of a stage without a list of them: a few comparisons each.
class SlotCursor {
 public:
  enum class Kind { kForward, kBackward, kWeights, kNone };
  struct Step {
    Kind kind = Kind::kNone;
    std::int64_t number = 0;  ///< of its kind
  };
  static constexpr std::int64_t kNoCut = std::numeric_limits<std::int64_t>::max();

  explicit SlotCursor(const SlotOrder& order) : order_(order) {}

  /// The next slot; none behind the last one, or behind the cut: `cut` backwards and what comes before the next.
  Step here(std::int64_t cut = kNoCut) const {
    if (forwards_ < order_.warm_up) return {Kind::kForward, forwards_};
    // From here on the slots come in rounds: a forward, while there are any, a backward, a second half that is due.
    if (order_.splits_backward && backwards_ - order_.delay > weights_) return {Kind::kWeights, weights_};
    if (backwards_ >= cut) return {};
    if (forwards_ < order_.passes && forwards_ - order_.warm_up == backwards_) return {Kind::kForward, forwards_};
    if (backwards_ < order_.passes) return {Kind::kBackward, backwards_};
    if (order_.splits_backward && weights_ < order_.passes) return {Kind::kWeights, weights_};
    return {};
  }

  void advance(Kind kind) { ++(kind == Kind::kForward ? forwards_ : kind == Kind::kBackward ? backwards_ : weights_); }

  /// So many forwards and backwards fewer than the order has. They are still to come.
  void leave_out(std::int64_t passes) { order_.passes -= passes; }

  const SlotOrder& order() const { return order_; }
  std::int64_t forwards() const { return forwards_; }  ///< done; likewise
  std::int64_t backwards() const { return backwards_; }
  std::int64_t weights() const { return weights_; }

 private:
  SlotOrder order_;
  std::int64_t forwards_ = 0, backwards_ = 0, weights_ = 0;
};

/// All slots of `stage` for `micro_batches` micro-batches. In every schedule a chunk's backwards come in micro-batch
/// order, so gradients are summed in one order everywhere.
std::vector<Slot> schedule_of(Schedule schedule, int stage, int pipeline, int virtual_stages,
                              std::int64_t micro_batches, bool pairs = false);

/// Micro-batches that are between their forward and the end of their backward at once, at most, in any of `chunks`
/// together: chunks of one kind share their frames.
int frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks);
int frames_needed(const std::vector<Slot>& slots, int chunk);

/// Micro-batches between the halves of their backwards at once, at most, in any of `chunks` together; 0 where backwards
/// are whole.
int deferred_frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks);

}  // namespace trivium::program
