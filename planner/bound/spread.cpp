#include "planner/bound/spread.h"

#include <algorithm>
#include <limits>

namespace trivium::planner {
namespace {

using simulator::PartTimes;
using StageKinds = simulator::CostEstimator::StageKinds;

// forwards f + backwards b + seconds w, for embedding and head and for each kind of layer.
KindLoad load_of(const StageKinds& stage, std::int64_t forwards, std::int64_t backwards, std::int64_t seconds) {
  KindLoad load;
  load.ends = forwards * stage.forward.ends + backwards * stage.backward.ends + seconds * stage.weights.ends;
  for (std::size_t kind = 0; kind < load.layer.size(); ++kind) {
    load.layer[kind] = forwards * stage.forward.layer[kind] + backwards * stage.backward.layer[kind] +
                       seconds * stage.weights.layer[kind];
  }
  return load;
}

KindLoad load_of(const PartTimes& times, std::int64_t often) {
  KindLoad load{often * times.ends, times.layer};
  for (std::int64_t& layer : load.layer) layer *= often;
  return load;
}

// Each kind where it takes the least.
simulator::ByLayerKind<std::int64_t> least(std::span<const KindLoad> loads) {
  simulator::ByLayerKind<std::int64_t> least = loads.front().layer;
  for (const KindLoad& load : loads) {
    for (std::size_t kind = 0; kind < least.size(); ++kind) least[kind] = std::min(least[kind], load.layer[kind]);
  }
  return least;
}

}  // namespace

// Let a_k be the least that a layer of kind k takes on any stage, and W the sum of a_k over all layers. On stage s
// layers take at least r_s = min_k(a_sk / a_k) times their a_k. The slowest takes L; so stage s, whose ends take e_s,
// has layers of (L - e_s) / r_s at most, all stages together W: L >= (W + sum(e_s / r_s)) / sum(1 / r_s).
std::int64_t spread(std::span<const KindLoad> loads, const std::vector<models::LayersOfKind>& kinds) {
  constexpr double kSure = 1 - 1e-9;  // of what rounding may add
  const auto least_layer = least(loads);
  double whole = 0, parts = 0;
  if (*std::max_element(least_layer.begin(), least_layer.end()) <= 0) return 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    whole += static_cast<double>(kinds[kind].count) * static_cast<double>(least_layer[kind]);
  }
  for (const KindLoad& load : loads) {
    double ratio = std::numeric_limits<double>::max();
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (least_layer[kind] <= 0) continue;  // it may take nothing
      ratio = std::min(ratio, static_cast<double>(load.layer[kind]) / static_cast<double>(least_layer[kind]));
    }
    whole += static_cast<double>(load.ends) / ratio;
    parts += 1 / ratio;
  }
  return static_cast<std::int64_t>(std::max(0.0, whole / parts * kSure));
}

std::int64_t spread_passes(const std::vector<StageKinds>& stages, const std::vector<models::LayersOfKind>& kinds,
                           std::int64_t micro_batches, std::span<const std::int64_t> later, bool splits) {
  const std::int64_t m = micro_batches, first = splits ? 0 : 1;
  std::vector<KindLoad> busy, behind, way, exchanging, copying;
  for (std::vector<KindLoad>* loads : {&busy, &behind, &way, &exchanging, &copying}) loads->reserve(stages.size());
  std::int64_t along = 0;  // of one micro-batch through all stages
  for (std::size_t s = 0; s < stages.size(); ++s) {
    busy.push_back(load_of(stages[s], m, m, m));
    behind.push_back(load_of(stages[s], later[s], m - first, m));
    way.push_back(load_of(stages[s], 1, first, 0));
    along += way.back().ends;
    exchanging.push_back(load_of(stages[s].exchanges, m));
    copying.push_back(load_of(stages[s].copies, 2 * m));
    copying.back().ends = -*std::max_element(copying.back().layer.begin(), copying.back().layer.end());
  }
  const auto least_way = least(way);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) along += kinds[kind].count * least_way[kind];
  return std::max(
      {spread(busy, kinds), along + spread(behind, kinds), spread(exchanging, kinds), spread(copying, kinds)});
}

}  // namespace trivium::planner
