#include "calibration/certainty/learn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "calibration/measurements/statistics.h"

namespace trivium::calibration {
namespace {

using simulator::ErrorCell;
using simulator::ErrorModel;
using simulator::ErrorParts;
using simulator::Likeness;
using simulator::Reach;

constexpr double kBeyond = 0.05;                            // at either end of an interval
constexpr double kUsualDeviation = 0.05, kUsualSpread = 1;  // prior of the parts: log-normal
constexpr double kLeastRun = 0.01;                          // nobody measures a step time better
constexpr int kUsualRuns = 10;                              // prior: a class starts from so many runs of usual spread
constexpr double kMostWeight = 30;                          // of a source's runs, lest the largest source rule
constexpr double kMostInReach = 165;                        // the same where how far errors reach is read off
constexpr int kTellTails = 20;                              // runs that tell their own quantiles
constexpr double kNormalTails = 2 * 1.645;                  // from the 5 % to the 95 % quantile, in deviations
constexpr int kRounds = 4;

auto key_of(const RunError& run) {
  const Likeness& l = run.like;
  return std::tie(run.source, l.device, l.stack, l.kind, l.machine, l.ease);
}

/// Of the median distance of `runs` normal errors from their median, to their standard deviation: Croux and Rousseeuw
/// 1992 (COMPSTAT, "Time-efficient algorithms for two highly robust estimators of scale") for few of them.
double normal_spread(std::size_t runs) {
  static constexpr std::array kFew{1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107};
  if (runs < 2) return 0;
  const auto n = static_cast<double>(runs);
  return kNormalSpread * (runs < 2 + kFew.size() ? kFew[runs - 2] : n / (n - 0.8));
}

/// Of errors, in standard deviations of normal ones that would reach as far: few by their median distance from the
/// middle, so that the one that something else befell stays in the tails, where the reach finds it; many by where nine
/// in ten lie.
double spread_of(const std::vector<double>& errors, double middle) {
  std::vector<double> distances;
  for (const double error : errors) distances.push_back(std::abs(error - middle));
  const double near = normal_spread(distances.size()) * median(distances);
  if (errors.size() < kTellTails) return near;
  return std::max(near, (quantile(errors, 1 - kBeyond) - quantile(errors, kBeyond)) / kNormalTails);
}

std::vector<ErrorCell> cells_of(const std::vector<RunError>& runs) {
  std::map<decltype(key_of(runs.front())), std::vector<const RunError*>> alike;
  for (const RunError& run : runs) alike[key_of(run)].push_back(&run);
  std::vector<ErrorCell> cells;
  for (const auto& [key, members] : alike) {
    ErrorCell cell{members.front()->like, members.front()->source, static_cast<int>(members.size())};
    std::vector<double> errors, shifts;
    for (const RunError* run : members) {
      errors.push_back(run->error);
      shifts.push_back(run->left_out - run->error);
    }
    cell.mean = median(errors);
    cell.left_out = cell.mean + median(shifts);
    cell.spread = spread_of(errors, cell.mean);
    cells.push_back(std::move(cell));
  }
  return cells;
}

/// A variance from several sources, each with the weight of its runs, up to a bound. The usual variance counts as some
/// runs, lest three runs be taken for sure.
class Pooled {
 public:
  void add(const std::string& source, double squares, double freedom) {
    auto& [sum, free] = sources_[source];
    sum += squares;
    free += freedom;
  }
  /// That in the middle of the weights, as one stack in ten is erratic by itself.
  double variance(double usual, double usual_runs) const {
    std::vector<std::pair<double, double>> some{{usual, usual_runs}};
    double weights = usual_runs;
    for (const auto& [source, squares] : sources_) {
      const double weight = std::min(squares.second, kMostWeight);
      if (weight <= 0) continue;
      some.emplace_back(squares.first / squares.second, weight);
      weights += weight;
    }
    if (weights <= 0) return square(kUsualDeviation);
    std::ranges::sort(some);
    double below = 0;
    for (const auto& [variance, weight] : some) {
      below += weight;
      if (below >= weights / 2) return variance;
    }
    return some.back().first;
  }

