#include "simulator/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "simulator/replay/stuck.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {
namespace {

// Steps that took turns on a core with others share what their run took beyond its own time. Not empty.
void stretch(std::span<Span> steps, std::int64_t end) {
  const std::int64_t begin = steps.front().begin_ps, alone = steps.back().end_ps - begin;
  if (alone <= 0) return;
  const double turns = static_cast<double>(end - begin) / static_cast<double>(alone);
  const auto later = [&](std::int64_t ps) { return begin + std::llround(static_cast<double>(ps - begin) * turns); };
  for (Span& step : steps) {
    if (&step != &steps.front()) step.start_ps = later(step.start_ps);
    step.begin_ps = later(step.begin_ps);
    step.end_ps = later(step.end_ps);
  }
}

/// Where the spans of every stream begin, and the last ends.
using Bounds = std::array<std::size_t, kStreams + 1>;

// Streams are in order: theirs are merged by begin, of equal ones the lower stream's first.
std::vector<Span> merged(const std::vector<Span>& spans, const Bounds& streams) {
  std::vector<Span> all;
  all.reserve(spans.size());
  Bounds at = streams;
  while (all.size() < spans.size()) {
    std::size_t next = kStreams;
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (at[s] == streams[s + 1]) continue;
      if (next == kStreams || spans[at[s]].begin_ps < spans[at[next]].begin_ps) next = s;
    }
    // All of it that begins before any other stream's next: lanes take turns in long runs.
    std::int64_t until = std::numeric_limits<std::int64_t>::max();
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (s != next && at[s] < streams[s + 1]) until = std::min(until, spans[at[s]].begin_ps + (s > next ? 1 : 0));
    }
    const std::size_t end = streams[next + 1];
    do {
      all.push_back(spans[at[next]++]);
    } while (at[next] < end && spans[at[next]].begin_ps < until);
  }
  return all;
}

// Runs of steps back into the spans of single steps.
std::vector<Span> spans_of(const ReplayProgram& compiled, const Variation& variation, std::int32_t actor,
                           const std::array<std::vector<RunTimes>, kStreams>& runs) {
  std::vector<Span> spans;
  const auto p = static_cast<std::size_t>(actor);
  const InstructionStreams& instructions =
      compiled.streams_by_role[static_cast<std::size_t>(compiled.topology.role[p])];
  Bounds streams{};
  std::size_t count = 0;
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    for (std::size_t i = 0; i < runs[stream].size(); ++i) {
      count += static_cast<std::size_t>(instructions.streams[stream][i].steps);
    }
    streams[stream + 1] = count;
  }
  spans.reserve(count);
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    const Draws draws(variation.seed, static_cast<std::uint32_t>(compiled.topology.rank[p]),
                      static_cast<std::uint32_t>(stream));
    const double device = variation.device.empty() ? 1.0 : variation.device[p];
    const bool plain = variation.jitter == 0 && device == 1.0;
    std::uint64_t drawn = 0;
    for (std::size_t i = 0; i < runs[stream].size(); ++i) {
      const Instruction& in = instructions.streams[stream][i];
      const RunTimes& run = runs[stream][i];
      std::int64_t at = run.begin;
      for (std::int32_t s = 0; s < in.steps; ++s, ++drawn) {
        const Step& step = instructions.steps[static_cast<std::size_t>(in.first_step + s)];
        Span span;
        span.task = in.task;
        span.segment = step.segment;
        span.op = step.op;
        span.lane = static_cast<program::Lane>(stream);
        span.start_ps = s == 0 ? run.arrival : at;
        span.begin_ps = at;
        span.end_ps = in.rendezvous != RendezvousKind::kNone
                          ? run.end
                          : at + (plain ? step.ps : varied(step, variation, draws, drawn, device));
        at = span.end_ps;
        spans.push_back(span);
      }
      if (compiled.topology.cores >= 0 && in.rendezvous == RendezvousKind::kNone)
        stretch(std::span(spans).last(in.steps), run.end);
    }
  }
  spans = merged(spans, streams);
  for (std::size_t i = 0; i < spans.size(); ++i) spans[i].sequence = static_cast<std::int64_t>(i);
  return spans;
}

}  // namespace

base::Result<Replay> replay(const CostedProgram& costed, const ReplayProgram& compiled, const Variation& variation,
                            Keep keep, const std::stop_token& stop) {
  const ReplayTopology& topology = compiled.topology;
  std::vector<bool> record(static_cast<std::size_t>(topology.actors()), keep == Keep::kEverything);
  if (keep == Keep::kRepresentatives) {
    for (std::size_t p = 0; p < record.size(); ++p) {
      record[p] = topology.rank[p] == representative(*costed.program, topology.role[p]);
    }
  }
  std::vector<RankSpans> kept;
  base::Result<Replay> result = replay(
      costed, compiled, variation, record, [&](const RankSpans& spans) { kept.push_back(spans); }, stop);
  if (result) result.value().ranks = std::move(kept);
  return result;
}

base::Result<Replay> replay(const CostedProgram& costed, const ReplayProgram& compiled, const Variation& variation,
                            const std::vector<bool>& record, const Listener& listener, const std::stop_token& stop) {
  const ReplayTopology& topology = compiled.topology;
  const ReplayOutcome simulated = run_replay(compiled.streams_by_role, topology, variation, record, stop);
  if (simulated.cancelled) return cancelled();
  if (!simulated.blocked.empty()) {
    return base::Error{base::ErrorKind::kRuntime, why_stuck(*costed.program, compiled, simulated.blocked)};
  }
  std::vector<std::int32_t> actors;
  for (std::int32_t p = 0; p < topology.actors(); ++p) {
    if (record[static_cast<std::size_t>(p)]) actors.push_back(p);
  }
  std::sort(actors.begin(), actors.end(), [&](std::int32_t a, std::int32_t b) {
    return topology.rank[static_cast<std::size_t>(a)] < topology.rank[static_cast<std::size_t>(b)];
  });
  for (const std::int32_t p : actors) {
    if (stop.stop_requested()) return cancelled();
    const auto actor = static_cast<std::size_t>(p);
    const std::int64_t ranks = topology.stands_for.empty() ? 1 : topology.stands_for[actor];
    listener({topology.rank[actor], ranks, spans_of(compiled, variation, p, simulated.runs[actor])});
  }
  Replay result;
  result.makespan_ps = simulated.makespan_ps;
  result.rendezvous = simulated.rendezvous;
  result.flows = simulated.flows;
  return result;
}

}  // namespace trivium::simulator
