#include "planner/search/one_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/seconds.h"
#include "planner/bound/balance.h"
#include "planner/bound/evaluate.h"
#include "planner/bound/tree.h"
#include "planner/search/costless.h"
#include "planner/search/families.h"
#include "planner/search/parallel.h"
#include "planner/search/ranking.h"
#include "planner/search/rejection_log.h"
#include "simulator/replay/topology_cache.h"

namespace trivium::planner {
namespace {

using base::kSecondsPerPs;
using program::Infeasible;
using program::Plan;

/// Plans simulated, plans list-scheduled by segments and nodes expanded between two looks at the k-th best. Independent
/// of the thread count, so that what bounds cut off is too.
constexpr std::size_t kSimulated = 2;
constexpr std::size_t kListScheduled = 8;
constexpr std::size_t kOpened = 256;
constexpr double kGapOfOthers = 0.004;  // of their iterations
constexpr double kFewSpans = 0;         // of plans that are listed alone: one rank of each role tells their breakdown
constexpr auto kDive = std::chrono::milliseconds(300);
constexpr std::int64_t kWorkWhenStopped = 6'000;  // layers times micro-batches: less than half a second

/// Best first: the node with the lowest bound is looked at next, opened or, where it is a plan, scheduled or simulated.
/// As soon as the lowest bound left is above the k-th best iteration, so are all others.
class Searcher {
 public:
  Searcher(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress)
      : request_(request),
        threads_(threads_for(threads)),
        stop_(std::move(stop)),
        progress_(progress),
        tree_(request) {}

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    std::future<std::int64_t> forbidden;
    const bool part = request_.simulated_as.has_value();  // of a larger search, which says what became of all
    if (!part) forbidden = std::async(std::launch::async, [&] { return count_forbidden(request_); });
    plant();
    result_.proved = settle();
    if (!result_.proved && ranking_.empty() && result_.nodes_opened > 0) dive();
    take_stock();
    prefer_overlap();
    {
      bool all = true;  // of the answers have figures
      auto figures = std::async(std::launch::async, [&] { return simulated(ranking_, all); });
      if (result_.proved) look_at_others();
      result_.best = figures.get();
      result_.proved = result_.proved && all;
    }
    check_answer();
    result_.rejected = std::move(rejections_).rejections(request_, threads_);
    if (!part) result_.plans_forbidden = forbidden.get();
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

  std::optional<Plan> first_that_fits() {
    plant();
    while (!open_.empty() && open_.top().bound_ps <= limit() && !stop_.stop_requested()) {
      if (open_.top().is_plan()) return *open_.top().plan;
      work_on(next({kOpened, 0, 0}));
    }
    return std::nullopt;
  }

 private:
  // Whole splits to look at, unless memory says of all that none fits.
  void plant() {
    const auto lacks = request_.simulated_as ? std::nullopt : lacks_memory(request_);
    for (Node& root : tree_.roots()) {
      result_.plans_in_space += root.plans;
      if (lacks) {
        rejections_.enter({{kMemoryRule, *lacks}, tree_.split_of(root), root.plans});
      } else {
        open_.push(std::move(root));
      }
    }
  }

  // As it is simulated.
  program::Job job_of(const Plan& plan) const {
    program::Job job = request_.job;
    job.plan = plan;
    if (!request_.simulated_as) return job;
    job.training.global_batch = request_.simulated_as->global_batch;
    job.plan.replica_micro_batch = request_.simulated_as->replica_micro_batch;
    job.plan = program::normalised(std::move(job.plan));
    return job;
  }

  const hardware::Cluster& cluster() const {
    return request_.simulated_as ? request_.simulated_as->cluster : request_.cluster;
  }

