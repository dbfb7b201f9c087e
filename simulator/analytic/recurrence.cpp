// Passes one after the other, every stage in the order of its schedule. As soon as its rounds repeat themselves, those
// up to the last ones are counted instead of walked.
#include <algorithm>
#include <limits>

#include "program/schedules/slots.h"
#include "simulator/analytic/schedule_costs.h"

namespace trivium::simulator {
namespace {

using program::SlotCursor;

constexpr std::int64_t kUnknown = -1;
constexpr std::int64_t kUnset = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLongestOfChunks = 2;  // rounds over several chunks that may repeat together

class Walker {
 public:
  explicit Walker(const ScheduleCosts& schedule_costs)
      : o_(schedule_costs),
        stages_(static_cast<std::size_t>(schedule_costs.pipeline)),
        micro_batches_(schedule_costs.micro_batches),
        round_(program::traits_of(schedule_costs.schedule).round(schedule_costs.pipeline)) {
    free_.assign(stages_, 0);
    data_.assign(stages_, 0);
    held_.assign(stages_, 0);
    copied_.assign(stages_, 0);
    copying_.assign(stages_, 0);
    waited_.assign(stages_, 0);
    pairs_.assign(stages_, {});
    read_.assign(stages_, {});
    reduced_kind_.assign(stages_, -1);
    last_forward_.assign(o_.chunks.size(), kUnknown);
    slots_of_.resize(o_.chunks.size());
    forwards_done_.assign(o_.chunks.size(), 0);
    backwards_done_.assign(o_.chunks.size(), 0);
    ends_.last_backward.resize(o_.chunks.size());
    cursors_.reserve(stages_);
    for (int s = 0; s < o_.pipeline; ++s) {
      cursors_.emplace_back(
          program::order_of(o_.schedule, {s, o_.pipeline, o_.virtual_stages, o_.pairs}, o_.micro_batches));
      warm_up_ = std::max(warm_up_, cursors_.back().order().warm_up);
      for (int v = 0; v < o_.virtual_stages; ++v) positions_.push_back(o_.position_of(static_cast<std::size_t>(s), v));
    }
  }

  PassEnds walk(Rounds rounds) {
    if (rounds == Rounds::kCounted && micro_batches_ % round_ == 0) leave_out_rounds();
    reach(SlotCursor::kNoCut);
    for (std::int64_t& end : free_) end += left_out_;
    for (std::int64_t& begin : ends_.last_backward) begin += left_out_;
    ends_.stages = std::move(free_);
    return std::move(ends_);
  }

 private:
  // What the walk goes on from, told from the round it has come to and from the time of stage 0; copies apart.
  struct Moment {
    std::int64_t time = 0;
    std::vector<std::int64_t> state, copied;
  };

  // When the two slots of a chunk's layers are free again at the earliest, as its last pass left them. 0: not known.
  struct Slots {
    std::int64_t stored = 0;                     // after a forward: all layers have left
    std::int64_t first_free = 0, last_free = 0;  // after a backward: its first layer's slot, and the other
    std::int64_t copying = 0;  // then, too: until when copies that were ready before keep the lane busy
  };

  // The kind of chunk and the slot of the layer that a stage's last pass read until it ended. -1: not known.
  struct Read {
    int kind = -1;
    std::int64_t slot = 0;
  };

  // The forward of a pair whose backward is to come: when the stage was free for both, and the stage's chunk.
  struct Pair {
    std::int64_t free = 0;
    int chunk = 0;
  };

  std::int64_t slots() const { return round_ * o_.virtual_stages; }  // of a round, forwards alone

