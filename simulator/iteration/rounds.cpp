#include "simulator/iteration/rounds.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "program/schedules/slots.h"

namespace trivium::simulator {
namespace {

/// What a span is, but for when it was.
struct Named {
  std::int64_t micro_batch = 0;
  std::tuple<program::TaskKind, std::int16_t, std::int32_t, std::int32_t, std::int32_t, program::Lane> name;
  const Span* span = nullptr;
};

// Spans of the micro-batches [first, last), those of one micro-batch by name, those of one name in order.
std::vector<Named> named_spans(const program::Role& role, const std::vector<Span>& spans, std::int64_t first,
                               std::int64_t last) {
  std::vector<Named> named;
  for (const Span& span : spans) {
    const program::Task& task = role.tasks[static_cast<std::size_t>(span.task)];
    if (task.micro_batch < first || task.micro_batch >= last) continue;
    named.push_back(
        {task.micro_batch, {task.kind, task.chunk, task.peer_stage, span.segment, span.op, span.lane}, &span});
  }
  std::stable_sort(named.begin(), named.end(), [](const Named& a, const Named& b) {
    return std::tie(a.micro_batch, a.name) < std::tie(b.micro_batch, b.name);
  });
  return named;
}

}  // namespace

std::int64_t SteadyState::enough() const { return 4 * depth + 2 * unit; }

std::optional<SteadyState> rounds_of(const program::Job& job, std::int64_t worthwhile) {
  const program::Plan& plan = job.plan;
  const program::ScheduleTraits& traits = program::traits_of(plan.schedule);
  // Of orders told as runs the iteration is the same, but not always how much of what a stage idles is for transfers:
  // they are simulated out.
  if (!traits.has_steady_state() || traits.runs != nullptr) return std::nullopt;
  SteadyState rounds;
  rounds.micro_batches = program::micro_batches(plan, job.training.global_batch);
  rounds.unit = traits.round(plan.pipeline);
  // Weight gradients come up to a pipeline's length later. Of v chunks the last backward of a micro-batch comes
  // (v - 1) p slots of a kind after its first, its first less than (v + 1) p after its first forward, and p
  // micro-batches begin in v p slots of a kind.
  const int passes = traits.splits_backward ? 2 : std::min(plan.virtual_stages, 2);
  const std::int64_t chunks = plan.virtual_stages;
  rounds.depth = std::max<std::int64_t>(2, std::int64_t{plan.pipeline} * passes);
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const auto order = program::order_of(plan.schedule, stage_place(plan, stage), rounds.micro_batches);
    rounds.depth = std::max(rounds.depth, (order.in_flight() + chunks - 1) / chunks);
  }
  if (rounds.micro_batches < worthwhile * rounds.enough()) return std::nullopt;
  return rounds;
}

program::Job with_micro_batches(program::Job job, std::int64_t micro_batches) {
  job.training.global_batch = micro_batches * program::samples_of_pass(job.plan);
  return job;
}

std::optional<std::int64_t> comes_again(const program::Role& role, const std::vector<Span>& spans, std::int64_t first,
                                        std::int64_t last, std::int64_t period) {
  const std::vector<Named> before = named_spans(role, spans, first, last),
                           after = named_spans(role, spans, first + period, last + period);
  if (before.empty() || before.size() != after.size()) return std::nullopt;
  const std::int64_t shift = after.front().span->begin_ps - before.front().span->begin_ps;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Span &a = *before[i].span, &b = *after[i].span;
    const bool same = before[i].micro_batch + period == after[i].micro_batch && before[i].name == after[i].name &&
                      b.begin_ps - a.begin_ps == shift && b.end_ps - a.end_ps == shift &&
                      b.start_ps - a.start_ps == shift;
    if (!same) return std::nullopt;
    begin = std::min(begin, a.start_ps);
    end = std::max(end, b.end_ps);
  }
  for (const Span& span : spans) {
    const bool of_none = role.tasks[static_cast<std::size_t>(span.task)].micro_batch < 0;
    if (of_none && span.end_ps > begin && span.start_ps < end) return std::nullopt;
  }
  return shift;
}

}  // namespace trivium::simulator
