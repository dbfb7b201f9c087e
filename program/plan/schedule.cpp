#include "program/plan/schedule.h"

#include <algorithm>

namespace trivium::program {
namespace {

std::vector<Slot> sequential(std::int64_t count) {
  std::vector<Slot> slots;
  for (std::int64_t i = 0; i < count; ++i) {
    slots.push_back({true, 0, i});
    slots.push_back({false, 0, i});
  }
  return slots;
}

std::vector<Slot> gpipe(std::int64_t count) {
  std::vector<Slot> slots;
  for (std::int64_t i = 0; i < count; ++i) slots.push_back({true, 0, i});
  for (std::int64_t i = 0; i < count; ++i) slots.push_back({false, 0, i});
  return slots;
}

// Warm-up forwards, then forward and backward in turn, then the backwards that are left.
template <class Forward, class Backward>
std::vector<Slot> one_forward_one_backward(std::int64_t total, std::int64_t warmup, Forward forward,
                                           Backward backward) {
  std::vector<Slot> slots;
  slots.reserve(static_cast<std::size_t>(2 * total));
  for (std::int64_t k = 0; k < warmup; ++k) slots.push_back(forward(k));
  for (std::int64_t k = warmup; k < total; ++k) {
    slots.push_back(forward(k));
    slots.push_back(backward(k - warmup));
  }
  for (std::int64_t k = total - warmup; k < total; ++k) slots.push_back(backward(k));
  return slots;
}

std::vector<Slot> zero_bubble(std::int64_t count, std::int64_t warmup, std::int64_t delay) {
  std::vector<Slot> slots;
  for (std::int64_t k = 0; k < warmup; ++k) slots.push_back({true, 0, k});
  for (std::int64_t k = 0; k < count; ++k) {
    if (warmup + k < count) slots.push_back({true, 0, warmup + k});
    slots.push_back({false, 0, k});
    if (k >= delay) slots.push_back({false, 0, k - delay, true});
  }
  for (std::int64_t k = std::max<std::int64_t>(0, count - delay); k < count; ++k) slots.push_back({false, 0, k, true});
  return slots;
}

bool counts(const Slot& slot, std::span<const int> chunks) {
  return std::find(chunks.begin(), chunks.end(), slot.chunk) != chunks.end();
}

}  // namespace

std::vector<Slot> schedule_of(Schedule schedule, int stage, int pipeline, int virtual_stages,
                              std::int64_t micro_batches) {
  switch (schedule) {
    case Schedule::kSequential:
      return sequential(micro_batches);
    case Schedule::kGpipe:
      return gpipe(micro_batches);
    case Schedule::kZeroBubble:
      return zero_bubble(micro_batches, std::min<std::int64_t>(micro_batches, pipeline - 1 - stage), stage);
    case Schedule::k1f1b: {
      const std::int64_t warmup = std::min<std::int64_t>(micro_batches, pipeline - 1 - stage);
      return one_forward_one_backward(
          micro_batches, warmup,
          [](std::int64_t k) {
            return Slot{true, 0, k};
          },
          [](std::int64_t k) {
            return Slot{false, 0, k};
          });
    }
    case Schedule::kInterleaved: {
      const std::int64_t total = micro_batches * virtual_stages;
      const std::int64_t round = static_cast<std::int64_t>(pipeline) * virtual_stages;
      const std::int64_t warmup =
          std::min<std::int64_t>(total, 2 * (pipeline - 1 - stage) + (virtual_stages - 1) * std::int64_t{pipeline});
      const auto micro_batch = [=](std::int64_t k) { return k / round * pipeline + k % pipeline; };
      const auto chunk = [=](std::int64_t k) { return static_cast<int>(k % round / pipeline); };
      return one_forward_one_backward(
          total, warmup,
          [=](std::int64_t k) {
            return Slot{true, chunk(k), micro_batch(k)};
          },
          [=](std::int64_t k) {
            return Slot{false, virtual_stages - 1 - chunk(k), micro_batch(k)};
          });
    }
  }
  return {};
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

int delayed_frames_needed(const std::vector<Slot>& slots, std::span<const int> chunks) {
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