  void report() {
    if (progress_) progress_(rejections_.plans() + result_.plans_simulated, result_.plans_in_space, best_s());
    if (!request_.on_ranking || request_.simulated_as || ranking_.empty()) return;  // a part's plans are no answers
    const std::int64_t sum = std::accumulate(ranking_.begin(), ranking_.end(), std::int64_t{0},
                                             [](std::int64_t s, const SimulatedPlan& e) { return s + e.iteration_ps; });
    if (std::exchange(told_, {ranking_.size(), sum}) == std::pair(ranking_.size(), sum)) return;
    std::vector<std::pair<Plan, double>> told;
    for (const SimulatedPlan& entry : ranking_) {
      told.emplace_back(entry.plan, static_cast<double>(entry.iteration_ps) * kSecondsPerPs);
    }
    request_.on_ranking(told);
  }

  // What is open begins with the lowest bound of all that is left; a plan that is known may lie below it.
  void tell_bound() {
    if (!request_.on_bound || request_.simulated_as) return;
    std::int64_t bound_ps = open_.top().bound_ps;
    if (!ranking_.empty()) bound_ps = std::min(bound_ps, ranking_.front().iteration_ps);
    if (bound_ps <= std::exchange(told_bound_ps_, std::max(told_bound_ps_, bound_ps))) return;
    request_.on_bound(static_cast<double>(bound_ps) * kSecondsPerPs);
  }

  double best_s() const {
    return ranking_.empty() ? 0 : static_cast<double>(ranking_.front().iteration_ps) * kSecondsPerPs;
  }

  /// What is next to be done with a node: each makes its bound closer, and takes longer than the one before.
  enum class Next { kOpen, kListSchedule, kSimulate };
  using Counts = std::array<std::size_t, 3>;  // by Next
  static Next next_of(const Node& node) {
    if (!node.is_plan()) return Next::kOpen;
    return node.list_scheduled ? Next::kSimulate : Next::kListSchedule;
  }

  bool settle() {
    while (!stop_.stop_requested()) {
      if (open_.empty() || open_.top().bound_ps > limit()) return true;
      tell_bound();
      if (!work_on(next({kOpened, kListScheduled, kSimulated}))) return false;
    }
    return false;
  }

  // Stopped while there are only bounds: the most promising nodes are followed down to plans until one that takes no
  // time to speak of is simulated, so that there is an answer.
  void dive() {
    std::vector<Node> too_long;
    const auto until = std::chrono::steady_clock::now() + kDive;
    while (!open_.empty() && ranking_.empty() && std::chrono::steady_clock::now() < until) {
      Node top = open_.top();
      open_.pop();
      std::optional<Node> plan = first_plan_below(std::move(top));
      if (!plan) continue;
      if (request_.job.model.layers * tree_.micro_batches(*plan->plan) < kWorkWhenStopped) {
        conclude(*plan, simulated_time(*plan, {}), [&](const Node& of, std::int64_t ps) { rank(of, ps); });
      } else {
        too_long.push_back(*std::move(plan));
      }
    }
    for (Node& node : too_long) open_.push(std::move(node));
  }

  // Opens the child with the lowest bound next, whatever else is open.
  std::optional<Node> first_plan_below(Node node) {
    while (!node.is_plan()) {
      Expansion opened = tree_.open(node);
      ++result_.nodes_opened;
      for (Rejection& refusal : opened.refused) rejections_.enter(std::move(refusal));
      if (opened.nodes.empty()) return std::nullopt;
      const auto best = std::ranges::min_element(opened.nodes, std::less());
      node = std::move(*best);
      opened.nodes.erase(best);
      for (Node& other : opened.nodes) open_.push(std::move(other));
    }
    return node;
  }

  // The most promising nodes, none of them bounded above the limit, at most so many of each kind: what takes longest
  // comes first, so that threads end together.
  std::vector<Node> next(Counts most) {
    const std::int64_t limit_ps = limit();
    std::vector<Node> nodes;
    while (!open_.empty() && open_.top().bound_ps <= limit_ps) {
      std::size_t& left = most[static_cast<std::size_t>(next_of(open_.top()))];
      if (left == 0) break;
      if (!passed_by_its_family(open_.top())) --left, nodes.push_back(open_.top());
      open_.pop();
    }
    std::ranges::stable_sort(nodes, std::greater(), next_of);
    return nodes;
  }

