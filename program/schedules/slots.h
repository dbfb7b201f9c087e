// The slots of a pipeline stage: which forward or backward it runs next. Lists of them, for the lowering, and the walk
// of the analytic bounds step through the same order.
#pragma once

#include <array>
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
  bool pair = false;     ///< a forward: it takes turns with the backward that follows
  bool whole = false;    ///< a backward with its second half in it, where others are split
  bool operator==(const Slot&) const = default;
};

/// The order of one stage's slots in a few numbers (ScheduleTraits).
struct SlotOrder {
  std::int64_t passes = 0;   ///< forwards, and as many backwards: micro-batches of all chunks
  std::int64_t warm_up = 0;  ///< at most `passes`
  std::int64_t delay = 0;
  std::int64_t pipeline = 1, chunks = 1;  ///< chunks of the stage; they take turns after `pipeline` micro-batches
  bool splits_backward = false;
  bool pairs = false;
  std::vector<SlotRun> runs;  ///< the order, where it has another shape (ScheduleTraits::runs)

  std::int64_t micro_batches() const { return passes / chunks; }

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
    std::int64_t chunk = 0, micro_batch = 0;
    bool pair = false;   ///< a forward and the backward after it: they take turns
    bool whole = false;  ///< a backward with its second half in it, where others are split
  };
  static constexpr std::int64_t kNoCut = std::numeric_limits<std::int64_t>::max();

  explicit SlotCursor(const SlotOrder& order) : order_(order) { skip(); }

  /// The next slot; none after the last one, or after the cut: `cut` backwards and what comes before the next.
  Step here(std::int64_t cut = kNoCut) const {
    if (!order_.runs.empty()) return here_in_runs(cut);
    if (forwards_ < order_.warm_up) return step(Kind::kForward, forwards_, false);
    // From here on the slots come in rounds: a forward, while there are any, a backward, a second half that is due.
    if (order_.splits_backward && backwards_ - order_.delay > weights_) return step(Kind::kWeights, weights_, false);
    if (backwards_ >= cut) return {};
    if (forwards_ < order_.passes && forwards_ - order_.warm_up == backwards_) {
      return step(Kind::kForward, forwards_, order_.pairs);
    }
    const bool pair = order_.pairs && order_.has_forward_before(backwards_);
    if (backwards_ < order_.passes) return step(Kind::kBackward, backwards_, pair);
    if (order_.splits_backward && weights_ < order_.passes) return step(Kind::kWeights, weights_, false);
    return {};
  }

  void advance(Kind kind) {
    ++(kind == Kind::kForward ? forwards_ : kind == Kind::kBackward ? backwards_ : weights_);
    if (order_.runs.empty()) return;
    if (letter() == 'b') ++weights_;
    pair_is_open_ = letter() == 'f';
    pass_slot();
    skip();
  }

  /// So many forwards and backwards fewer than the order has. They are still to come.
  void leave_out(std::int64_t passes);

  /// Where in the order it is, told from `rounds` rounds of the order on, for those that compare.
  void tell(std::int64_t rounds, std::vector<std::int64_t>& state) const;

  const SlotOrder& order() const { return order_; }
  std::int64_t forwards() const { return forwards_; }  ///< done; likewise
  std::int64_t backwards() const { return backwards_; }
  std::int64_t weights() const { return weights_; }

 private:
  Step step(Kind kind, std::int64_t number, bool pair) const {
    return {kind, order_.chunk_of(number, kind == Kind::kForward), order_.micro_batch_of(number), pair};
  }

  // Orders of runs: the slot that the cursor stands at, and how many of its kind and chunk came before it.
  static std::size_t index_of(Kind kind) { return static_cast<std::size_t>(kind); }
  const SlotRun& run() const { return order_.runs[run_]; }
  char letter() const { return run().slots[slot_]; }
  Kind run_kind() const {
    const char slot = letter();
    return slot == 'W' ? Kind::kWeights : slot == 'F' || slot == 'f' ? Kind::kForward : Kind::kBackward;
  }
  std::size_t run_chunk() const { return static_cast<std::size_t>(run().slots[slot_ + 1] - '0'); }
  Step here_in_runs(std::int64_t cut) const {
    if (run_ == order_.runs.size()) return {};
    const Kind kind = run_kind();
    if (kind == Kind::kBackward && backwards_ >= cut) return {};
    const std::size_t chunk = run_chunk();
    const bool pair = letter() == 'f' || (kind == Kind::kBackward && pair_is_open_);
    return {kind, static_cast<std::int64_t>(chunk), done_[index_of(kind)][chunk], pair, letter() == 'b'};
  }
  void pass_slot();
  void skip();

  static constexpr std::size_t kChunks = 2;  // of a stage, at most, in an order of runs

  SlotOrder order_;
  std::int64_t forwards_ = 0, backwards_ = 0, weights_ = 0;
  std::size_t run_ = 0, slot_ = 0;                           // place in its text
  std::int64_t turn_ = 0;                                    // of the run
  bool pair_is_open_ = false;                                // the last slot was the forward of a pair
  std::array<std::array<std::int64_t, kChunks>, 3> done_{};  // by kind and chunk, with those that were skipped
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
