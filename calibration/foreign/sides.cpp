#include "calibration/foreign/sides.h"

#include <algorithm>
#include <set>

#include "calibration/foreign/groups.h"

namespace trivium::calibration::foreign {
namespace {

bool transfers(const RankRun& run) {
  return std::ranges::any_of(run.matches, [](const Match& match) {
    return match.kind == Match::Kind::kCollective && (match.op == "send" || match.op == "recv");
  });
}

bool embeds(const RankRun& run) {
  return std::ranges::any_of(run.matches, [](const Match& match) { return match.op == "embedding"; });
}

/// Place of the rank in the group that it transfers in.
int stage_of(const RankRun& run) {
  for (std::size_t i = 0; i < run.matches.size(); ++i) {
    if (run.matches[i].op != "send" && run.matches[i].op != "recv") continue;
    const imports::ProcessGroup* group = group_of(run, run.trace->kernels[i]);
    if (group == nullptr || group->ranks.empty()) return run.rank;
    return static_cast<int>(std::ranges::find(group->ranks, run.rank) - group->ranks.begin());
  }
  return 0;
}

double tokens_of(const RankRun& run) {
  std::set<std::int32_t> seen;
  double tokens = 0;
  for (const imports::Kernel& kernel : run.trace->kernels) {
    if (run.step_at(kernel.start_s) < 0) continue;
    for (std::int32_t at = kernel.launched_by; at >= 0;) {
      const imports::Operator& op = run.trace->operators[static_cast<std::size_t>(at)];
      if (op.shapes >= 0 && run.trace->name_of(op) == "aten::embedding" && seen.insert(at).second) {
        const imports::Shapes& shapes = run.trace->shapes[static_cast<std::size_t>(op.shapes)];
        double count = shapes.size() > 1 && !shapes[1].empty() ? 1 : 0;
        for (std::size_t i = 0; count > 0 && i < shapes[1].size(); ++i) count *= static_cast<double>(shapes[1][i]);
        tokens += count;
      }
      at = op.parent;
    }
  }
  return run.steps.empty() ? 0 : tokens / static_cast<double>(run.steps.size());
}

}  // namespace

double Side::step_median(double StepTimes::*member) const {
  std::vector<double> values;
  for (const StepTimes& step : times->steps) values.push_back(step.*member);
  return median_of(std::move(values));
}

std::vector<const Side*> Sides::peers_of(const Side& side) const {
  std::vector<const Side*> peers;
  for (const Side& other : ranks) {
    if (&other != &side && other.stage == side.stage) peers.push_back(&other);
  }
  return peers;
}

std::vector<const Side*> Sides::others_of(const Side& side) const {
  std::vector<const Side*> others = peers_of(side);
  if (!others.empty()) return others;
  for (const Side& other : ranks) {
    if (&other != &side) others.push_back(&other);
  }
  return others;
}

Sides sides_of(const std::vector<RankRun>& runs, const std::vector<RankTimes>& times) {
  Sides sides;
  // Rings of context parallelism transfer too, but all of their ranks embed.
  const bool piped = std::ranges::any_of(runs, transfers) && !std::ranges::all_of(runs, embeds);
  std::set<int> stages;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Side& side = sides.ranks.emplace_back();
    side.run = &runs[i];
    side.times = &times[i];
    side.tally = tally_of(runs[i]);
    side.tokens = tokens_of(runs[i]);
    side.iteration_s = side.step_median(&StepTimes::seconds);
    if (piped) side.stage = stage_of(runs[i]);
    stages.insert(side.stage);
    sides.on_cores = runs[i].trace->on_cores;
    for (std::size_t k = 0; k < runs[i].matches.size(); ++k) {
      if (runs[i].matches[k].op == "all_to_all" && runs[i].trace->kernels[k].bytes > 1e4)
        sides.exchanges_experts = true;
    }
  }
  sides.stages = static_cast<int>(stages.size());
  return sides;
}

double waited_for(const Sides& sides, const Side& side) {
  double most = 0;
  for (const Side& other : sides.ranks) {
    std::vector<double> waits;
    for (const StepTimes& step : other.times->steps) {
      const auto wait = step.waits_s.find(side.run->rank);
      waits.push_back(wait == step.waits_s.end() ? 0 : wait->second);
    }
    if (&other != &side) most = std::max(most, median_of(std::move(waits)));
  }
  return most;
}

std::vector<SeenAt> seen_at(const Side& side, const std::vector<TimeSpan>& spans) {
  std::vector<SeenAt> seen;
  constexpr std::size_t kExamples = 3;
  for (const TimeSpan& span : spans) {
    if (seen.size() == kExamples) break;
    seen.push_back({side.run->rank, side.run->step_at(span.begin_s), span.begin_s * 1e6, span.end_s * 1e6});
  }
  return seen;
}

}  // namespace trivium::calibration::foreign
