#include "report/timeline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/readable.h"
#include "base/seconds.h"
#include "report/charts.h"
#include "report/palette.h"

namespace trivium::report {
namespace {

using base::kSecondsPerPs;

constexpr int kColumns = 800;
constexpr int kMostRows = 64;

enum Doing { kForward, kBackward, kWeights, kRest, kKinds };

const std::vector<ChartPart>& parts() {
  static const std::vector<ChartPart> kParts{{"forward", colour_of(Kind::kForward)},
                                             {"backward", colour_of(Kind::kBackward)},
                                             {"backward: gradients of matrices", colour_of(Kind::kData)},
                                             {"optimizer, norms, gathers", colour_of(Kind::kOptimizer)}};
  return kParts;
}

Doing doing(program::TaskKind kind) {
  switch (kind) {
    case program::TaskKind::kForward:
      return kForward;
    case program::TaskKind::kBackward:
      return kBackward;
    case program::TaskKind::kBackwardWeights:
      return kWeights;
    default:
      return kRest;
  }
}

using Shares = std::vector<std::array<std::int64_t, kKinds>>;

void add(Shares& columns, const program::Event& event, Doing what, std::int64_t iteration_ps) {
  const auto edge = [&](int column) { return std::llround(static_cast<double>(iteration_ps) * column / kColumns); };
  std::int64_t at = std::max<std::int64_t>(0, event.start_ps);
  const std::int64_t end = std::min(event.end_ps, iteration_ps);
  int column = std::clamp(static_cast<int>(static_cast<double>(at) * kColumns / static_cast<double>(iteration_ps)), 0,
                          kColumns - 1);
  while (at < end && column < kColumns) {
    const std::int64_t to = std::min(end, static_cast<std::int64_t>(edge(column + 1)));
    if (to > at) columns[static_cast<std::size_t>(column)][what] += to - at;
    at = std::max(at, to);
    ++column;
  }
}

}  // namespace

std::string timeline_chart(const program::Program& program, const program::Timeline& timeline,
                           std::int64_t iteration_ps) {
  std::map<int, std::pair<int, Shares>> stages;  // role -> the rank that stands for it, and its columns
  for (const program::Event& event : timeline.events) {
    if (event.lane != program::Lane::kCompute) continue;
    const int at = program.role_index(event.rank);
    auto& [rank, columns] = stages.try_emplace(at, event.rank, Shares(kColumns)).first->second;
    if (rank != event.rank) continue;
    const program::Role& role = program.roles[static_cast<std::size_t>(at)];
    add(columns, event, doing(role.tasks[static_cast<std::size_t>(event.task)].kind), iteration_ps);
  }
  std::vector<StripRow> rows;
  const int every = (static_cast<int>(stages.size()) + kMostRows - 1) / kMostRows;
  int number = 0;
  for (const auto& [at, shown] : stages) {
    if (number++ % std::max(1, every) != 0) continue;
    const program::Role& role = program.roles[static_cast<std::size_t>(at)];
    StripRow row{fmt::format("stage {}", role.stage), {}};
    if (!program.replica_kinds.empty()) row.label += fmt::format(" of replica {}", role.first_replica);
    for (int c = 0; c < kColumns; ++c) {
      const auto& shares = shown.second[static_cast<std::size_t>(c)];
      const auto most = std::max_element(shares.begin(), shares.end());
      std::int64_t busy = 0;
      for (const std::int64_t share : shares) busy += share;
      const bool idle = *most == 0 || 2 * busy < iteration_ps / kColumns;
      row.columns.push_back(idle ? -1 : static_cast<int>(most - shares.begin()));
    }
    rows.push_back(std::move(row));
  }
  return strips(parts(), rows, static_cast<double>(iteration_ps) * kSecondsPerPs, base::seconds);
}

}  // namespace trivium::report