  // With distinct families, a plan that is no faster than the best of its own family is skipped.
  bool passed_by_its_family(const Node& node) const {
    if (!request_.distinct) return false;
    const std::string family = family_of(tree_.split_of(node));
    return std::any_of(ranking_.begin(), ranking_.end(), [&](const SimulatedPlan& entry) {
      return entry.iteration_ps < node.bound_ps && family_of(entry.plan) == family;
    });
  }

  using Worked = std::variant<std::int64_t, Infeasible>;

  Worked simulated_time(const Node& node, const std::stop_token& stop) {
    return iteration(job_of(*node.plan), cluster(), !request_.ignore_memory, stop, &topologies_);
  }

  void rank(const Node& node, std::int64_t ps) {
    ++result_.plans_simulated;
    if (request_.others > 0) simulated_.emplace_back(node, ps);
    const Plan simulated = job_of(*node.plan).plan;
    enter({simulated, ps, program::summary(simulated)});
  }

  void conclude(const Node& node, Worked&& worked, const std::function<void(const Node&, std::int64_t)>& take) {
    if (auto* no = std::get_if<Infeasible>(&worked)) {
      rejections_.enter({std::move(*no), *node.plan, 1});
    } else if (const std::int64_t ps = std::get<std::int64_t>(worked); ps == kStopped) {
      open_.push(node);  // stopped before its turn
    } else {
      take(node, ps);
    }
  }

  // List schedules are by segments: many plans that are too slow show it at a tenth of the price of simulating them.
  bool work_on(const std::vector<Node>& nodes) {
    std::vector<std::variant<Worked, Expansion>> worked(nodes.size(), kStopped);
    const bool all = run_parallel(
        nodes.size(), threads_, stop_,
        [&](std::size_t i) {
          switch (next_of(nodes[i])) {
            case Next::kOpen:
              worked[i] = tree_.open(nodes[i]);
              break;
            case Next::kListSchedule:
              worked[i] = quick_bound(job_of(*nodes[i].plan), cluster(), !request_.ignore_memory);
              break;
            case Next::kSimulate:
              worked[i] = simulated_time(nodes[i], stop_);
              break;
          }
        },
        [&](std::size_t) { report(); });
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (auto* opened = std::get_if<Expansion>(&worked[i])) {
        take(std::move(*opened));
      } else {
        conclude(nodes[i], std::get<Worked>(std::move(worked[i])), [&](const Node& node, std::int64_t ps) {
          node.list_scheduled ? rank(node, ps) : come_closer(node, ps);
        });
      }
    }
    report();
    return all;
  }

  void take(Expansion opened) {
    ++result_.nodes_opened;
    for (Node& node : opened.nodes) open_.push(std::move(node));
    for (Rejection& refusal : opened.refused) rejections_.enter(std::move(refusal));
  }

  void come_closer(Node node, std::int64_t list_scheduled_ps) {
    node.list_scheduled = true;
    node.bound_ps = std::max(node.bound_ps, list_scheduled_ps);
    open_.push(std::move(node));
  }

  void enter(SimulatedPlan entry) {
    if (request_.distinct) {
      const std::string family = family_of(entry.plan);
      const auto same = std::find_if(ranking_.begin(), ranking_.end(),
                                     [&](const SimulatedPlan& other) { return family_of(other.plan) == family; });
      if (same != ranking_.end() && !(entry < *same)) return;
      if (same != ranking_.end()) ranking_.erase(same);
    }
    ranking_.insert(std::upper_bound(ranking_.begin(), ranking_.end(), entry), std::move(entry));
    if (ranking_.size() > best_wanted()) ranking_.pop_back();
  }

  std::size_t best_wanted() const { return static_cast<std::size_t>(std::max(1, request_.best)); }

  // No node above it holds a plan that is looked for.
  std::int64_t limit() const {
    if (ranking_.size() < best_wanted()) return request_.limit_ps;
    const std::int64_t last = ranking_.back().iteration_ps;
    const std::int64_t gap = std::llround(static_cast<double>(last) * request_.gap);
    return std::min(request_.limit_ps, last - gap);
  }