  // All slots before `cut` backwards of every stage. Forwards need the previous stage, backwards the next.
  void reach(std::int64_t cut) {
    const std::int64_t most = cut == SlotCursor::kNoCut ? micro_batches_ : (cut + warm_up_) / slots() * round_ + round_;
    const auto passes = o_.chunks.size() * static_cast<std::size_t>(std::min(most, micro_batches_));
    forward_.resize(std::max(forward_.size(), passes), kUnknown);
    backward_.resize(std::max(backward_.size(), passes), kUnknown);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_; ++s) {
        while (step(s, cut)) moved = true;
      }
      for (std::size_t s = stages_; s-- > 0;) {
        while (step(s, cut)) moved = true;
      }
    }
  }

  // Maxima and sums know no absolute time: where everything lies as it lay some rounds before, the same rounds follow,
  // each as much later. All stages must still have forwards to come.
  void leave_out_rounds() {
    const std::int64_t last = (micro_batches_ * o_.virtual_stages - warm_up_) / slots() - 1;
    const std::int64_t longest = round_ > 1 ? kLongestOfChunks : o_.pipeline;
    for (std::int64_t from = warm_up_ / slots() + 1; from + longest < last; from = 2 * (from + longest)) {
      reach(from * slots());
      const Moment before = moment(from);
      std::fill(waited_.begin(), waited_.end(), 0);
      for (std::int64_t period = 1; period <= longest; ++period) {
        reach((from + period) * slots());
        const Moment now = moment(from + period);
        if (now.state != before.state || !copies_keep_up(before, now)) continue;
        leave_out((last - from - period) / period, period, before, now);
        return;
      }
    }
  }

  // A copy lane that nobody waited for and that falls no further behind is not waited for later.
  bool copies_keep_up(const Moment& before, const Moment& now) const {
    for (std::size_t s = 0; s < stages_; ++s) {
      const std::int64_t late = now.copied[s] - before.copied[s] - (now.time - before.time);
      if (late > 0 || (late < 0 && waited_[s] != 0)) return false;
    }
    return true;
  }

  void leave_out(std::int64_t times, std::int64_t period, const Moment& before, const Moment& now) {
    left_out_ = times * (now.time - before.time);
    micro_batches_ -= times * period * round_;
    for (std::size_t s = 0; s < stages_; ++s) {
      cursors_[s].leave_out(times * period * slots());
      copied_[s] += times * (now.copied[s] - before.copied[s]) - left_out_;
    }
  }

  Moment moment(std::int64_t rounds) const {
    Moment moment{free_.front(), {}, copied_};
    const auto tell = [&](std::int64_t time) { moment.state.push_back(time - moment.time); };
    const auto tell_lane = [&](std::int64_t time) { moment.state.push_back(time == 0 ? kUnset : time - moment.time); };
    for (std::size_t s = 0; s < stages_; ++s) {
      cursors_[s].tell(rounds, moment.state);
      tell(free_[s]);
      tell_lane(data_[s]);
      tell_lane(held_[s]);
      tell_lane(copying_[s]);
      moment.state.push_back(reduced_kind_[s]);
      if (o_.pairs) tell(pairs_[s].free);
      moment.state.insert(moment.state.end(), {read_[s].kind, read_[s].slot});
    }
    const std::int64_t first = rounds * round_;  // micro-batch
    for (std::size_t position = 0; position < o_.chunks.size(); ++position) {
      moment.state.push_back(last_forward_[position] == kUnknown ? kUnset : last_forward_[position] - first);
      const Slots& slots = slots_of_[position];
      for (const std::int64_t at : {slots.stored, slots.first_free, slots.last_free, slots.copying}) tell_lane(at);
      if (position == 0) continue;  // ends that the next chunk has not yet used
      for (std::int64_t m = forwards_done_[position]; m < forwards_done_[position - 1]; ++m) {
        tell(forward_[at(position - 1, m)]);
      }
      for (std::int64_t m = backwards_done_[position - 1]; m < backwards_done_[position]; ++m) {
        tell(backward_[at(position, m)]);
      }
    }
    return moment;
  }

  std::size_t at(std::size_t position, std::int64_t micro_batch) const {
    return static_cast<std::size_t>(micro_batch) * o_.chunks.size() + position;
  }

