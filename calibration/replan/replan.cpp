#include "calibration/replan/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/refuse.h"
#include "base/seconds.h"
#include "calibration/measurements/run_events.h"
#include "calibration/measurements/statistics.h"
#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "simulator/analytic/schedule_costs.h"
#include "simulator/memory/memory.h"

namespace trivium::calibration {
namespace {

using base::kPsPerSecond;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kLeastGain = 1.005;  // a gain below half a percent is none

PassSeconds& operator+=(PassSeconds& a, const PassSeconds& b) {
  a.forward += b.forward;
  a.backward += b.backward;
  a.weights += b.weights;
  return a;
}

PassSeconds scaled(const PassSeconds& a, double by) { return {a.forward * by, a.backward * by, a.weights * by}; }

constexpr std::size_t kSorts = models::kMostLayerKinds;

/// What layers and ends take on every stage.
class StageCosts {
 public:
  StageCosts(const models::Model& model, int stages, const std::vector<RankTimes>& ranks)
      : model_(model), kinds_(models::layer_kinds(model)) {
    layers_.resize(static_cast<std::size_t>(stages));
    ends_.resize(static_cast<std::size_t>(stages));
    std::vector<double> slowest(layers_.size(), -1);
    for (const RankTimes& times : ranks) {
      const auto s = static_cast<std::size_t>(times.stage);
      if (times.layer_mean <= slowest[s]) continue;
      slowest[s] = times.layer_mean;
      layers_[s] = means_of(times);
      ends_[s] = {times.embedding, times.head};
    }
    for (std::size_t sort = 0; sort < kinds_.size(); ++sort) {
      for (std::size_t other = 0; other < kinds_.size(); ++other) {
        if (other != sort) fill_in(sort, other);
      }
    }
  }

  PassSeconds layer(int stage, int layer) const { return layers_[static_cast<std::size_t>(stage)][sort_of(layer)]; }
  PassSeconds embedding(int stage) const { return ends_[static_cast<std::size_t>(stage)][0]; }
  PassSeconds head(int stage) const { return ends_[static_cast<std::size_t>(stage)][1]; }

 private:
  using BySort = std::array<PassSeconds, kSorts>;  // by kind of layer

  std::size_t sort_of(int layer) const {
    const models::LayerKind kind = model_.layer_kind(layer);
    const auto known =
        std::find_if(kinds_.begin(), kinds_.end(), [&](const auto& alike) { return alike.kind == kind; });
    return static_cast<std::size_t>(known - kinds_.begin());
  }

  BySort means_of(const RankTimes& times) const {
    BySort sums{};
    std::array<int, kSorts> counts{};
    for (std::size_t i = 0; i < times.layers.size(); ++i) {
      const std::size_t sort = sort_of(times.layers[i]);
      sums[sort] += times.seconds[i];
      ++counts[sort];
    }
    for (std::size_t sort = 0; sort < kSorts; ++sort) {
      if (counts[sort] > 0) sums[sort] = scaled(sums[sort], 1.0 / counts[sort]);
    }
    return sums;
  }

  // A sort that a stage has not run: its mean over the stages that have, by the other sort's ratio to its mean there.
  void fill_in(std::size_t sort, std::size_t other) {
    PassSeconds mean;
    double mean_other = 0;
    int both = 0;
    for (const BySort& stage : layers_) {
      if (stage[sort].total() == 0 || stage[other].total() == 0) continue;
      mean += stage[sort];
      mean_other += stage[other].total();
      ++both;
    }
    for (BySort& stage : layers_) {
      if (both > 0 && stage[sort].total() == 0 && stage[other].total() > 0)
        stage[sort] = scaled(mean, stage[other].total() / mean_other);
    }
  }

