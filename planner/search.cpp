#include "planner/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <set>
#include <thread>

#include "planner/balance.h"
#include "planner/evaluate.h"
#include "planner/mixed.h"
#include "planner/parallel.h"
#include "planner/quick_bound.h"
#include "planner/rejections.h"
#include "planner/space.h"
#include "simulator/analytic/sketch.h"

namespace trivium::planner {
namespace {

using program::Infeasible;
using program::Plan;

/// Plans played, and groups of plans sketched, between two looks at the k-th best. Independent of the thread count, so
/// that what is bounded away is too.
constexpr std::size_t kRound = 4;
constexpr std::size_t kSketched = 32;
constexpr double kSecondsPerPs = 1e-12;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Plans [begin, end) that share a sketch.
struct Group {
  std::size_t begin = 0, end = 0;
  std::int64_t quick_ps = kNever;  ///< no iteration of its plans is shorter; kNever: all are refused
};

/// Best first: whatever has the lowest bound is looked at next, a group of plans by its quick bound (QuickBound), a
/// plan by that of its sketch. As soon as the lowest bound left is above the k-th best iteration, so are all others.
class Searcher {
 public:
  Searcher(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress)
      : request_(request),
        threads_(threads > 0 ? threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
        stop_(std::move(stop)),
        progress_(progress),
        plans_(enumerate(request, &result_.plans_forbidden)),
        verdicts_(plans_.size()),
        quick_(request.job, request.cluster) {}

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    result_.plans_in_space = static_cast<std::int64_t>(plans_.size());
    result_.proved = refuse_by_rule() && settle();
    take_stock();
    simulate_best();
    result_.rejected = rejections(request_, plans_, verdicts_, threads_);
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  program::Job job_of(const Plan& plan) const {
    program::Job job = request_.job;
    job.plan = plan;
    return job;
  }

  void report(std::int64_t done) const {
    if (progress_) progress_(done, result_.plans_in_space, best_s());
  }

  double best_s() const {
    return ranking_.empty() ? 0 : static_cast<double>(verdicts_[ranking_.front()].iteration_ps) * kSecondsPerPs;
  }

  // What can be said of a plan without a sketch: that it cannot run, that it cannot fit, how long it takes at least.
  bool refuse_by_rule() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (i == 0 || !share_layers(plans_[i - 1], plans_[i])) groups_.push_back({i, i});
      groups_.back().end = i + 1;
    }
    const bool all = run_parallel(
        groups_.size(), threads_, stop_, [&](std::size_t g) { refuse(groups_[g]); }, [&](std::size_t) { report(0); });
    if (!all) return groups_.clear(), false;  // nothing is known of those that were not reached
    std::erase_if(groups_, [](const Group& group) { return group.quick_ps == kNever; });
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const Group& a, const Group& b) { return a.quick_ps < b.quick_ps; });
    return true;
  }

  void refuse(Group& group) {
    program::Job job = request_.job;
    for (std::size_t i = group.begin; i < group.end; ++i) {
      Verdict& verdict = verdicts_[i];
      job.plan = plans_[i];
      verdict.refused = refusal(job, request_.cluster, ranks_of(request_));
      if (verdict.refused) continue;
      if (!request_.ignore_memory && quick_.memory_bytes(job.plan) > quick_.usable_bytes()) {
        verdict.refused = Infeasible{kMemoryRule, ""};
        continue;
      }
      verdict.bound_ps = quick_.time_ps(job.plan);
      group.quick_ps = std::min(group.quick_ps, verdict.bound_ps);
    }
  }

  bool settle() {
    while (!stop_.stop_requested()) {
      const std::int64_t unseen = next_ < groups_.size() ? groups_[next_].quick_ps : kNever;
      const std::vector<std::size_t> plans = take_open(std::min(unseen, kth_best()));
      if (!plans.empty()) {
        if (!play_all(plans)) return false;
      } else if (unseen == kNever || unseen > kth_best()) {
        return true;
      } else if (!sketch_groups()) {
        return false;
      }
    }
    return false;
  }

  // The most promising open plans, none of them bounded above `most`.
  std::vector<std::size_t> take_open(std::int64_t most) {
    std::vector<std::size_t> taken;
    while (!open_.empty() && open_.begin()->first <= most && taken.size() < kRound) {
      taken.push_back(open_.begin()->second);
      open_.erase(open_.begin());
    }
    return taken;
  }

  bool sketch_groups() {
    std::size_t end = next_;
    while (end < groups_.size() && end - next_ < kSketched && groups_[end].quick_ps <= kth_best()) ++end;
    const bool all = run_parallel(
        end - next_, threads_, stop_, [&](std::size_t g) { sketch(groups_[next_ + g]); },
        [&](std::size_t) { report(settled_); });
    if (!all) return false;
    for (; next_ < end; ++next_) {
      for (std::size_t i = groups_[next_].begin; i < groups_[next_].end; ++i) {
        if (!verdicts_[i].refused) open_.emplace(verdicts_[i].bound_ps, i);
      }
      settled_ += static_cast<std::int64_t>(groups_[next_].end - groups_[next_].begin);
    }
    return true;
  }

  void sketch(const Group& group) {
    std::optional<simulator::Sketch> sketch;
    program::Job job;
    for (std::size_t i = group.begin; i < group.end; ++i) {
      Verdict& verdict = verdicts_[i];
      if (verdict.refused) continue;
      if (!sketch) {
        job = job_of(plans_[i]);
        sketch.emplace(job, request_.cluster, &kind_bytes_);
      }
      if (leaves_layers_open(plans_[i])) {
        const auto layers = static_cast<int>(job.model.layers);
        plans_[i] = balanced(*sketch, std::move(plans_[i]), layers, !request_.ignore_memory);
      }
      if (!request_.ignore_memory) verdict.refused = simulator::out_of_memory(sketch->memory(plans_[i]));
      if (verdict.refused) continue;
      verdict.bound_ps = std::max(verdict.bound_ps, simulator::lower_bound_ps(sketch->outline(plans_[i])));
    }
  }

  bool play_all(const std::vector<std::size_t>& plans) {
    const bool all = run_parallel(
        plans.size(), threads_, stop_, [&](std::size_t i) { play(plans[i]); }, [&](std::size_t) { report(settled_); });
    for (const std::size_t plan : plans) {
      if (verdicts_[plan].iteration_ps >= 0) {
        enter(plan);
      } else if (!verdicts_[plan].refused) {
        open_.emplace(verdicts_[plan].bound_ps, plan);  // stopped before its turn
      }
    }
    report(settled_ - static_cast<std::int64_t>(open_.size()));
    return all;
  }

  void play(std::size_t i) {
    auto played = quick_iteration(job_of(plans_[i]), request_.cluster, !request_.ignore_memory);
    if (auto* no = std::get_if<Infeasible>(&played)) {
      verdicts_[i].refused = std::move(*no);
    } else {
      verdicts_[i].iteration_ps = std::get<std::int64_t>(played);
    }
  }

  // Ties are broken by what people read, so that the answer does not hang on the order of enumeration.
  void enter(std::size_t i) {
    const auto before = [&](std::size_t a, std::size_t b) {
      if (verdicts_[a].iteration_ps != verdicts_[b].iteration_ps)
        return verdicts_[a].iteration_ps < verdicts_[b].iteration_ps;
      return program::summary(plans_[a]) < program::summary(plans_[b]);
    };
    if (request_.distinct) {
      const std::string family = family_of(plans_[i]);
      const auto same = std::find_if(ranking_.begin(), ranking_.end(),
                                     [&](std::size_t other) { return family_of(plans_[other]) == family; });
      if (same != ranking_.end() && !before(i, *same)) return;
      if (same != ranking_.end()) ranking_.erase(same);
    }
    ranking_.insert(std::upper_bound(ranking_.begin(), ranking_.end(), i, before), i);
    if (ranking_.size() > best_wanted()) ranking_.pop_back();
  }

  std::size_t best_wanted() const { return static_cast<std::size_t>(std::max(1, request_.best)); }

  std::int64_t kth_best() const {
    return ranking_.size() < best_wanted() ? kNever : verdicts_[ranking_.back()].iteration_ps;
  }

  void take_stock() {
    for (const Verdict& verdict : verdicts_) {
      if (verdict.refused) {
        ++result_.plans_infeasible;
      } else if (verdict.iteration_ps >= 0) {
        ++result_.plans_simulated;
      } else if (verdict.bound_ps > kth_best()) {
        ++result_.plans_bounded;
      }
    }
    result_.best_s = best_s();
    std::int64_t left = ranking_.empty() ? kNever : verdicts_[ranking_.front()].iteration_ps;
    if (!open_.empty()) left = std::min(left, open_.begin()->first);
    if (next_ < groups_.size()) left = std::min(left, groups_[next_].quick_ps);
    if (left != kNever) result_.bound_s = static_cast<double>(left) * kSecondsPerPs;
  }

  // Also when interrupted: an answer has the figures that simulating it by itself would give.
  void simulate_best() {
    std::vector<std::optional<simulator::Simulation>> figures(ranking_.size());
    run_parallel(
        ranking_.size(), threads_, {},
        [&](std::size_t i) {
          auto simulated = full_simulation(job_of(plans_[ranking_[i]]), request_.cluster);
          if (simulated) figures[i] = std::move(simulated).value();
        },
        [](std::size_t) {});
    for (std::size_t i = 0; i < ranking_.size(); ++i) {
      if (figures[i]) result_.best.push_back({plans_[ranking_[i]], std::move(*figures[i])});
    }
    std::sort(result_.best.begin(), result_.best.end(), [](const Candidate& a, const Candidate& b) {
      if (a.simulation.iteration_ps != b.simulation.iteration_ps)
        return a.simulation.iteration_ps < b.simulation.iteration_ps;
      return program::summary(a.plan) < program::summary(b.plan);
    });
  }

  SearchResult result_;
  const SearchRequest& request_;
  int threads_;
  std::stop_token stop_;
  const Progress& progress_;
  std::vector<Plan> plans_;
  simulator::KindBytes kind_bytes_;
  std::vector<Verdict> verdicts_;  // by plan
  QuickBound quick_;
  std::vector<Group> groups_;                            // not refused whole, by quick bound
  std::size_t next_ = 0;                                 // the first group that was not sketched
  std::int64_t settled_ = 0;                             // plans of the groups that were
  std::set<std::pair<std::int64_t, std::size_t>> open_;  // bound and plan: sketched, not played
  std::vector<std::size_t> ranking_;                     // the best so far, fastest first
};

}  // namespace

SearchResult search_as_given(const SearchRequest& request, int threads, std::stop_token stop,
                             const Progress& progress) {
  return Searcher(request, threads, std::move(stop), progress).run();
}

SearchResult search(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress) {
  const bool choose_nodes = !request.cluster.homogeneous() && request.ranks == 0;
  return choose_nodes ? search_mixed(request, threads, std::move(stop), progress)
                      : search_as_given(request, threads, std::move(stop), progress);
}

}  // namespace trivium::planner