  // The place in the model of a stage's chunk.
  std::size_t position_of(std::size_t stage, std::int64_t chunk) const {
    return positions_[stage * static_cast<std::size_t>(o_.virtual_stages) + static_cast<std::size_t>(chunk)];
  }

  bool step(std::size_t s, std::int64_t cut) {
    const SlotCursor::Step slot = cursors_[s].here(cut);
    bool done = false;
    switch (slot.kind) {
      case SlotCursor::Kind::kForward:
        done = forward(s, slot);
        break;
      case SlotCursor::Kind::kBackward:
        done = backward(s, slot);
        break;
      case SlotCursor::Kind::kWeights:
        weights(s, slot);
        done = true;
        break;
      case SlotCursor::Kind::kNone:
        break;
    }
    if (done) cursors_[s].advance(slot.kind);
    return done;
  }

  void weights(std::size_t s, const SlotCursor::Step& slot) {
    const std::size_t position = position_of(s, slot.chunk);
    if (slot.micro_batch + 1 == micro_batches_) ends_.last_backward[position] = free_[s];
    free_[s] += o_.chunks[position].weights;
  }

  bool forward(std::size_t s, const SlotCursor::Step& slot) {
    const std::size_t position = position_of(s, slot.chunk);
    const std::int64_t micro_batch = slot.micro_batch;
    std::int64_t start = std::max(free_[s], held_[s]);
    pairs_[s] = {start, static_cast<int>(slot.chunk)};
    if (position > 0) {
      const std::int64_t input = forward_[at(position - 1, micro_batch)];
      if (input == kUnknown) return false;
      start = std::max(gathered(s, o_.chunks[position], 0, start), input + o_.chunks[position - 1].send_forward);
    }
    if (cursors_[s].forwards() == 0) copied_[s] = start;
    last_forward_[position] = micro_batch;
    const std::int64_t takes = o_.pairs ? o_.chunks[position].forward_through : o_.chunks[position].forward;
    free_[s] = std::max(start + takes, stored(s, position, start));
    if (micro_batch == 0) free_[s] = std::max(free_[s], o_.chunks[position].gathered);
    forward_[at(position, micro_batch)] = free_[s];
    ++forwards_done_[position];
    const ScheduleCosts::Chunk& chunk = o_.chunks[position];
    const bool has_head = position + 1 == o_.chunks.size();  // it comes after the layers
    read_[s] = {has_head ? -1 : chunk.kind, slot_of(chunk.layers - 1)};
    return true;
  }

  bool backward(std::size_t s, const SlotCursor::Step& slot) {
    const std::size_t position = position_of(s, slot.chunk);
    const std::int64_t micro_batch = slot.micro_batch;
    const ScheduleCosts::Chunk& chunk = o_.chunks[position];
    if (o_.pairs) return backward_of_pair(s, slot);
    std::int64_t start = std::max(free_[s], held_[s]);
    if (position + 1 < o_.chunks.size()) {
      const std::int64_t gradient = backward_[at(position + 1, micro_batch)];
      if (gradient == kUnknown) return false;
      start = std::max(gathered(s, chunk, chunk.layers - 1, start), gradient + o_.chunks[position + 1].send_backward);
    }
    const bool reduces = chunk.reduce_layer > 0, has_head = position + 1 == o_.chunks.size();
    // The slot of its last layer is free again when the reduction that used it is done: at most one layer's is left by
    // then, or with spread experts two. A group of layers is made again before its last one waits for that: nothing is
    // claimed of this wait.
    if (reduces && !chunk.again_first && o_.reduces_beside && reduced_kind_[s] == chunk.kind && !has_head) {
      start = std::max(start, data_[s] - chunk.reduce_left);
    }
    if (micro_batch + 1 == micro_batches_) ends_.last_backward[position] = start;
    ++backwards_done_[position];
    std::int64_t end = start + chunk.backward;
    if (chunk.store > 0) {
      // What is fetched was stored before: the lane has done both for all backwards so far.
      const bool is_there = last_forward_[position] == micro_batch;
      copied_[s] += (is_there ? chunk.fetch_inner : chunk.fetch) * 2;
      if (copied_[s] > end) waited_[s] = 1;
      end = std::max({end, copied_[s], fetched(s, position, start, is_there)});
      last_forward_[position] = kUnknown;
    }
    free_[s] = backward_[at(position, micro_batch)] = end;
    read_[s] = {position == 0 ? -1 : chunk.kind, slot_of(0)};  // the embedding comes after the layers
    if (reduces) {                                             // after the embedding the bound counts nothing
      data_[s] = std::max(data_[s] + chunk.reduce_layers, (position == 0 ? start : end) + chunk.reduce_layer);
      reduced_kind_[s] = chunk.kind;
      if (!o_.reduces_beside && position > 0) held_[s] = end + chunk.reduce_layer;
    }
    return true;
  }

