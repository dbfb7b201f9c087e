#include "calibration/certainty/held_back.h"

#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "calibration/measurements/statistics.h"

namespace trivium::calibration {
namespace {

using simulator::ErrorQuantiles;
using simulator::QuantilesOf;
using simulator::RunCell;
using simulator::RunLikeness;

constexpr double kMostInQuantiles = 30;  // runs a source counts for at most, lest the largest rule
constexpr double kMostInMiddle = 5;      // the same in the middle: half of the sources, as it were, lie below
constexpr double kOtherMeasured = 5, kOtherDevices = 0.5, kOtherKinds = 0.5;  // runs they count for
constexpr double kOfMedianError = 1.5;                                        // as simulator/certainty/time_errors.cpp
constexpr int kMachineAndStack = 2;

auto key_of(const TimeRun& run) {
  const RunLikeness& l = run.like;
  return std::tie(run.source, l.device, l.stack, l.kind, l.machine);
}

/// Values of given weights, in order: what lies below a share of the weight, linear between middles of weights.
class WeightedQuantiles {
 public:
  WeightedQuantiles(const std::vector<std::size_t>& order, const std::vector<double>& values,
                    const std::vector<double>& weights) {
    for (const std::size_t i : order) {
      if (weights[i] <= 0) continue;
      middles_.push_back(total_ + weights[i] / 2);
      values_.push_back(values[i]);
      total_ += weights[i];
    }
  }
  bool empty() const { return values_.empty(); }
  double at(double share) const {
    const double place = share * total_;
    const auto above = static_cast<std::size_t>(std::ranges::upper_bound(middles_, place) - middles_.begin());
    if (above == 0) return values_.front();
    if (above == values_.size()) return values_.back();
    const double part = (place - middles_[above - 1]) / (middles_[above] - middles_[above - 1]);
    return values_[above - 1] + part * (values_[above] - values_[above - 1]);
  }

 private:
  std::vector<double> middles_, values_;
  double total_ = 0;
};

}  // namespace

HeldBackRuns::HeldBackRuns(const std::vector<TimeRun>& runs) : runs_(runs) {
  find_cells();
  find_measured();
  find_groups();
}

void HeldBackRuns::find_cells() {
  std::map<decltype(key_of(runs_.front())), std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < runs_.size(); ++i) alike[key_of(runs_[i])].push_back(i);
  cell_of_.resize(runs_.size());
  std::map<std::string, std::vector<Eigen::Index>> sources;
  for (const auto& [key, members] : alike) {
    const TimeRun& first = runs_[members.front()];
    RunCell cell{first.like, first.source, static_cast<int>(members.size())};
    std::vector<double> errors, left_out;
    for (const std::size_t i : members) {
      errors.push_back(runs_[i].error);
      left_out.push_back(runs_[i].left_out);
      cell_of_[i] = cells_.size();
    }
    cell.mean = median(std::move(errors));
    cell.left_out = median(std::move(left_out));
    sources[first.source].push_back(static_cast<Eigen::Index>(cells_.size()));
    cells_.push_back(std::move(cell));
  }
  for (auto& [source, cells] : sources) sources_.push_back(std::move(cells));
}

void HeldBackRuns::find_measured() {
  std::map<std::string, std::set<std::string>> machines, stacks;  // the sources of each
  for (const RunCell& cell : cells_) {
    machines[cell.like.machine].insert(cell.source);
    stacks[simulator::family_of_stack(cell.like.stack)].insert(cell.source);
  }
  for (const TimeRun& run : runs_) {
    measured_.push_back(static_cast<int>(machines[run.like.machine].size() > 1) +
                        static_cast<int>(stacks[simulator::family_of_stack(run.like.stack)].size() > 1));
  }
}

std::vector<double> HeldBackRuns::weights_of(const std::vector<bool>& members, double most) const {
  std::map<std::string, double> counts;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (members[i]) ++counts[runs_[i].source];
  }
  std::vector<double> weights(runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (members[i]) weights[i] = std::min(1.0, most / counts[runs_[i].source]);
  }
  return weights;
}

void HeldBackRuns::add_group(const std::string& kind, const std::string& device, bool busy, int measured) {
  enum Nearness { kOwn, kSameDevice, kSameKind, kRest, kCount };
  std::array<std::vector<bool>, kCount> members;
  for (auto& some : members) some.resize(runs_.size());
  int own = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const TimeRun& run = runs_[i];
    if (simulator::is_busy(run.made_of) != busy) continue;
    const bool of_kind = kind.empty() || simulator::pooled_kind(run.like.kind) == kind;
    const bool on_device = device.empty() || run.like.device == device, as_known = measured_[i] == measured;
    const Nearness near = of_kind && on_device ? (as_known ? kOwn : kSameDevice) : of_kind ? kSameKind : kRest;
    if (near == kOwn) ++own;
    if (as_known || near == kSameDevice) members[near][i] = true;
  }
  if (own == 0 && !device.empty()) return;
  const std::array<double, kCount> counts{0, kOtherMeasured, kOtherDevices, kOtherKinds};
  const auto weights = [&](double most) {
    std::vector<double> all = weights_of(members[kOwn], most);
    for (const Nearness near : {kSameDevice, kSameKind, kRest}) {
      const std::vector<double> others = weights_of(members[near], most);
      const double sum = std::accumulate(others.begin(), others.end(), 0.0);
      if (sum == 0) continue;
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += others[i] / sum * counts[near];
    }
    return all;
  };
  groups_.push_back({{kind, device, busy, measured, own, {}}, weights(kMostInQuantiles), weights(kMostInMiddle)});
}

