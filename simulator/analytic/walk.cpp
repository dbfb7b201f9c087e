// Passes one after the other, every stage in the order of its schedule.
#include <algorithm>

#include "simulator/analytic/outline.h"

namespace trivium::simulator {
namespace {

using program::Schedule;

constexpr std::int64_t kUnknown = -1;

/// The slots of one stage (program/schedule.h) without a list of them.
class Cursor {
 public:
  enum class Kind { kForward, kBackward, kWeights, kNone };
  struct Slot {
    Kind kind = Kind::kNone;
    std::int64_t number = 0;  // of its kind
  };

  Cursor(const Outline& o, std::int64_t stage) {
    const std::int64_t after = o.pipeline - 1 - stage;
    total_ = o.micro_batches * o.virtual_stages;
    const bool interleaved = o.schedule == Schedule::kInterleaved;
    warmup_ = std::min(total_, interleaved ? 2 * after + (o.virtual_stages - 1) * std::int64_t{o.pipeline} : after);
    splits_ = o.schedule == Schedule::kZeroBubble;
    delay_ = stage;
  }

  Slot here() const {
    if (forwards_ < warmup_) return {Kind::kForward, forwards_};
    // From here on the slots come in rounds: a forward, while there are any, a backward, a second half that is due.
    if (splits_ && backwards_ - delay_ > weights_) return {Kind::kWeights, weights_};
    if (forwards_ < total_ && forwards_ - warmup_ == backwards_) return {Kind::kForward, forwards_};
    if (backwards_ < total_) return {Kind::kBackward, backwards_};
    if (splits_ && weights_ < total_) return {Kind::kWeights, weights_};
    return {};
  }

  void advance() {
    const Kind kind = here().kind;
    ++(kind == Kind::kForward ? forwards_ : kind == Kind::kBackward ? backwards_ : weights_);
  }

 private:
  std::int64_t total_ = 0, warmup_ = 0, delay_ = 0;
  std::int64_t forwards_ = 0, backwards_ = 0, weights_ = 0;
  bool splits_ = false;
};

class Walker {
 public:
  explicit Walker(const Outline& outline) : o_(outline), stages_(static_cast<std::size_t>(outline.pipeline)) {
    const auto passes = o_.chunks.size() * static_cast<std::size_t>(o_.micro_batches);
    forward_.assign(passes, kUnknown);
    backward_.assign(passes, kUnknown);
    free_.assign(stages_, 0);
    data_.assign(stages_, 0);
    held_.assign(stages_, 0);
    copied_.assign(stages_, 0);
    reduced_kind_.assign(stages_, -1);
    last_forward_.assign(o_.chunks.size(), kUnknown);
    ends_.last_backward.resize(o_.chunks.size());
    for (std::size_t s = 0; s < stages_; ++s) cursors_.emplace_back(o_, static_cast<std::int64_t>(s));
  }

