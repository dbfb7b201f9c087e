#include "calibration/certainty/learn_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "calibration/certainty/held_back.h"
#include "calibration/measurements/statistics.h"

namespace trivium::calibration {
namespace {

using simulator::SharedParts;
using simulator::SpreadRule;

constexpr double kMissed = 20;            // 2 / 0.1: what an interval score adds for what lies outside a 90 % interval
constexpr std::size_t kLeastOfClass = 8;  // runs of a class that is looked at
constexpr double kMostInClass = 60;       // runs whose root a class weighs at most
constexpr double kUsualPart = 0.04, kUsualFactor = 1.5, kUsualCoefficient = 2;  // prior: log-normal, and normal
constexpr double kUsualBase = -2.5, kBaseSpread = 0.5;  // prior: a run's own deviation is 8 %, e^.5 up or down
constexpr double kPriorWeight = 0.05;                   // of a unit of the score's logarithm
constexpr double kLeastBetter = 1e-4;
constexpr int kLadderRounds = 4;
constexpr int kPlansOfSweep = 4;

using KindOnDevice = std::pair<std::string, std::string>;
KindOnDevice kind_on_device(const TimeRun& run) { return {simulator::pooled_kind(run.like.kind), run.like.device}; }

double interval_score(const HeldBack& held, double error) {
  const double low = held.low(), high = held.high();
  return high - low + kMissed * (std::max(0.0, low - error) + std::max(0.0, error - high));
}

/// What is chosen: logarithms of the parts, and the rule.
struct Choice {
  std::array<double, 8> at{kUsualBase,    1, 1.5, std::log(0.01), std::log(0.02), std::log(0.01), std::log(0.08),
                           std::log(0.08)};

  SpreadRule rule() const { return {at[0], at[1], at[2]}; }
  SharedParts parts() const {
    return {std::exp(at[3]), std::exp(at[4]), std::exp(at[5]), std::exp(at[6]), std::exp(at[7])};
  }
  double prior() const {
    double sum = square((at[0] - kUsualBase) / kBaseSpread);  // else only quantiles set the width
    for (std::size_t i = 1; i < 3; ++i) sum += square(at[i] / kUsualCoefficient);
    for (std::size_t i = 3; i < at.size(); ++i) sum += square((at[i] - std::log(kUsualPart)) / kUsualFactor);
    return sum * kPriorWeight;
  }
};

class Chooser {
 public:
  explicit Chooser(const HeldBackRuns& held) : held_(held) {
    for (std::size_t i = 0; i < held.runs().size(); ++i) classes_[kind_on_device(held.runs()[i])].push_back(i);
  }

  /// Each number in turn up and down a ladder of finer and finer steps, while the score improves.
  Choice best() const {
    Choice now;
    double least = loss(now);
    for (const double step : {0.6, 0.3, 0.15}) {
      bool better = true;
      for (int round = 0; round < kLadderRounds && better; ++round) {
        better = false;
        for (std::size_t i = 0; i < now.at.size(); ++i) {
          for (const double by : {step, -step, 2 * step, -2 * step}) {
            Choice next = now;
            next.at[i] += by;
            const double then = loss(next);
            if (then < least - kLeastBetter) least = then, now = next, better = true;
          }
        }
      }
    }
    return now;
  }

 private:
  double loss(const Choice& choice) const {
    const std::vector<HeldBack> held = held_.at(choice.parts(), choice.rule()).runs;
    double sum = 0, weights = 0;
    for (const auto& [of, members] : classes_) {
      if (members.size() < kLeastOfClass) continue;
      double score = 0;
      for (const std::size_t i : members) score += interval_score(held[i], held_.runs()[i].left_out);
      const double weight = std::sqrt(std::min(static_cast<double>(members.size()), kMostInClass));
      sum += weight * std::log(score / static_cast<double>(members.size()));
      weights += weight;
    }
    return (weights > 0 ? sum / weights * kMissed : 0) + choice.prior();
  }

