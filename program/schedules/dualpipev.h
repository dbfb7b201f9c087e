// dualpipev: two chunks a stage in a V, where a forward of one goes with a backward of the other (DualPipeV:
// DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1, cut in half by its authors, github.com/deepseek-ai/DualPipe;
// PyTorch's ScheduleDualPipeV has this order). With overlap.expert the two of a pair take turns, each beside the
// other's exchanges with the experts, the backward in one piece; the last stage's first two run one after the other, as
// in its authors' code. Without, all do: no communication of one hides behind the other. Second halves run immediately,
// except for the last, which fill the ramp-down. A stage holds 2p + 1 half-stages' worth of micro-batches. Where a
// chunk's forward and the halves of its backward take as long, and m >= 2p, equal stages idle p - 1 of these.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "program/schedules/schedule.h"

namespace trivium::program::schedules {

inline std::vector<SlotRun> runs_of_dualpipev(const StagePlace& at, std::int64_t micro_batches) {
  const std::int64_t p = at.pipeline, s = at.stage, behind = p - 1 - s;
  const std::int64_t m = std::max(micro_batches, 2 * p), pairs = s + 1;
  std::vector<SlotRun> runs{
      {2 * behind, "F0"},
      {pairs, "F0F1"},
      {behind, "B1W1F1"},
  };
  const std::int64_t apart = at.pairs && behind == 0 ? 1 : 0;
  if (apart > 0) runs.push_back({apart, "F0b1f1b0"});
  runs.push_back({m - p - behind - apart, at.pairs ? "f0b1f1b0" : "F0B1W1F1B0W0", true});
  runs.push_back({behind, at.pairs ? "B1W1f1b0" : "B1W1F1B0W0"});
  runs.push_back({pairs / 2, "B1W1B0W0"});
  // From here on second halves wait: those of one backward more where the pairs are odd, then of both chunks in turn.
  const bool odd = pairs % 2 == 1;
  if (odd) runs.push_back({1, "B1W1B0"});
  runs.push_back({pairs / 2, "B1B0"});
  const std::int64_t waiting = pairs / 2 * 2 + (odd ? 1 : 0);
  const auto is_second = [&](std::int64_t half) { return half < waiting && half % 2 == (odd ? 1 : 0); };
  for (std::int64_t half = 0; half < behind; ++half) runs.push_back({1, is_second(half) ? "W1B0" : "W0B0"});
  for (std::int64_t half = behind; half < behind + waiting; ++half) runs.push_back({1, is_second(half) ? "W1" : "W0"});
  return runs;
}

inline constexpr ScheduleTraits kDualPipeV{
    .schedule = Schedule::kDualPipeV,
    .name = "dualpipev",
    .pytorch = "DualPipeV",
    .virtual_stages = true,
    .chunks = 2,
    .folds = true,
    .splits_backward = true,
    .searched = false,
    .pairs = true,
    .warm_up = [](const StagePlace& at) { return std::int64_t{4} * at.pipeline; },
    .runs = runs_of_dualpipev,
    .bubble =
        [](const StagePlace& at, std::int64_t micro_batches) {
          return fmt::format("where f = b = w, equal stages idle p - 1 = {} of {} passes of chunks", at.pipeline - 1,
                             3 * at.virtual_stages * micro_batches);
        },
};

}  // namespace trivium::program::schedules
