#include "planner/search/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "planner/bound/evaluate.h"
#include "planner/search/parallel.h"

namespace trivium::planner {
namespace {

/// Nodes opened, list-scheduled and simulated between two looks at the limits. Independent of the thread count.
constexpr std::array<std::size_t, 3> kTogether{256, 8, 2};
/// In micro-batches that are simulated: what opening a node costs, and how many list schedules cost as much.
constexpr std::int64_t kWorkOfOpening = 1, kListSchedulesOfSimulation = 10;
/// So many families are shown if they take no more than so many times the work that is meant for all.
constexpr std::size_t kAnyway = 2;
constexpr std::int64_t kWorkAnyway = 4;

class FamilySearcher {
 public:
  FamilySearcher(OpenNodes nodes, const FamilySearch& search) : search_(search), open_(std::move(nodes)) {}

  std::vector<std::pair<program::Plan, std::int64_t>> run(const std::map<int, std::pair<Node, std::int64_t>>& known,
                                                          const std::set<int>& seen) {
    for (const int family : seen) families_[family].closed = true;
    for (const auto& [family, best] : known) {
      if (!seen.contains(family)) families_[family].best = best;
    }
    while (!stopped() && may_go_on()) {
      const std::vector<Node> nodes = next();
      if (nodes.empty()) break;
      work_on(nodes);
    }
    if (open_.empty() && !stopped()) settle_all();
    return std::move(settled_);
  }

 private:
  struct Family {
    std::optional<std::pair<Node, std::int64_t>> best;
    bool closed = false;        ///< settled, or shown elsewhere
    std::size_t looked_at = 0;  ///< nodes of it in the batch at hand
    bool passed(std::int64_t bound_ps, double gap) const {
      return best && static_cast<double>(bound_ps) > static_cast<double>(best->second) * (1 - gap);
    }
  };

  bool may_go_on() const {
    if (settled_.size() >= search_.wanted) return false;
    return work_ < search_.most_work * (settled_.size() < kAnyway ? kWorkAnyway : 1);
  }

  bool stopped() const { return search_.stop.stop_requested(); }

  static std::size_t kind_of(const Node& node) { return !node.is_plan() ? 0 : node.list_scheduled ? 2 : 1; }

  // What can no longer hold a better plan of its family closes the family, unless nodes with lower bounds are yet to be
  // looked at.
  std::vector<Node> next() {
    std::array<std::size_t, 3> left = kTogether;
    std::vector<Node> nodes, later;
    for (auto& [id, family] : families_) family.looked_at = 0;
    while (!open_.empty() && settled_.size() < search_.wanted) {
      Node node = open_.top();
      Family& family = families_[search_.family(node)];
      if (!family.closed && !family.passed(node.bound_ps, search_.gap)) {
        std::size_t& room = left[kind_of(node)];
        if (room == 0) break;
        --room;
        ++family.looked_at;
        nodes.push_back(std::move(node));
      } else if (!family.closed && family.looked_at > 0) {
        later.push_back(std::move(node));
      } else if (!family.closed) {
        settle(family);
      }
      open_.pop();
    }
    for (Node& node : later) open_.push(std::move(node));
    std::ranges::stable_sort(nodes, std::greater(), kind_of);
    return nodes;
  }

  void settle(Family& family) {
    family.closed = true;
    settled_.emplace_back(*family.best->first.plan, family.best->second);
  }

  // No node is left: what was simulated is the best of its family.
  void settle_all() {
    std::vector<Family*> rest;
    for (auto& [id, family] : families_) {
      if (!family.closed && family.best) rest.push_back(&family);
    }
    std::ranges::stable_sort(rest, {}, [](const Family* family) { return family->best->second; });
    for (Family* family : rest) {
      if (settled_.size() < search_.wanted) settle(*family);
    }
  }

  void work_on(const std::vector<Node>& nodes) {
    using Worked = std::variant<std::int64_t, program::Infeasible>;
    std::vector<Expansion> opened(nodes.size());
    std::vector<Worked> judged(nodes.size(), kStopped);
    run_parallel(
        nodes.size(), search_.threads, search_.stop,
        [&](std::size_t i) {
          if (kind_of(nodes[i]) == 0) {
            opened[i] = search_.open(nodes[i]);
          } else {
            judged[i] = kind_of(nodes[i]) == 1 ? search_.quick_bound(nodes[i]) : search_.time(nodes[i]);
          }
        },
        [](std::size_t) {});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t kind = kind_of(nodes[i]);
      work_ +=
          kind == 0 ? kWorkOfOpening : search_.micro_batches(nodes[i]) / (kind == 1 ? kListSchedulesOfSimulation : 1);
      for (Node& node : opened[i].nodes) open_.push(std::move(node));
      const auto* ps = std::get_if<std::int64_t>(&judged[i]);
      if (kind > 0 && ps != nullptr && *ps != kStopped) take(nodes[i], *ps);
    }
  }

  void take(Node node, std::int64_t ps) {
    if (!node.list_scheduled) {
      node.list_scheduled = true;
      node.bound_ps = std::max(node.bound_ps, ps);
      open_.push(std::move(node));
      return;
    }
    Family& family = families_[search_.family(node)];
    const bool better = !family.best || ps < family.best->second ||
                        (ps == family.best->second && overlaps(*node.plan) > overlaps(*family.best->first.plan));
    if (better) family.best = {std::move(node), ps};
  }

  const FamilySearch& search_;
  OpenNodes open_;
  std::map<int, Family> families_;
  std::vector<std::pair<program::Plan, std::int64_t>> settled_;
  std::int64_t work_ = 0;
};

}  // namespace

int overlaps(const program::Plan& plan) {
  return (plan.overlap.gradient_reduction ? 1 : 0) + (plan.overlap.parameter_gather ? 1 : 0);
}

std::vector<program::Plan> with_more_overlap(const program::Plan& plan, const SearchRequest& request) {
  const bool may_reduce = is_open(request, "overlap.gradient_reduction");
  const bool may_gather = is_open(request, "overlap.parameter_gather");
  std::vector<program::Plan> plans;
  for (const auto& [reduces, gathers] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    program::Plan other = plan;
    other.overlap.gradient_reduction |= reduces && may_reduce;
    other.overlap.parameter_gather |= gathers && may_gather;
    const bool known = std::ranges::any_of(plans, [&](const program::Plan& one) {
      return one.overlap.gradient_reduction == other.overlap.gradient_reduction &&
             one.overlap.parameter_gather == other.overlap.parameter_gather;
    });
    const bool allowed =
        std::ranges::all_of(request.constraints, [&](const Constraint& one) { return one.allows(other); });
    const bool runs = request.trainer == nullptr || broken_rule(*request.trainer, other, request.job) == nullptr;
    if (overlaps(other) > overlaps(plan) && !known && allowed && runs) plans.push_back(std::move(other));
  }
  return plans;
}

bool SimulatedPlan::operator<(const SimulatedPlan& other) const {
  if (iteration_ps != other.iteration_ps) return iteration_ps < other.iteration_ps;
  if (overlaps(plan) != overlaps(other.plan)) return overlaps(plan) > overlaps(other.plan);
  return summary < other.summary;
}

std::vector<std::pair<program::Plan, std::int64_t>> best_of_families(
    OpenNodes nodes, const std::map<int, std::pair<Node, std::int64_t>>& known, const std::set<int>& seen,
    const FamilySearch& search) {
  return FamilySearcher(std::move(nodes), search).run(known, seen);
}

}  // namespace trivium::planner