  // Gathered layers take turns in as many slots as are ahead, and one more.
  std::int64_t slot_of(std::int64_t layer) const { return layer % (o_.gathered_ahead + 1); }

  // When a pass may begin for the gather of its first layer. Where nothing is gathered ahead, that comes after what the
  // pass waits for anyhow; else after the last pass, if that read the layer's slot until its end. Of layers that are
  // made again in groups the first is another one.
  std::int64_t gathered(std::size_t s, const ScheduleCosts::Chunk& chunk, std::int64_t layer,
                        std::int64_t start) const {
    if (o_.gathered_ahead == 0) return start + chunk.gather_layer;
    const bool is_read = read_[s].kind == chunk.kind && read_[s].slot == slot_of(layer);
    if (!is_read || (chunk.again_first && layer > 0)) return start;
    return std::max(start, free_[s] + chunk.gather_layer);
  }

  // Passes of a pair begin together, if their inputs are there. No copies and no reductions overlap with them.
  bool backward_of_pair(std::size_t s, const SlotCursor::Step& slot) {
    const std::size_t position = position_of(s, slot.chunk);
    const std::int64_t micro_batch = slot.micro_batch;
    const ScheduleCosts::Chunk& chunk = o_.chunks[position];
    std::int64_t start = slot.pair ? pairs_[s].free : free_[s];
    if (position + 1 < o_.chunks.size()) {
      const std::int64_t gradient = backward_[at(position + 1, micro_batch)];
      if (gradient == kUnknown) return false;
      start = std::max(start, gradient + o_.chunks[position + 1].send_backward);
    }
    if (micro_batch + 1 == micro_batches_) ends_.last_backward[position] = start;
    ++backwards_done_[position];
    const std::int64_t whole = slot.whole ? chunk.backward + chunk.weights : 0;
    const std::int64_t end = start + std::max(chunk.backward_through, whole);
    backward_[at(position, micro_batch)] = end;
    free_[s] = std::max(free_[s], end);
    if (slot.pair) {
      const std::int64_t both = o_.pair_of(s, pairs_[s].chunk, static_cast<int>(slot.chunk));
      free_[s] = std::max(free_[s], pairs_[s].free + both);
    }
    return true;
  }

  // The earliest end of a forward given its stores. Copies of a stage follow each other as they become ready: a pass's
  // stores come after its first layer and after all that were ready before. Layers alternate between two slots: the
  // last is computed when the last but two has left, or, of two layers or one, that of the previous forward.
  std::int64_t stored(std::size_t s, std::size_t position, std::int64_t start) {
    const ScheduleCosts::Chunk& chunk = o_.chunks[position];
    if (chunk.copy_layer == 0) return 0;
    Slots& slots = slots_of_[position];
    const std::int64_t first = std::max(copying_[s], start + chunk.forward_layer);
    std::int64_t end = first + (chunk.layers - 2) * chunk.copy_layer + chunk.forward_layer;
    if (chunk.layers < 3) end = slots.stored > 0 ? slots.stored + chunk.forward_layer : 0;
    copying_[s] = first + chunk.layers * chunk.copy_layer;
    slots = {copying_[s], 0, 0, 0};
    return end;
  }

