#include "simulator/rounds.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "program/schedule.h"

namespace trivium::simulator {
namespace {

using program::Schedule;

constexpr std::int64_t kWorthwhile = 3;  // times as many: two short plays, and one more where the period is long

// What a span is, but for its micro-batch and when it was.
using Name = std::tuple<program::TaskKind, std::int16_t, std::int32_t, std::int32_t, std::int32_t, program::Lane>;

constexpr std::int32_t kBeforeAny = -2;  // members that are not there are -1
constexpr Name kFirstName{program::TaskKind::kForward, kBeforeAny, kBeforeAny, kBeforeAny, kBeforeAny,
                          program::Lane::kCompute};

Name name_of_span(const program::Task& task, const Span& span) {
  return {task.kind, task.chunk, task.peer_stage, span.segment, span.op, span.lane};
}

}  // namespace

std::int64_t SteadyState::enough() const { return 5 * depth + 2 * kMostUnits * unit; }

std::optional<SteadyState> rounds_of(const program::Job& job) {
  const program::Plan& plan = job.plan;
  if (plan.schedule == Schedule::kGpipe) return std::nullopt;
  SteadyState rounds;
  rounds.micro_batches = program::micro_batches(plan, job.training.global_batch);
  rounds.unit = plan.schedule == Schedule::kInterleaved ? plan.pipeline : 1;
  // Weight gradients come up to a pipeline's length later.
  const int passes = program::splits_backward(plan.schedule) ? 2 : plan.virtual_stages;
  rounds.depth = std::max<std::int64_t>(2, std::int64_t{plan.pipeline} * passes);
  if (rounds.micro_batches < kWorthwhile * rounds.enough()) return std::nullopt;
  return rounds;
}

program::Job with_micro_batches(program::Job job, std::int64_t micro_batches) {
  job.training.global_batch = micro_batches * program::samples_of_pass(job.plan);
  return job;
}

std::optional<std::int64_t> comes_again(const program::Role& role, const std::vector<Span>& spans, std::int64_t first,
                                        std::int64_t last, std::int64_t period) {
  std::map<std::pair<std::int64_t, Name>, std::vector<const Span*>> of;  // by micro-batch and name, in order
  for (const Span& span : spans) {
    const program::Task& task = role.tasks[static_cast<std::size_t>(span.task)];
    if (task.micro_batch >= 0) of[{task.micro_batch, name_of_span(task, span)}].push_back(&span);
  }
  std::optional<std::int64_t> shift;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  const auto from = of.lower_bound({first, kFirstName}), until = of.lower_bound({last, kFirstName});
  std::size_t here = 0, there = 0;
  for (auto at = from; at != until; ++at) {
    const auto again = of.find({at->first.first + period, at->first.second});
    if (again == of.end() || again->second.size() != at->second.size()) return std::nullopt;
    for (std::size_t i = 0; i < at->second.size(); ++i) {
      const Span &a = *at->second[i], &b = *again->second[i];
      if (!shift) shift = b.begin_ps - a.begin_ps;
      const bool same =
          b.begin_ps - a.begin_ps == *shift && b.end_ps - a.end_ps == *shift && b.start_ps - a.start_ps == *shift;
      if (!same) return std::nullopt;
      begin = std::min(begin, a.start_ps);
      end = std::max(end, b.end_ps);
    }
    ++here;
  }
  for (auto at = of.lower_bound({first + period, kFirstName}); at != of.lower_bound({last + period, kFirstName}); ++at)
    ++there;
  if (here == 0 || here != there) return std::nullopt;
  for (const Span& span : spans) {
    const bool of_none = role.tasks[static_cast<std::size_t>(span.task)].micro_batch < 0;
    if (of_none && span.end_ps > begin && span.start_ps < end) return std::nullopt;
  }
  return shift;
}

}  // namespace trivium::simulator