void HeldBackRuns::find_groups() {
  std::set<std::pair<std::string, std::string>> kinds{{"", ""}};
  for (const TimeRun& run : runs_) {
    kinds.insert({simulator::pooled_kind(run.like.kind), ""});
    kinds.insert({simulator::pooled_kind(run.like.kind), run.like.device});
  }
  for (const auto& [kind, device] : kinds) {
    for (int measured = 0; measured <= kMachineAndStack; ++measured) {
      for (const bool busy : {true, false}) add_group(kind, device, busy, measured);
    }
  }
}

std::vector<RunCell> HeldBackRuns::cells(const simulator::SpreadRule& rule) const {
  std::vector<RunCell> cells = cells_;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    RunCell& cell = cells[cell_of_[i]];
    cell.variance += square(rule.of(runs_[i].made_of)) / cell.runs;
  }
  return cells;
}

std::vector<HeldBack> HeldBackRuns::means(const simulator::SharedParts& parts,
                                          const simulator::SpreadRule& rule) const {
  const std::vector<RunCell> cells = this->cells(rule);
  const auto size = static_cast<Eigen::Index>(cells.size());
  Eigen::MatrixXd covariance(size, size);
  Eigen::VectorXd errors(size), own(size);
  for (Eigen::Index i = 0; i < size; ++i) {
    const RunCell& cell = cells[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < size; ++j) {
      covariance(i, j) = simulator::shared(parts, cell.like, cells[static_cast<std::size_t>(j)].like);
    }
    own(i) = square(parts.source) + kOfMedianError * cell.variance / cell.runs;
    covariance(i, i) += own(i);
    errors(i) = cell.left_out;
  }
  // Of a block of a normal vector given the rest: its precision is that block of the whole's precision.
  const Eigen::MatrixXd precision = covariance.inverse();
  const Eigen::VectorXd weighted = precision * errors;
  std::vector<double> means(cells.size()), variances(cells.size());
  for (const std::vector<Eigen::Index>& block : sources_) {
    const Eigen::MatrixXd given = precision(block, block).inverse();
    const Eigen::VectorXd off = given * weighted(block);
    for (std::size_t b = 0; b < block.size(); ++b) {
      const auto i = static_cast<std::size_t>(block[b]);
      const auto at = static_cast<Eigen::Index>(b);
      means[i] = errors(block[b]) - off(at);
      variances[i] = std::max(0.0, given(at, at) - own(block[b])) + square(parts.source);
    }
  }
  std::vector<HeldBack> held;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const std::size_t cell = cell_of_[i];
    held.push_back({means[cell], std::sqrt(variances[cell] + square(rule.of(runs_[i].made_of))), {}});
  }
  return held;
}

std::vector<QuantilesOf> HeldBackRuns::quantiles(const std::vector<HeldBack>& held, const std::string& without) const {
  std::vector<double> distances;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    distances.push_back((runs_[i].left_out - held[i].mean) / held[i].deviation);
    if (runs_[i].source != without) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::size_t i) { return distances[i]; });
  std::vector<QuantilesOf> all;
  for (const Group& group : groups_) {
    const WeightedQuantiles of_group(order, distances, group.weights);
    if (of_group.empty()) continue;
    all.push_back(group.of);
    const double low = of_group.at(0.05), high = of_group.at(0.95);
    const double middle = WeightedQuantiles(order, distances, group.middle).at(0.5);
    all.back().quantiles = {low, std::clamp(middle, low, high), high};
  }
  return all;
}

ErrorQuantiles HeldBackRuns::quantiles_of(std::size_t run, const std::vector<QuantilesOf>& all) const {
  return simulator::quantiles_at(all, runs_[run].like, simulator::is_busy(runs_[run].made_of), measured_[run]);
}

HeldBackRuns::Result HeldBackRuns::at(const simulator::SharedParts& parts, const simulator::SpreadRule& rule) const {
  Result result{means(parts, rule), {}};
  result.quantiles = quantiles(result.runs, "");
  for (std::size_t i = 0; i < runs_.size(); ++i) result.runs[i].quantiles = quantiles_of(i, result.quantiles);
  return result;
}

std::vector<HeldBack> HeldBackRuns::of_strangers(const simulator::SharedParts& parts,
                                                 const simulator::SpreadRule& rule) const {
  std::vector<HeldBack> held = means(parts, rule);
  std::map<std::string, std::vector<std::size_t>> sources;
  for (std::size_t i = 0; i < runs_.size(); ++i) sources[runs_[i].source].push_back(i);
  for (const auto& [source, members] : sources) {
    const std::vector<QuantilesOf> others = quantiles(held, source);
    for (const std::size_t i : members) held[i].quantiles = quantiles_of(i, others);
  }
  return held;
}

}  // namespace trivium::calibration