  const models::Model& model_;
  std::vector<models::LayersOfKind> kinds_;
  std::vector<BySort> layers_;
  std::vector<std::array<PassSeconds, 2>> ends_;  // embedding, head
};

/// Passes of one micro-batch of a chunk.
PassSeconds chunk_seconds(const program::Plan& plan, const StageCosts& costs, int chunk, int first, int layers) {
  const int stage = plan.stage_of(chunk);
  PassSeconds sum;
  if (chunk == 0) sum += costs.embedding(stage);
  if (chunk + 1 == plan.chunks()) sum += costs.head(stage);
  for (int i = 0; i < layers; ++i) sum += costs.layer(stage, first + i);
  return sum;
}

/// The splits of layers over chunks, by dynamic programming. `join`: what a chunk's load does to the cost before it.
class Splits {
 public:
  template <class Join>
  Splits(const program::Plan& plan, const StageCosts& costs, int layers, const std::vector<int>& most, double limit,
         Join join) {
    const auto chunks = static_cast<std::size_t>(plan.chunks()), width = static_cast<std::size_t>(layers) + 1;
    best_.assign(chunks + 1, std::vector<double>(width, kNever));
    taken_.assign(chunks + 1, std::vector<int>(width, 0));
    best_[0][0] = 0;
    for (std::size_t c = 1; c <= chunks; ++c) {
      for (int first = 0; first < layers; ++first) {
        const double before = best_[c - 1][static_cast<std::size_t>(first)];
        if (before == kNever) continue;
        for (int k = 1; k <= std::min(most[c - 1], layers - first); ++k) {
          const double load = chunk_seconds(plan, costs, static_cast<int>(c) - 1, first, k).total();
          if (load > limit) break;
          const auto n = static_cast<std::size_t>(first + k);
          if (const double cost = join(before, load); cost < best_[c][n]) best_[c][n] = cost, taken_[c][n] = k;
        }
      }
    }
  }

  double cost() const { return best_.back().back(); }
  std::vector<int> layers() const {
    std::vector<int> counts(best_.size() - 1);
    for (std::size_t c = counts.size(), left = best_.back().size() - 1; c > 0; --c) {
      counts[c - 1] = taken_[c][left];
      left -= static_cast<std::size_t>(counts[c - 1]);
    }
    return counts;
  }

