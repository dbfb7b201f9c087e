#include "planner/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "planner/balance.h"
#include "planner/evaluate.h"
#include "planner/mixed.h"
#include "planner/parallel.h"
#include "planner/space.h"
#include "simulator/analytic/sketch.h"

namespace trivium::planner {
namespace {

using program::Infeasible;
using program::Plan;

/// Plans played between two looks at the k-th best. Independent of the thread count, so that what is bounded away is
/// too.
constexpr std::size_t kRound = 16;
constexpr double kSecondsPerPs = 1e-12;

/// What is known of a plan so far.
struct Verdict {
  std::optional<Infeasible> refused;
  std::int64_t bound_ps = 0;       ///< no iteration of the plan is shorter
  std::int64_t iteration_ps = -1;  ///< -1: not played
};

class Searcher {
 public:
  Searcher(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress)
      : request_(request),
        threads_(threads > 0 ? threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))),
        stop_(std::move(stop)),
        progress_(progress),
        plans_(enumerate(request)),
        verdicts_(plans_.size()) {}

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    result_.plans_in_space = static_cast<std::int64_t>(plans_.size());
    result_.proved = judge_all() && play_by_bound();
    simulate_best();
    count_refusals();
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

  // Refuses what cannot run and bounds the rest. Plans that share a sketch are judged together.
  bool judge_all() {
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (i == 0 || !share_layers(plans_[i - 1], plans_[i])) begins.push_back(i);
    }
    const std::size_t groups = begins.size();
    begins.push_back(plans_.size());
    std::atomic<std::int64_t> judged = 0;
    const bool all = run_parallel(
        groups, threads_, stop_,
        [&](std::size_t g) {
          judge(begins[g], begins[g + 1]);
          judged += static_cast<std::int64_t>(begins[g + 1] - begins[g]);
        },
        [&](std::size_t) { report(judged.load()); });
    for (std::size_t i = 0; i < plans_.size() && all; ++i) {
      if (!verdicts_[i].refused) open_.push_back(i);
    }
    std::stable_sort(open_.begin(), open_.end(),
                     [&](std::size_t a, std::size_t b) { return verdicts_[a].bound_ps < verdicts_[b].bound_ps; });
    return all;
  }

  void judge(std::size_t begin, std::size_t end) {
    std::optional<simulator::Sketch> sketch;
    program::Job job;
    for (std::size_t i = begin; i < end; ++i) {
      verdicts_[i].refused = refusal(job_of(plans_[i]), request_.cluster, ranks_of(request_));
      if (verdicts_[i].refused) continue;
      if (!sketch) {
        job = job_of(plans_[i]);
        sketch.emplace(job, request_.cluster);
      }
      if (leaves_layers_open(plans_[i])) {
        const auto layers = static_cast<int>(job.model.layers);
        plans_[i] = balanced(*sketch, std::move(plans_[i]), layers, !request_.ignore_memory);
      }
      if (!request_.ignore_memory) verdicts_[i].refused = simulator::out_of_memory(sketch->memory(plans_[i]));
      if (!verdicts_[i].refused) verdicts_[i].bound_ps = simulator::lower_bound_ps(sketch->outline(plans_[i]));
    }
  }

  // Plans in order of their bound: as soon as a bound is above the k-th best iteration, so are all that follow.
  bool play_by_bound() {
    const auto settled = result_.plans_in_space - static_cast<std::int64_t>(open_.size());
    for (std::size_t begin = 0; begin < open_.size();) {
      if (stop_.stop_requested()) return false;
      std::size_t end = std::min(begin + kRound, open_.size());
      while (end > begin && verdicts_[open_[end - 1]].bound_ps > kth_best()) --end;
      if (end == begin) {
        result_.plans_bounded = static_cast<std::int64_t>(open_.size() - begin);
        return true;
      }
      const bool all = run_parallel(
          end - begin, threads_, stop_, [&](std::size_t i) { play(open_[begin + i]); },
          [&](std::size_t done) { report(settled + static_cast<std::int64_t>(begin + done)); });
      for (std::size_t i = begin; i < end; ++i) {
        if (verdicts_[open_[i]].iteration_ps >= 0) enter(open_[i]);
      }
      report(settled + static_cast<std::int64_t>(end));
      if (!all) return false;
      begin = end;
    }
    return true;
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
    ++result_.plans_simulated;
    const auto before = [&](std::size_t a, std::size_t b) {
      if (verdicts_[a].iteration_ps != verdicts_[b].iteration_ps)
        return verdicts_[a].iteration_ps < verdicts_[b].iteration_ps;
      return program::summary(plans_[a]) < program::summary(plans_[b]);
    };
    ranking_.insert(std::upper_bound(ranking_.begin(), ranking_.end(), i, before), i);
    if (ranking_.size() > best_wanted()) ranking_.pop_back();
  }

  std::size_t best_wanted() const { return static_cast<std::size_t>(std::max(1, request_.best)); }

  std::int64_t kth_best() const {
    return ranking_.size() < best_wanted() ? std::numeric_limits<std::int64_t>::max()
                                           : verdicts_[ranking_.back()].iteration_ps;
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

  void count_refusals() {
    std::map<std::pair<std::string, std::string>, std::size_t> known;  // family and rule -> place in the result
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!verdicts_[i].refused) continue;
      ++result_.plans_infeasible;
      const Infeasible& no = *verdicts_[i].refused;
      const std::string family = family_of(plans_[i]);
      const auto [at, fresh] = known.try_emplace({family, no.rule}, result_.rejected.size());
      if (fresh) result_.rejected.push_back({family, no.rule, no.reason, 0});
      ++result_.rejected[at->second].plans;
    }
  }

  const SearchRequest& request_;
  int threads_;
  std::stop_token stop_;
  const Progress& progress_;
  std::vector<Plan> plans_;
  std::vector<Verdict> verdicts_;     // by plan
  std::vector<std::size_t> open_;     // not refused, by bound
  std::vector<std::size_t> ranking_;  // the best so far, fastest first
  SearchResult result_;
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
