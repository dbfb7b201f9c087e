#include "planner/advice/why_not.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/readable.h"
#include "base/seconds.h"
#include "planner/advice/neighbours.h"
#include "planner/advice/wording.h"
#include "planner/bound/evaluate.h"
#include "simulator/analytic/cost_estimator.h"
#include "simulator/schedule/engine.h"

namespace trivium::planner {
namespace {

using base::kSecondsPerPs;
using base::seconds;
using program::Job;
using simulator::Part;
using simulator::Simulation;

constexpr double kChangeWorthSaying = 0.005;  // of the iteration

std::string change_text(const std::vector<program::Difference>& differences) {
  std::string text;
  for (const program::Difference& d : differences) {
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", d.field, d.after.empty() ? "even" : d.after,
                        d.before.empty() ? "even" : d.before);
  }
  return text;
}

/// The fastest plan one change away from one that does not fit, among those that do.
std::string nearest_that_fits(const Job& job, const hardware::Cluster& cluster, const std::stop_token& stop) {
  const std::vector<Tried> tried = try_neighbours(job, cluster, stop);
  if (stop.stop_requested()) throw base::Failure(simulator::cancelled());
  const Tried* best = nullptr;
  for (const Tried& t : tried) {
    if (t.fits() && (best == nullptr || t.iteration_ps() < best->iteration_ps())) best = &t;
  }
  if (best == nullptr) return fmt::format("None of {} plans one change away fits either.", tried.size());
  return fmt::format("The fastest plan one change away that fits: {}, {}.", best->neighbour.change,
                     time_text(best->iteration_ps()));
}

std::string fate_in_a_search(double bound_s, double chosen_s) {
  if (bound_s > chosen_s) {
    return fmt::format("A search passes over it without a simulation: it takes {} at least, by a bound.",
                       seconds(bound_s));
  }
  return fmt::format("A search has to simulate it: its bound of {} is below the chosen plan.", seconds(bound_s));
}

}  // namespace

std::vector<std::string> where_they_differ(const Simulation& first, const Simulation& second) {
  std::vector<std::pair<double, Part>> changes;
  for (std::size_t p = 0; p < simulator::kParts; ++p) {
    const double change = second.breakdown_s[p] - first.breakdown_s[p];
    if (std::abs(change) >= kChangeWorthSaying * first.iteration_s) changes.emplace_back(change, static_cast<Part>(p));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> sentences;
  for (const auto& [change, part] : changes) {
    const auto p = static_cast<std::size_t>(part);
    sentences.push_back(fmt::format("{} {} for {} ({}{}).", words_of(part), seconds(second.breakdown_s[p]),
                                    seconds(first.breakdown_s[p]), change < 0 ? "-" : "+", seconds(std::abs(change))));
  }
  return sentences;
}

WhyNot why_not(const Job& chosen, const Job& favourite, const hardware::Cluster& cluster, const std::stop_token& stop) {
  WhyNot why;
  why.differences = program::differences(chosen.plan, favourite.plan);
  if (why.differences.empty()) {
    why.verdict = "same";
    why.sentences.push_back("It is the same plan.");
    return why;
  }
  why.sentences.push_back(fmt::format("It has {}.", change_text(why.differences)));
  if (const auto no = refusal(favourite, cluster, 0)) {
    why.verdict = "rule";
    why.rule = no->rule;
    why.sentences.push_back(fmt::format("It cannot run: {} ({}).", no->reason, no->rule));
    return why;
  }
  simulator::CostEstimator estimator(favourite, cluster);
  const bool alike = program::micro_batch_sizes(favourite.plan).size() == 1;  // which estimators and bounds count on
  const auto memory = alike ? estimator.memory(favourite.plan)
                            : simulator::memory_of(std::get<program::Program>(program::lower(favourite)), cluster);
  if (const auto no = simulator::out_of_memory(memory)) {
    why.verdict = "memory";
    why.rule = no->rule;
    why.sentences.push_back(fmt::format("It does not fit: {}.", no->reason));
    why.sentences.push_back(nearest_that_fits(favourite, cluster, stop));
    return why;
  }
  const Simulation first = full_simulation(chosen, cluster, stop).value_or_throw();
  const Simulation second = full_simulation(favourite, cluster, stop).value_or_throw();
  why.iteration_s = second.iteration_s;
  if (alike) {
    why.bound_s =
        static_cast<double>(simulator::lower_bound_ps(estimator.schedule_costs(favourite.plan))) * kSecondsPerPs;
  }
  const double change = second.iteration_s / first.iteration_s - 1;
  why.verdict = change < 0 ? "faster" : "slower";
  why.sentences.push_back(fmt::format("It takes {} where the chosen plan takes {}: {:.1f} % {}.",
                                      seconds(second.iteration_s), seconds(first.iteration_s), 100 * std::abs(change),
                                      why.verdict));
  for (std::string& sentence : where_they_differ(first, second)) why.sentences.push_back(std::move(sentence));
  if (alike) why.sentences.push_back(fate_in_a_search(why.bound_s, first.iteration_s));
  return why;
}

}  // namespace trivium::planner
