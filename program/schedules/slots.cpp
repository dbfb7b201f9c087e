#include "program/schedules/slots.h"

#include <algorithm>

namespace trivium::program {
namespace {

bool counts(const Slot& slot, std::span<const int> chunks) {
  return std::find(chunks.begin(), chunks.end(), slot.chunk) != chunks.end();
}

}  // namespace

SlotOrder order_of(Schedule schedule, const StagePlace& place, std::int64_t micro_batches) {
  const ScheduleTraits& traits = traits_of(schedule);
  SlotOrder order;
  order.passes = micro_batches * place.virtual_stages;
  order.warm_up = std::min(order.passes, traits.warm_up(place));
  // A backward cannot begin beside the forward that it waits for.
  if (place.pairs) order.warm_up = std::min(order.passes, order.warm_up + 1);
  order.delay = traits.delay(place);
  order.pipeline = place.pipeline;
  order.chunks = place.virtual_stages;
  order.splits_backward = traits.splits_backward;
  return order;
}

// By the backward of round k, warm_up + k + 1 forwards are done, or all, and the backwards of k - delay have ended: the
// most are in flight just before the first of them ends.
std::int64_t SlotOrder::in_flight() const { return std::min(passes, warm_up + 1 + delay); }

std::int64_t SlotOrder::between_halves() const { return splits_backward ? std::min(passes, delay + 1) : 0; }

std::vector<Slot> schedule_of(Schedule schedule, int stage, int pipeline, int virtual_stages,
                              std::int64_t micro_batches, bool pairs) {
  using Kind = SlotCursor::Kind;
  const SlotOrder order = order_of(schedule, {stage, pipeline, virtual_stages, pairs}, micro_batches);
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>((order.splits_backward ? 3 : 2) * order.passes));
  SlotCursor cursor(order);
  for (auto next = cursor.here(); next.kind != Kind::kNone; next = cursor.here()) {
    const bool forward = next.kind == Kind::kForward;
    slots.push_back({forward, static_cast<int>(order.chunk_of(next.number, forward)), order.micro_batch_of(next.number),
                     next.kind == Kind::kWeights});
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
    if (!slot.forward && slot.weights == split) --alive;
    most = std::max(most, alive);
  }
  return most;
}

int deferred_frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks) {
  const bool split = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.weights; });
  int alive = 0, most = 0;
  for (const Slot& slot : slots) {
    if (!split || slot.forward || !counts(slot, chunks)) continue;
    alive += slot.weights ? -1 : 1;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace trivium::program