  // When a backward ends at the earliest for its fetches. All layers but two come back into slots that layers of the
  // same pass have used; those two, which `is_there` says need not come, into what the chunk's pass before has left.
  std::int64_t fetched(std::size_t s, std::size_t position, std::int64_t start, bool is_there) {
    const ScheduleCosts::Chunk& chunk = o_.chunks[position];
    if (chunk.copy_layer == 0) return 0;
    const std::int64_t copy = chunk.copy_layer, compute = chunk.backward_layer, before = copying_[s];
    Slots& slots = slots_of_[position];
    std::int64_t first = start, second = 0;  // when the layers may be computed
    if (chunk.layers > 2) {
      // The last layer's slot holds what the previous pass left there: after a forward it has yet to leave.
      const std::int64_t free = slots.stored > 0 ? slots.stored : slots.first_free;
      if (!is_there && free > 0) first = std::max(start, free + copy);
      copying_[s] = std::max(before, first + compute) + (chunk.layers - 2) * copy;
      const std::int64_t done = std::max(copying_[s] + compute, first + chunk.layers * compute);
      slots = {0, done - compute, done, before};
      return done;
    }
    if (!is_there && slots.stored > 0) {
      first = std::max(start, slots.stored + copy);
    } else if (!is_there && slots.first_free > 0) {
      const std::int64_t fetch = std::max(slots.first_free, slots.copying) + copy;
      first = std::max(start, fetch);
      second = chunk.layers > 1 ? std::max(fetch, slots.last_free) + copy : 0;
      copying_[s] = std::max({before, fetch, second});
    }
    const std::int64_t first_done = first + compute;
    const std::int64_t done = chunk.layers > 1 ? std::max(first_done, second) + compute : first_done;
    slots = {0, first_done, done, before};
    return done;
  }

  const ScheduleCosts& o_;
  std::size_t stages_;
  std::int64_t micro_batches_;                                // less those left out
  std::int64_t round_;                                        // micro-batches
  std::int64_t warm_up_ = 0;                                  // the longest of all stages
  std::int64_t left_out_ = 0;                                 // time of the rounds left out
  std::vector<std::int64_t> forward_, backward_;              // ends, by micro-batch and chunk
  std::vector<std::int64_t> forwards_done_, backwards_done_;  // by chunk
  std::vector<char> waited_;                                  // by stage: a backward did, for copies
  std::vector<std::int64_t> free_;                            // by stage
  std::vector<std::int64_t> data_, copied_;  // by stage: until when its data lane and its copy lane are busy
  std::vector<std::int64_t> held_;           // by stage: no pass begins before
  std::vector<Slots> slots_of_;              // by chunk
  std::vector<std::int64_t> copying_;  // by stage: until when its copy lane is busy, copies that are early left out
  std::vector<int> reduced_kind_;      // by stage: of the last backward
  std::vector<std::int64_t> last_forward_;  // by chunk: the micro-batch whose activations are still there
  std::vector<SlotCursor> cursors_;
  std::vector<std::size_t> positions_;  // by stage and its chunks
  std::vector<Pair> pairs_;             // by stage
  std::vector<Read> read_;              // likewise
  PassEnds ends_;
};

}  // namespace

PassEnds recurrence_ends(const ScheduleCosts& o, Rounds rounds) {
  PassEnds least = pass_ends(o);
  const program::ScheduleTraits& traits = program::traits_of(o.schedule);
  if (!traits.overlaps_stages || !traits.has_steady_state()) return least;
  PassEnds walked = Walker(o).walk(rounds);
  for (std::size_t s = 0; s < least.stages.size(); ++s) {  // a full pipe and busy copies are known to the former alone
    walked.stages[s] = std::max(walked.stages[s], least.stages[s]);
  }
  return walked;
}

}  // namespace trivium::simulator