 private:
  std::vector<std::vector<double>> best_;  // by chunks and layers given out
  std::vector<std::vector<int>> taken_;    // by the last of the chunks
};

/// Empty where the layers do not fit.
std::vector<int> split(const program::Plan& plan, const StageCosts& costs, int layers, const std::vector<int>& most) {
  const auto slower = [](double a, double b) { return std::max(a, b); };
  const double limit = Splits(plan, costs, layers, most, kNever, slower).cost();
  if (limit == kNever) return {};
  return Splits(plan, costs, layers, most, limit * (1 + 1e-9), std::plus<>{}).layers();
}

/// When the last pass of a step ends (s).
double passes_s(const program::Job& job, const StageCosts& costs) {
  const program::Plan& plan = job.plan;
  simulator::ScheduleCosts schedule_costs;
  schedule_costs.schedule = plan.schedule;
  schedule_costs.pipeline = plan.pipeline;
  schedule_costs.virtual_stages = plan.virtual_stages;
  schedule_costs.micro_batches = program::micro_batches(plan, job.training.global_batch);
  int first = 0, chunk = 0;
  for (const int layers : program::chunk_layers(job)) {
    const PassSeconds seconds = chunk_seconds(plan, costs, chunk++, first, layers);
    first += layers;
    simulator::ScheduleCosts::Chunk& entry = schedule_costs.chunks.emplace_back();
    entry.forward = std::llround(seconds.forward * kPsPerSecond);
    entry.backward = std::llround(seconds.backward * kPsPerSecond);
    entry.weights = std::llround(seconds.weights * kPsPerSecond);
    entry.layers = layers;
  }
  schedule_costs.endings.resize(static_cast<std::size_t>(plan.pipeline));
  return static_cast<double>(std::ranges::max(simulator::recurrence_ends(schedule_costs).stages)) / kPsPerSecond;
}

/// The first stage that does not hold its part, or -1.
int too_big(const std::string& file, const program::Job& job, const hardware::Cluster& cluster) {
  const auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) {
    base::refuse(file, "the proposed plan cannot be lowered: " + no->reason);
  }
  const auto memory = simulator::memory_of(std::get<program::Program>(lowered), cluster);
  for (const simulator::StageMemory& stage : memory) {
    if (stage.total() > stage.capacity || stage.host > stage.host_capacity) return stage.stage;
  }
  return -1;
}

/// The fastest split that fits; the plan's own where none does.
void propose(const std::string& file, program::Job& job, const StageCosts& costs, const hardware::Cluster& cluster,
             std::string& limited) {
  const int layers = static_cast<int>(job.model.layers);
  std::vector<int> most(static_cast<std::size_t>(job.plan.chunks()), layers);
  program::Job proposal = job;
  for (;;) {
    proposal.plan.stage_layers = split(job.plan, costs, layers, most);
    if (proposal.plan.stage_layers.empty()) return;
    const int stage = too_big(file, proposal, cluster);
    if (stage < 0) break;
    int widest = stage;  // of the stage's chunks; its first is where it is itself
    for (int v = 0; v < job.plan.virtual_stages; ++v) {
      const int c = job.plan.position_of(stage, v);
      const auto& counts = proposal.plan.stage_layers;
      if (counts[static_cast<std::size_t>(c)] > counts[static_cast<std::size_t>(widest)]) widest = c;
    }
    most[static_cast<std::size_t>(widest)] = proposal.plan.stage_layers[static_cast<std::size_t>(widest)] - 1;
    limited =
        fmt::format("stage {} has no memory for more than {} layers", stage, most[static_cast<std::size_t>(widest)]);
  }
  job = std::move(proposal);
}

std::vector<Straggler> stragglers_of(const std::vector<RankTimes>& ranks) {
  std::map<int, std::vector<double>> means;  // by kind of replica: the same layers with equal micro-batches
  for (const RankTimes& times : ranks) means[times.replica_kind].push_back(times.layer_mean);
  std::map<int, double> medians;
  for (auto& [kind, all] : means) medians[kind] = median(std::move(all));
  std::vector<Straggler> found;
  for (const RankTimes& times : ranks) {
    const double middle = medians.at(times.replica_kind);
    if (middle > 0 && times.layer_mean >= kStragglerFactor * middle)
      found.push_back({times.rank, times.stage, times.layer_mean / middle});
  }
  return found;
}

std::vector<ChunkTimes> chunk_times(const program::Program& program, const StageCosts& costs,
                                    const std::vector<int>& proposed) {
  const program::Plan& plan = program.job.plan;
  const std::vector<int> layers = program::chunk_layers(program.job);
  std::vector<ChunkTimes> chunks;
  int first = 0, proposed_first = 0;
  for (int c = 0; c < plan.chunks(); ++c) {
    const auto i = static_cast<std::size_t>(c);
    ChunkTimes& chunk = chunks.emplace_back();
    chunk.stage = plan.stage_of(c);
    for (int rank = 0; rank < program.mesh.size(); ++rank) {
      if (program.mesh.coordinates(rank).pipeline == chunk.stage) chunk.ranks.push_back(rank);
    }
    chunk.layers = layers[i];
    chunk.proposed = proposed[i];
    chunk.ends_s = chunk_seconds(plan, costs, c, 0, 0).total();
    chunk.before_s = chunk_seconds(plan, costs, c, first, layers[i]).total();
    chunk.after_s = chunk_seconds(plan, costs, c, proposed_first, proposed[i]).total();
    chunk.layer_s = (chunk.before_s - chunk.ends_s) / layers[i];
    first += layers[i];
    proposed_first += proposed[i];
  }
  return chunks;
}

}  // namespace

Replan replan(const program::RunRecord& record, const hardware::Cluster& cluster) {
  const program::Program program = program_of(record);
  const std::vector<RankTimes> ranks = rank_times(program, record);
  const StageCosts costs(program.job.model, program.job.plan.pipeline, ranks);
  Replan result;
  result.measured_iteration_s = result.predicted_iteration_s = measured_iteration(record);
  result.stragglers = stragglers_of(ranks);
  program::Job proposal = record.job;
  propose(record.file, proposal, costs, cluster, result.limited);
  const double gained = passes_s(record.job, costs) - passes_s(proposal, costs);
  const double predicted = result.measured_iteration_s - gained;
  result.changed = predicted > 0 && result.measured_iteration_s >= kLeastGain * predicted &&
                   program::chunk_layers(proposal) != program::chunk_layers(record.job);
  result.plan = result.changed ? proposal.plan : record.job.plan;
  if (result.changed) result.predicted_iteration_s = predicted;
  result.chunks = chunk_times(program, costs, program::chunk_layers(result.changed ? proposal : record.job));
  return result;
}

}  // namespace trivium::calibration
