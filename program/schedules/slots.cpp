#include "program/schedules/slots.h"

#include <algorithm>

namespace trivium::program {
namespace {

bool counts(const Slot& slot, std::span<const int> chunks) {
  return std::find(chunks.begin(), chunks.end(), slot.chunk) != chunks.end();
}

// Forwards whose backward has not ended, or else those between its halves, at once at most. Frames come back as fast as
// they are taken in the run that repeats: the most are reached with a few micro-batches.
std::int64_t most_alive(SlotOrder order, bool forwards) {
  SlotCursor cursor(order);
  const std::int64_t more = order.micro_batches() - 4 * order.pipeline;
  if (more > 0) cursor.leave_out(more * order.chunks);
  using Kind = SlotCursor::Kind;
  std::int64_t alive = 0, most = 0;
  for (auto next = cursor.here(); next.kind != Kind::kNone; next = cursor.here()) {
    const bool ends = next.kind == Kind::kWeights || (next.whole && forwards);
    const bool begins = forwards ? next.kind == Kind::kForward : next.kind == Kind::kBackward && !next.whole;
    if (begins) most = std::max(most, ++alive);
    if (ends) --alive;
    cursor.advance(next.kind);
  }
  return most;
}

}  // namespace

SlotOrder order_of(Schedule schedule, const StagePlace& place, std::int64_t micro_batches) {
  const ScheduleTraits& traits = traits_of(schedule);
  SlotOrder order;
  order.passes = micro_batches * place.virtual_stages;
  order.warm_up = std::min(order.passes, traits.warm_up(place));
  // A backward cannot overlap with the forward that it waits for.
  if (place.pairs) order.warm_up = std::min(order.passes, order.warm_up + 1);
  order.delay = traits.delay(place);
  order.pipeline = place.pipeline;
  order.chunks = place.virtual_stages;
  order.splits_backward = traits.splits_backward;
  order.pairs = place.pairs;
  if (traits.runs != nullptr) order.runs = traits.runs(place, micro_batches);
  return order;
}

// By the backward of round k, warm_up + k + 1 forwards are done, or all, and the backwards of k - delay have ended: the
// most are in flight just before the first of them ends.
std::int64_t SlotOrder::in_flight() const {
  return runs.empty() ? std::min(passes, warm_up + 1 + delay) : most_alive(*this, true);
}

std::int64_t SlotOrder::between_halves() const {
  if (!runs.empty()) return most_alive(*this, false);
  return splits_backward ? std::min(passes, delay + 1) : 0;
}

void SlotCursor::pass_slot() {
  ++done_[index_of(run_kind())][run_chunk()];
  if (letter() == 'b') ++done_[index_of(Kind::kWeights)][run_chunk()];
  slot_ += 2;
  if (slot_ < run().slots.size()) return;
  slot_ = 0;
  if (++turn_ < run().times) return;
  turn_ = 0;
  ++run_;
}

// Runs that are not taken, and slots of micro-batches that there are not.
void SlotCursor::skip() {
  while (run_ < order_.runs.size()) {
    if (run().times == 0) {
      ++run_;
    } else if (done_[index_of(run_kind())][run_chunk()] >= order_.micro_batches()) {
      pass_slot();
    } else {
      return;
    }
  }
}

void SlotCursor::leave_out(std::int64_t passes) {
  for (SlotRun& run : order_.runs) run.times -= run.repeats ? passes / order_.chunks : 0;
  order_.passes -= passes;
}

void SlotCursor::tell(std::int64_t rounds, std::vector<std::int64_t>& state) const {
  if (order_.runs.empty()) {
    const std::int64_t passes = rounds * (order_.chunks > 1 ? order_.pipeline * order_.chunks : 1);
    state.insert(state.end(), {forwards_ - passes, backwards_ - passes});
    state.push_back(order_.splits_backward ? weights_ - passes : 0);
    return;
  }
  state.insert(state.end(), {static_cast<std::int64_t>(run_), static_cast<std::int64_t>(slot_)});
  state.push_back(pair_is_open_ ? 1 : 0);
  for (const auto& of_kind : done_) {
    for (const std::int64_t done : of_kind) state.push_back(done - rounds);
  }
}

std::vector<Slot> schedule_of(Schedule schedule, int stage, int pipeline, int virtual_stages,
                              std::int64_t micro_batches, bool pairs) {
  using Kind = SlotCursor::Kind;
  const SlotOrder order = order_of(schedule, {stage, pipeline, virtual_stages, pairs}, micro_batches);
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>((order.splits_backward ? 3 : 2) * order.passes));
  SlotCursor cursor(order);
  for (auto next = cursor.here(); next.kind != Kind::kNone; next = cursor.here()) {
    slots.push_back({.forward = next.kind == Kind::kForward,
                     .chunk = static_cast<int>(next.chunk),
                     .micro_batch = next.micro_batch,
                     .weights = next.kind == Kind::kWeights,
                     .pair = next.pair && next.kind == Kind::kForward,
                     .whole = next.whole});
    cursor.advance(next.kind);
  }
  return slots;
}

int frames_needed(const std::vector<Slot>& slots, int chunk) { return frames_needed(slots, std::span(&chunk, 1)); }

int frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks) {
  const bool split = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.weights; });
  int alive = 0, most = 0;
  for (const Slot& slot : slots) {
    if (!counts(slot, chunks)) continue;
    if (slot.forward) ++alive;
    if (!slot.forward && (slot.whole || slot.weights == split)) --alive;
    most = std::max(most, alive);
  }
  return most;
}

int deferred_frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks) {
  const bool split = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.weights; });
  int alive = 0, most = 0;
  for (const Slot& slot : slots) {
    if (!split || slot.forward || slot.whole || !counts(slot, chunks)) continue;
    alive += slot.weights ? -1 : 1;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace trivium::program