  void take_stock() {
    result_.plans_infeasible = rejections_.plans();
    result_.best_s = best_s();
    std::int64_t left = ranking_.empty() ? kNever : ranking_.front().iteration_ps;
    if (!open_.empty()) left = std::min(left, open_.top().bound_ps);
    if (left != kNever) result_.bound_s = static_cast<double>(left) * kSecondsPerPs;
    const std::int64_t known = result_.plans_infeasible + result_.plans_simulated;
    if (result_.proved) {
      result_.plans_bounded = result_.plans_in_space - known;
      return;
    }
    if (ranking_.size() < best_wanted()) return;
    for (OpenNodes rest = open_; !rest.empty(); rest.pop()) {
      if (rest.top().bound_ps > limit()) result_.plans_bounded += rest.top().plans;
    }
  }

  // What is as fast as the search can tell is the same to it; trainers overlap unless they are told otherwise.
  void prefer_overlap() {
    if (request_.gap == 0 || request_.simulated_as || !result_.proved) return;
    for (SimulatedPlan& entry : ranking_) {
      const double bound_ps = std::min(static_cast<double>(entry.iteration_ps), result_.bound_s / kSecondsPerPs);
      const auto [plan, ps] = overlapped(entry.plan, entry.iteration_ps, std::llround(bound_ps / (1 - request_.gap)));
      entry = {plan, ps, program::summary(plan)};
    }
    result_.best_s = best_s();
  }

  /// Of the plan and those of the space that overlap more of its collectives and take no longer than that, the one that
  /// overlaps most.
  std::pair<Plan, std::int64_t> overlapped(const Plan& plan, std::int64_t ps, std::int64_t most_ps) {
    for (const Plan& other : with_more_overlap(plan, request_)) {
      if (refusal(job_of(other), cluster(), other.ranks())) continue;
      const Worked worked = iteration(job_of(other), cluster(), !request_.ignore_memory, stop_, &topologies_);
      const auto* takes = std::get_if<std::int64_t>(&worked);
      if (takes != nullptr && *takes != kStopped && *takes <= std::max(ps, most_ps)) return {other, *takes};
    }
    return {plan, ps};
  }

  // Families that are not among the best: of each the fastest plan, nearly.
  void look_at_others() {
    std::map<std::string, int> numbers;
    const auto number = [&](const std::string& family) {
      return numbers.try_emplace(family, static_cast<int>(numbers.size())).first->second;
    };
    std::vector<int> of_split;  // the family of each split
    for (const Plan& split : tree_.space().splits()) of_split.push_back(number(family_of(split)));
    std::set<int> seen;
    for (const SimulatedPlan& entry : ranking_) seen.insert(number(family_of(entry.plan)));
    const auto family = [&](const Node& node) { return of_split[static_cast<std::size_t>(node.path[0])]; };
    std::map<int, std::pair<Node, std::int64_t>> known;
    for (const auto& [node, ps] : simulated_) {
      const auto [best, first] = known.try_emplace(family(node), node, ps);
      if (!first && ps < best->second.second) best->second = {node, ps};
    }
    FamilySearch search{
        [&](const Node& node) { return tree_.open(node); },
        [&](const Node& node) { return quick_bound(job_of(*node.plan), cluster(), !request_.ignore_memory); },
        [&](const Node& node) { return simulated_time(node, stop_); },
        family,
        [&](const Node& node) { return tree_.micro_batches(*node.plan); },
        static_cast<std::size_t>(std::max(0, request_.others)),
        kGapOfOthers,
        kWorkOnOthers / request_.job.model.layers,
        threads_,
        stop_};
    std::vector<Plan> plans;
    for (const auto& [plan, ps] : best_of_families(std::move(open_), known, seen, search)) {
      plans.push_back(overlapped(plan, ps, std::llround(static_cast<double>(ps) * (1 + request_.gap))).first);
    }
    open_ = {};
    show(plans);
    std::sort(result_.others.begin(), result_.others.end(), faster);
  }