 private:
  std::map<std::string, std::pair<double, double>> sources_;  // sum of squares, degrees of freedom
};

std::array<double, simulator::kEases> run_spreads(const std::vector<ErrorCell>& cells) {
  Pooled all;
  std::array<Pooled, simulator::kEases> eases;
  for (const ErrorCell& cell : cells) {
    const double squares = square(cell.spread) * (cell.runs - 1);
    all.add(cell.source, squares, cell.runs - 1);
    eases[static_cast<std::size_t>(cell.like.ease)].add(cell.source, squares, cell.runs - 1);
  }
  std::array<double, simulator::kEases> spreads{};
  for (std::size_t i = 0; i < spreads.size(); ++i) {
    spreads[i] = std::max(kLeastRun, std::sqrt(eases[i].variance(all.variance(0, 0), kUsualRuns)));
  }
  return spreads;
}

double log_prior(const ErrorParts& parts) {
  double sum = 0;
  for (const double part : {parts.device, parts.stack, parts.kind, parts.machine}) {
    sum -= square(std::log(part / kUsualDeviation) / kUsualSpread) / 2;
  }
  return sum;
}

/// Each part in turn over a ladder of values, the others held.
void choose_parts(const std::vector<ErrorCell>& cells, ErrorParts& parts) {
  static constexpr std::array kValues{.005, .0075, .01, .015, .02, .03, .04, .06, .08, .1, .13, .17, .22, .3, .4};
  for (double* part : {&parts.device, &parts.stack, &parts.kind, &parts.machine}) *part = kUsualDeviation;
  for (int round = 0; round < kRounds; ++round) {
    for (double* part : {&parts.device, &parts.stack, &parts.kind, &parts.machine}) {
      double best = 0, most = -1e300;
      for (const double value : kValues) {
        *part = value;
        const double now = ErrorModel(cells, parts).log_likelihood() + log_prior(parts);
        if (now > most) most = now, best = value;
      }
      *part = best;
    }
  }
}

/// Quantiles of distances by source, each source with the weight of its runs up to a bound.
Reach reach_of(const std::map<std::string, std::vector<double>>& sources) {
  std::vector<std::pair<double, double>> weighted;
  double weights = 0;
  for (const auto& [source, distances] : sources) {
    const auto runs = static_cast<double>(distances.size());
    for (const double distance : distances) weighted.emplace_back(distance, std::min(1.0, kMostInReach / runs));
    weights += std::min(runs, kMostInReach);
  }
  if (weighted.empty()) return {};
  std::ranges::sort(weighted);
  const auto at = [&](double share) {
    double below = 0;
    for (const auto& [distance, weight] : weighted) {
      below += weight;
      if (below >= share * weights) return distance;
    }
    return weighted.back().first;
  };
  return {std::max(0.0, -at(kBeyond)), std::max(0.0, at(1 - kBeyond))};
}

/// How many deviations errors lie above what a model expects: of every run, in the order given.
std::vector<double> distances(const ErrorModel& model, const std::vector<RunError>& runs, bool known) {
  std::vector<double> all;
  for (const RunError& run : runs) {
    const simulator::ErrorOutlook outlook = model.at(run.like);
    all.push_back(((known ? run.error : run.left_out) - outlook.mean) / outlook.deviation);
  }
  return all;
}

double share_within(const std::vector<double>& distances, const Reach& reach) {
  if (distances.empty()) return 0;
  const auto within = std::ranges::count_if(distances, [&](double d) { return d >= -reach.low && d <= reach.high; });
  return static_cast<double>(within) / static_cast<double>(distances.size());
}

std::map<std::string, std::vector<RunError>> by_source(const std::vector<RunError>& runs) {
  std::map<std::string, std::vector<RunError>> sources;
  for (const RunError& run : runs) sources[run.source].push_back(run);
  return sources;
}

std::vector<RunError> without(const std::vector<RunError>& runs, const std::string& source) {
  std::vector<RunError> others;
  std::ranges::copy_if(runs, std::back_inserter(others), [&](const RunError& run) { return run.source != source; });
  return others;
}

}  // namespace

double spread_between_plans(const std::vector<RunError>& runs) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> sweeps;
  for (const RunError& run : runs) {
    if (!run.sweep.empty() && run.like.ease == 0) sweeps[{run.source, run.sweep}].push_back(run.error);
  }
  Pooled pooled;
  for (const auto& [key, errors] : sweeps) {
    const double freedom = static_cast<double>(errors.size()) - 1;
    pooled.add(key.first, square(spread_of(errors, median(errors))) * freedom, freedom);
  }
  return std::max(kLeastRun, std::sqrt(pooled.variance(square(kUsualDeviation), kUsualRuns)));
}

Learned learn(const std::vector<RunError>& runs) {
  const std::vector<ErrorCell> cells = cells_of(runs);
  ErrorParts parts;
  parts.run = run_spreads(cells);
  parts.between_plans = spread_between_plans(runs);
  choose_parts(cells, parts);
  const ErrorModel model(cells, parts);
  std::map<std::string, std::vector<double>> known, unknown;
  std::vector<double> all_known, all_unknown;
  for (const auto& [source, own] : by_source(runs)) {
    known[source] = distances(model, own, true);
    unknown[source] = distances(ErrorModel(cells_of(without(runs, source)), parts), own, false);
    all_known.insert(all_known.end(), known[source].begin(), known[source].end());
    all_unknown.insert(all_unknown.end(), unknown[source].begin(), unknown[source].end());
  }
  parts.known = reach_of(known);
  parts.unknown = reach_of(unknown);
  Learned learned{ErrorModel(cells, parts), {}, {}};
  for (const auto& [source, distances] : known) {
    learned.coverage.push_back({source, static_cast<int>(distances.size()), share_within(distances, parts.known),
                                share_within(unknown[source], parts.unknown)});
  }
  learned.all = {"all", static_cast<int>(runs.size()), share_within(all_known, parts.known),
                 share_within(all_unknown, parts.unknown)};
  return learned;
}

std::string to_table(const Learned& learned) {
  const ErrorParts& p = learned.model.parts();
  std::string text = fmt::format(
      "standard deviations of log(measured / predicted): device {:.1f} %, stack {:.1f} %, kind {:.1f} %, machine "
      "{:.1f} "
      "%, run {:.1f} / {:.1f} / {:.1f} % at MFU from 30 / from 10 / below 10 %, between plans {:.1f} %\n"
      "the 90 % interval, in deviations: {:.2f} down and {:.2f} up on a machine that was measured, {:.2f} and {:.2f} "
      "elsewhere\n\n"
      "{:<56} {:>6} {:>10} {:>10}\n",
      100 * p.device, 100 * p.stack, 100 * p.kind, 100 * p.machine, 100 * p.run[0], 100 * p.run[1], 100 * p.run[2],
      100 * p.between_plans, p.known.low, p.known.high, p.unknown.low, p.unknown.high, "within the 90 % interval",
      "runs", "own known", "left out");
  const auto line = [&](const Coverage& c) {
    text += fmt::format("{:<56} {:>6} {:>8.1f} % {:>8.1f} %\n", c.source, c.runs, 100 * c.known, 100 * c.unknown);
  };
  for (const Coverage& one : learned.coverage) line(one);
  line(learned.all);
  return text;
}

}  // namespace trivium::calibration