  const HeldBackRuns& held_;
  std::map<KindOnDevice, std::vector<std::size_t>> classes_;
};

/// By how much the error of the plan that is predicted fastest exceeds the middle one of its sweep, in the middle of
/// sweeps; of busy plans.
double picked_of(const std::vector<TimeRun>& runs) {
  std::map<std::pair<std::string, std::string>, std::map<double, double>> sweeps;  // predicted time to error
  for (const TimeRun& run : runs) {
    if (!run.sweep.empty() && is_busy(run.made_of))
      sweeps[{run.source, run.sweep}].try_emplace(run.predicted_s, run.error);
  }
  std::vector<double> excesses;
  for (const auto& [key, plans] : sweeps) {
    if (plans.size() < kPlansOfSweep) continue;
    std::vector<double> errors;
    for (const auto& [predicted, error] : plans) errors.push_back(error);
    const double first = errors.front();
    excesses.push_back(first - median(std::move(errors)));
  }
  return std::max(0.0, median(std::move(excesses)));
}

double between_plans_of(const std::vector<TimeRun>& runs) {
  std::vector<RunError> errors;
  for (const TimeRun& run : runs) {
    errors.push_back(
        {{run.like.device, run.like.stack, run.like.kind, run.like.machine, simulator::ease_of(run.made_of.mfu)},
         run.source,
         run.sweep,
         run.error,
         run.left_out});
  }
  return spread_between_plans(errors);
}

bool is_within(double error, double low, double high) { return low <= error && error <= high; }

std::vector<Coverage> coverage_of(const LearnedTime& learned, const HeldBackRuns& held,
                                  const std::vector<HeldBack>& left_out) {
  std::map<std::string, Coverage> sources;
  for (std::size_t i = 0; i < held.runs().size(); ++i) {
    const TimeRun& run = held.runs()[i];
    const simulator::TimeOutlook outlook = learned.errors.at(run.like, run.made_of);
    Coverage& of = sources.try_emplace(run.source, Coverage{run.source}).first->second;
    ++of.runs;
    of.known += is_within(run.error, outlook.at(outlook.quantiles.low), outlook.at(outlook.quantiles.high));
    of.unknown += is_within(run.left_out, left_out[i].low(), left_out[i].high());
  }
  std::vector<Coverage> all;
  for (auto& [source, of] : sources) {
    of.known /= of.runs, of.unknown /= of.runs;
    all.push_back(of);
  }
  return all;
}

Coverage all_sources(const std::vector<Coverage>& sources) {
  Coverage all{"all"};
  for (const Coverage& one : sources) {
    all.runs += one.runs, all.known += one.known * one.runs, all.unknown += one.unknown * one.runs;
  }
  if (all.runs > 0) all.known /= all.runs, all.unknown /= all.runs;
  return all;
}

std::vector<ClassCoverage> class_coverage_of(const HeldBackRuns& held, const std::vector<HeldBack>& left_out,
                                             const std::vector<HeldBack>& strangers) {
  std::map<KindOnDevice, std::pair<ClassCoverage, std::vector<double>>> classes;
  for (std::size_t i = 0; i < held.runs().size(); ++i) {
    const TimeRun& run = held.runs()[i];
    auto& [of, widths] = classes[kind_on_device(run)];
    of.kind = kind_on_device(run).first, of.device = kind_on_device(run).second;
    ++of.runs;
    of.below += run.left_out<left_out[i].low(), of.above += run.left_out> left_out[i].high();
    of.score += interval_score(left_out[i], run.left_out);
    of.strangers += is_within(run.left_out, strangers[i].low(), strangers[i].high());
    if (is_busy(run.made_of)) widths.push_back(std::expm1(left_out[i].high() - left_out[i].low()));
  }
  std::vector<ClassCoverage> all;
  for (auto& [key, one] : classes) {
    auto& [of, widths] = one;
    of.below /= of.runs, of.above /= of.runs, of.score /= of.runs, of.strangers /= of.runs;
    of.within = 1 - of.below - of.above;
    of.width = median(std::move(widths));
    all.push_back(of);
  }
  return all;
}

std::array<MeasuredWidth, 3> measured_widths_of(const HeldBackRuns& held, const std::vector<HeldBack>& left_out) {
  std::array<MeasuredWidth, 3> of;
  std::array<std::vector<double>, 3> widths;
  for (std::size_t i = 0; i < held.runs().size(); ++i) {
    const TimeRun& run = held.runs()[i];
    if (!is_busy(run.made_of)) continue;
    const auto measured = static_cast<std::size_t>(held.measured()[i]);
    ++of[measured].runs;
    of[measured].within += is_within(run.left_out, left_out[i].low(), left_out[i].high());
    widths[measured].push_back(std::expm1(left_out[i].high() - left_out[i].low()));
  }
  for (std::size_t m = 0; m < of.size(); ++m) {
    of[m].width = median(std::move(widths[m]));
    if (of[m].runs > 0) of[m].within /= of[m].runs;
  }
  return of;
}

}  // namespace

LearnedTime learn_time(const std::vector<TimeRun>& runs) {
  const HeldBackRuns held(runs);
  const Choice choice = Chooser(held).best();
  HeldBackRuns::Result result = held.at(choice.parts(), choice.rule());
  LearnedTime learned{{held.cells(choice.rule()), choice.parts(), choice.rule(), std::move(result.quantiles),
                       between_plans_of(runs), picked_of(runs)},
                      {},
                      {},
                      {}};
  learned.coverage = coverage_of(learned, held, result.runs);
  learned.all = all_sources(learned.coverage);
  learned.classes = class_coverage_of(held, result.runs, held.of_strangers(choice.parts(), choice.rule()));
  learned.widths = measured_widths_of(held, result.runs);
  return learned;
}

std::string to_table(const LearnedTime& learned) {
  const SharedParts& p = learned.errors.parts();
  const SpreadRule& s = learned.errors.spread();
  std::string text = fmt::format(
      "standard deviations of log(measured / predicted): device {:.1f} %, stack {:.1f} %, kind {:.1f} %, machine "
      "{:.1f} %, source {:.1f} %, between plans {:.1f} %; the plan predicted fastest exceeds the others by {:.1f} %\n"
      "a run's own: {:.1f} % x exp({:.2f} x exposed + {:.2f} x bubble)\n\n",
      100 * p.device, 100 * p.stack, 100 * p.kind, 100 * p.machine, 100 * p.source,
      100 * learned.errors.between_plans(), 100 * learned.errors.picked(), 100 * std::exp(s.base), s.exposed, s.bubble);
  text += fmt::format("{:<56} {:>6} {:>10} {:>10}\n", "within the 90 % interval", "runs", "own known", "left out");
  const auto line = [&](const Coverage& c) {
    text += fmt::format("{:<56} {:>6} {:>8.1f} % {:>8.1f} %\n", c.source, c.runs, 100 * c.known, 100 * c.unknown);
  };
  for (const Coverage& one : learned.coverage) line(one);
  line(learned.all);
  text += fmt::format("\n{:<24} {:>6} {:>10} {:>8} {:>8} {:>10} {:>8} {:>10}\n", "with sources left out", "runs",
                      "within", "below", "above", "width", "score", "strangers");
  for (const ClassCoverage& c : learned.classes) {
    text += fmt::format("{:<24} {:>6} {:>8.1f} % {:>6.1f} % {:>6.1f} % {:>8.1f} % {:>8.3f} {:>8.1f} %\n",
                        c.kind + ", " + c.device, c.runs, 100 * c.within, 100 * c.below, 100 * c.above, 100 * c.width,
                        c.score, 100 * c.strangers);
  }
  constexpr std::array kOf{"neither machine nor stack measured", "one of them", "machine and stack measured"};
  text += fmt::format("\n{:<40} {:>6} {:>10} {:>12}\n", "from 25 % MFU on, with sources left out", "runs", "within",
                      "median width");
  for (std::size_t m = 0; m < kOf.size(); ++m) {
    const MeasuredWidth& w = learned.widths[m];
    text += fmt::format("{:<40} {:>6} {:>8.1f} % {:>10.1f} %\n", kOf[m], w.runs, 100 * w.within, 100 * w.width);
  }
  return text;
}

std::string rows_csv(const std::vector<TimeRun>& runs, const LearnedTime& learned) {
  const HeldBackRuns held(runs);
  const HeldBackRuns::Result result = held.at(learned.errors.parts(), learned.errors.spread());
  std::string text =
      "name,source,device,stack,kind,machine,measured,mfu,exposed,bubble,predicted_s,error,left_out,low,middle,high\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const TimeRun& r = runs[i];
    const HeldBack& h = result.runs[i];
    text += fmt::format("\"{}\",\"{}\",{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.6g},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f}\n",
                        r.name, r.source, r.like.device, r.like.stack, r.like.kind, r.like.machine, held.measured()[i],
                        r.made_of.mfu, r.made_of.exposed, r.made_of.bubble, r.predicted_s, r.error, r.left_out, h.low(),
                        h.at(h.quantiles.middle), h.high());
  }
  return text;
}

}  // namespace trivium::calibration