  void show(const std::vector<Plan>& plans) {
    std::vector<std::variant<simulator::Simulation, Infeasible>> shown(plans.size(), Infeasible{});
    run_parallel(
        plans.size(), threads_, stop_,
        [&](std::size_t i) {
          shown[i] = simulation_that_fits(job_of(plans[i]), cluster(), !request_.ignore_memory, stop_, &topologies_,
                                          kFewSpans);
        },
        [](std::size_t) {});
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (auto* simulation = std::get_if<simulator::Simulation>(&shown[i])) {
        result_.others.push_back({job_of(plans[i]).plan, std::move(*simulation)});
      }
    }
  }

  // Whatever was simulated and is faster is the answer; what is faster than the bound shows that it is none.
  void check_answer() {
    std::vector<Candidate> all = result_.best;
    all.insert(all.end(), result_.others.begin(), result_.others.end());
    keep_best(all, request_);
    if (all.empty()) return;
    const std::int64_t fastest = all.front().simulation.iteration_ps;
    if (!result_.best.empty() && fastest >= result_.best.front().simulation.iteration_ps) return;
    const std::string answer = program::summary(all.front().plan);
    std::erase_if(result_.others, [&](const Candidate& other) {
      return other.simulation.iteration_ps == fastest && program::summary(other.plan) == answer;
    });
    for (Candidate& candidate : all) figure_as_answer(candidate);
    result_.best = std::move(all);
    result_.best_s = static_cast<double>(fastest) * kSecondsPerPs;
    if (result_.best_s < result_.bound_s) result_.proved = false, result_.bound_s = 0;
  }

  // What was to be listed alone, and is an answer.
  void figure_as_answer(Candidate& candidate) {
    auto simulated = full_simulation(job_of(candidate.plan), cluster(), stop_, &topologies_);
    if (simulated) candidate.simulation = std::move(simulated).value();
  }

  // An answer has the figures that simulating it by itself would give. Interrupted, the first few have them, as many as
  // take no time to speak of.
  std::vector<Candidate> simulated(const std::vector<SimulatedPlan>& entries, bool& all) {
    std::vector<std::optional<simulator::Simulation>> figures(entries.size());
    const auto simulate = [&](std::size_t first, std::size_t count, const std::stop_token& stop) {
      return run_parallel(
          count, threads_, stop,
          [&](std::size_t i) {
            auto simulated = full_simulation(job_of(entries[first + i].plan), cluster(), stop, &topologies_);
            if (simulated) figures[first + i] = std::move(simulated).value();
          },
          [](std::size_t) {});
    };
    std::size_t anyway = 0;
    for (std::int64_t work = 0; anyway < entries.size() && work < kWorkWhenStopped; ++anyway) {
      work += request_.job.model.layers * tree_.micro_batches(entries[anyway].plan);
    }
    simulate(0, anyway, {});
    all = simulate(anyway, entries.size() - anyway, stop_);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (figures[i]) candidates.push_back({entries[i].plan, std::move(*figures[i])});
    }
    std::sort(candidates.begin(), candidates.end(), faster);
    return candidates;
  }

  SearchResult result_;
  const SearchRequest& request_;
  int threads_;
  std::stop_token stop_;
  const Progress& progress_;
  Tree tree_;
  simulator::TopologyCache topologies_;
  RejectionLog rejections_;
  OpenNodes open_;
  std::vector<SimulatedPlan> ranking_;                    // best first
  std::vector<std::pair<Node, std::int64_t>> simulated_;  // where other families are wanted
  std::pair<std::size_t, std::int64_t> told_;  // of it, when it was last told: entries, and the sum of their times
  std::int64_t told_bound_ps_ = 0;
};

}  // namespace

SearchResult search_as_given(const SearchRequest& request, int threads, std::stop_token stop,
                             const Progress& progress) {
  return Searcher(request, threads, std::move(stop), progress).run();
}

std::optional<Plan> plan_that_fits(const SearchRequest& request, int threads, std::stop_token stop) {
  const SearchRequest settled = with_fields_settled(request);
  const Progress silent;
  return Searcher(settled, threads, std::move(stop), silent).first_that_fits();
}

}  // namespace trivium::planner