  PassEnds walk() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < stages_; ++s) {
        while (step(s)) moved = true;
      }
    }
    ends_.stages = std::move(free_);
    return std::move(ends_);
  }

 private:
  std::size_t at(std::size_t position, std::int64_t micro_batch) const {
    return position * static_cast<std::size_t>(o_.micro_batches) + static_cast<std::size_t>(micro_batch);
  }

  // Slots of an interleaved stage go through its chunks in groups of `pipeline` micro-batches.
  std::pair<std::size_t, std::int64_t> place(std::size_t stage, std::int64_t number, bool backwards) const {
    if (o_.virtual_stages == 1) return {stage, number};
    const std::int64_t round = std::int64_t{o_.pipeline} * o_.virtual_stages;
    std::int64_t chunk = number % round / o_.pipeline;
    if (backwards) chunk = o_.virtual_stages - 1 - chunk;
    return {static_cast<std::size_t>(chunk) * stages_ + stage, number / round * o_.pipeline + number % o_.pipeline};
  }

  bool step(std::size_t s) {
    const Cursor::Slot slot = cursors_[s].here();
    bool done = false;
    switch (slot.kind) {
      case Cursor::Kind::kForward:
        done = forward(s, slot.number);
        break;
      case Cursor::Kind::kBackward:
        done = backward(s, slot.number);
        break;
      case Cursor::Kind::kWeights:
        if (slot.number + 1 == o_.micro_batches) ends_.last_backward[s] = free_[s];
        free_[s] += o_.chunks[s].weights;
        done = true;
        break;
      case Cursor::Kind::kNone:
        break;
    }
    if (done) cursors_[s].advance();
    return done;
  }

  bool forward(std::size_t s, std::int64_t number) {
    const auto [position, micro_batch] = place(s, number, false);
    std::int64_t start = std::max(free_[s], held_[s]);
    if (position > 0) {
      const std::int64_t input = forward_[at(position - 1, micro_batch)];
      if (input == kUnknown) return false;
      start = std::max(start + o_.chunks[position].gather_layer, input + o_.chunks[position - 1].send_forward);
    }
    if (number == 0) copied_[s] = start;
    last_forward_[position] = micro_batch;
    free_[s] = start + o_.chunks[position].forward;
    if (micro_batch == 0) free_[s] = std::max(free_[s], o_.chunks[position].gathered);
    forward_[at(position, micro_batch)] = free_[s];
    return true;
  }

  bool backward(std::size_t s, std::int64_t number) {
    const auto [position, micro_batch] = place(s, number, true);
    const Outline::Chunk& chunk = o_.chunks[position];
    std::int64_t start = std::max(free_[s], held_[s]);
    if (position + 1 < o_.chunks.size()) {
      const std::int64_t gradient = backward_[at(position + 1, micro_batch)];
      if (gradient == kUnknown) return false;
      start = std::max(start + chunk.gather_layer, gradient + o_.chunks[position + 1].send_backward);
    }
    const bool reduces = chunk.reduce_layer > 0, has_head = position + 1 == o_.chunks.size();
    // The slot of its last layer is free again when the reduction that used it is done: at most one is left by then.
    if (reduces && o_.reduces_beside && reduced_kind_[s] == chunk.kind && !has_head) {
      start = std::max(start, data_[s] - (chunk.layers > 1 ? chunk.reduce_layer : 0));
    }
    if (micro_batch + 1 == o_.micro_batches) ends_.last_backward[position] = start;
    std::int64_t end = start + chunk.backward;
    if (chunk.store > 0) {
      // What comes back was away before: the lane has done both for all backwards so far.
      const bool is_there = last_forward_[position] == micro_batch;
      copied_[s] += (is_there ? chunk.fetch_inner : chunk.fetch) * 2;
      end = std::max(end, copied_[s]);
      last_forward_[position] = kUnknown;
    }
    free_[s] = backward_[at(position, micro_batch)] = end;
    if (reduces) {  // behind the embedding nothing is claimed
      data_[s] =
          std::max(data_[s] + chunk.layers * chunk.reduce_layer, (position == 0 ? start : end) + chunk.reduce_layer);
      reduced_kind_[s] = chunk.kind;
      if (!o_.reduces_beside && position > 0) held_[s] = end + chunk.reduce_layer;
    }
    return true;
  }

  const Outline& o_;
  std::size_t stages_;
  std::vector<std::int64_t> forward_, backward_;  // ends, by chunk and micro-batch
  std::vector<std::int64_t> free_;                // by stage
  std::vector<std::int64_t> data_, copied_;       // by stage: until when its data lane and its copy lane are busy
  std::vector<std::int64_t> held_;                // by stage: no pass begins before
  std::vector<int> reduced_kind_;                 // by stage: of the last backward
  std::vector<std::int64_t> last_forward_;        // by chunk: the micro-batch whose activations are still there
  std::vector<Cursor> cursors_;
  PassEnds ends_;
};

}  // namespace

PassEnds walked_ends(const Outline& o) {
  PassEnds least = pass_ends(o);
  if (o.schedule == Schedule::kSequential || o.schedule == Schedule::kGpipe) return least;
  PassEnds walked = Walker(o).walk();
  for (std::size_t s = 0; s < least.stages.size(); ++s) {  // a full pipe and busy copies are known to the former alone
    walked.stages[s] = std::max(walked.stages[s], least.stages[s]);
  }
  return walked;
}

}  // namespace trivium::simulator
