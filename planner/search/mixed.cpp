#include "planner/search/mixed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "planner/bound/evaluate.h"
#include "planner/search/one_space.h"
#include "planner/search/ranking.h"
#include "planner/search/replica_kinds.h"

namespace trivium::planner {
namespace {

using hardware::Cluster;
using hardware::NodeGroup;
using program::Plan;

constexpr auto kReportEvery = std::chrono::milliseconds(200);

/// Peak of one device of a group in the precision of the plan; 0 where it has none.
double peak_of(const NodeGroup& group, const program::Plan& plan) {
  Cluster alone;
  alone.groups.push_back(group);
  program::Plan one = plan;
  one.tensor = one.context = one.pipeline = one.data = 1;
  one.stage_nodes.clear();
  return simulator::peak_flops(one, alone);
}

std::string cluster_text(const Cluster& cluster) {
  std::string text;
  for (const NodeGroup& group : cluster.groups) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : "+", group.node.name, group.count);
  }
  return text;
}

/// Of a search that has no answer.
std::string why_none(const SearchResult& result) {
  if (!result.proved) return "stopped before any plan was simulated";
  if (result.plans_bounded > 0) {
    return fmt::format("every plan{} is slower, by a bound", result.plans_infeasible > 0 ? " that fits" : "");
  }
  const auto most = std::max_element(result.rejected.begin(), result.rejected.end(),
                                     [](const Rejected& a, const Rejected& b) { return a.plans < b.plans; });
  return most == result.rejected.end() ? "no plan is left of its space" : most->reason;
}

class MixedSearch {
 public:
  MixedSearch(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress)
      : request_(request), threads_(threads), stop_(std::move(stop)), progress_(progress) {
    const auto& groups = request.cluster.groups;
    const auto slower = [&](const NodeGroup& a, const NodeGroup& b) {
      return peak_of(a, request.job.plan) < peak_of(b, request.job.plan);
    };
    fast_ = static_cast<int>(std::max_element(groups.begin(), groups.end(), slower) - groups.begin());
    slow_ = static_cast<int>(std::min_element(groups.begin(), groups.end(), slower) - groups.begin());
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    total_.proved = true;
    if (!request_.fixed.contains("replica_micro_batch") || request_.job.plan.replica_micro_batch.empty()) {
      search_without_kinds();
    }
    search_replicas_by_kind();
    std::sort(total_.others.begin(), total_.others.end(), faster);
    if (total_.others.size() > static_cast<std::size_t>(request_.others)) {
      total_.others.resize(static_cast<std::size_t>(request_.others));
    }
    total_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(total_);
  }

 private:
  /// What a search says of itself while it runs.
  struct Said {
    std::int64_t done = 0, all = 0;
    double best_s = 0;
  };

  /// A way to use the nodes, searched.
  struct Way {
    const char* name = "";
    Cluster nodes;
    SearchResult result;
  };

  // Three searches that need nothing of each other: where one leaves a core idle, another has it.
  void search_without_kinds() {
    using Search = Way (MixedSearch::*)(const Progress&) const;
    constexpr std::array<Search, 3> kSearches{&MixedSearch::mixed_nodes, &MixedSearch::fast_nodes,
                                              &MixedSearch::as_slow};
    std::mutex mutex;
    std::array<Said, kSearches.size()> said;
    std::vector<std::future<Way>> ways;
    for (std::size_t i = 0; i < kSearches.size(); ++i) {
      ways.push_back(std::async(std::launch::async, [&, i] {
        return (this->*kSearches[i])([&, i](std::int64_t done, std::int64_t all, double best_s) {
          const std::lock_guard lock(mutex);
          said[i] = {done, all, best_s};
        });
      }));
    }
    const auto report = [&] {
      Said sum;
      const std::lock_guard lock(mutex);
      for (const Said& one : said) {
        sum.done += one.done;
        sum.all += one.all;
        if (one.best_s > 0) sum.best_s = sum.best_s > 0 ? std::min(sum.best_s, one.best_s) : one.best_s;
      }
      if (progress_) progress_(sum.done, sum.all, sum.best_s);
    };
    for (const std::future<Way>& way : ways) {
      while (way.wait_for(kReportEvery) != std::future_status::ready) report();
    }
    for (std::future<Way>& way : ways) enter(way.get());
  }

  Way mixed_nodes(const Progress& progress) const {
    return {"mixed", request_.cluster, search_as_given(without_sources(request_.cluster), threads_, stop_, progress)};
  }

  Way fast_nodes(const Progress& progress) const {
    Cluster fast;
    fast.groups.push_back(request_.cluster.groups[static_cast<std::size_t>(fast_)]);
    fast.name = cluster_text(fast);
    // On the whole cluster the ranks must be told where those nodes are, unless they are the first; stages can be told
    // where they come last in the placement.
    SearchRequest request = without_sources(fast);
    if (fast_ > 0) {
      if (!request.job.plan.placement.ends_with("pipeline")) return {"fast nodes only", fast, not_told_apart()};
      request.fixed.insert("placement");
    }
    SearchResult result = search_as_given(request, threads_, stop_, progress);
    for (std::vector<Candidate>* candidates : {&result.best, &result.others}) {
      for (Candidate& candidate : *candidates) {
        Plan& plan = candidate.plan;
        if (fast_ > 0) plan.stage_nodes.assign(static_cast<std::size_t>(plan.pipeline), fast_);
      }
    }
    return {"fast nodes only", fast, std::move(result)};
  }

  static SearchResult not_told_apart() {
    SearchResult none;
    none.proved = true;
    none.rejected.push_back(
        {"", "stage-nodes-placement", "stages are told their nodes where pipeline comes last in the placement", 1});
    return none;
  }

  Way as_slow(const Progress& progress) const {
    Cluster slow;
    for (const NodeGroup& group : request_.cluster.groups) {
      NodeGroup like = request_.cluster.groups[static_cast<std::size_t>(slow_)];
      like.count = group.count;
      like.node.devices = group.node.devices;
      slow.groups.push_back(std::move(like));
    }
    slow.name = cluster_text(slow);
    SearchRequest request = request_;
    request.cluster = one_kind(slow);
    request.others = 0;  // their figures would be those of the slow nodes
    SearchResult result = search_as_given(request, threads_, stop_, progress);
    // What such a plan does on the nodes that are there: at least as fast, but it may need what only the slow have.
    std::vector<Candidate> real;
    for (Candidate& candidate : result.best) {
      program::Job job = request_.job;
      job.plan = candidate.plan;
      if (refusal(job, request_.cluster, 0)) continue;
      const auto lowered = program::lower(job);
      const auto memory = simulator::memory_of(std::get<program::Program>(lowered), request_.cluster);
      if (!request_.ignore_memory && simulator::out_of_memory(memory)) continue;
      auto simulated = full_simulation(job, request_.cluster);
      if (!simulated) continue;
      real.push_back({candidate.plan, std::move(simulated).value()});
    }
    std::sort(real.begin(), real.end(), faster);
    result.best = std::move(real);
    return {"all treated as slow", slow, std::move(result)};
  }

  // What may be faster than the k-th best until now.
  void search_replicas_by_kind() {
    SearchRequest request = without_sources(request_.cluster);
    request.limit_ps = limit_behind(total_.best, request_);
    enter({"replicas by kind", request_.cluster, search_replica_kinds(request, threads_, stop_, progress_)});
  }

  // Groups whose nodes are equal are one group, so that they count as one kind.
  static Cluster one_kind(const Cluster& cluster) {
    Cluster joined;
    joined.name = cluster.name;
    for (const NodeGroup& group : cluster.groups) {
      if (!joined.groups.empty() && joined.groups.back().node.devices == group.node.devices) {
        joined.groups.back().count += group.count;
      } else {
        joined.groups.push_back(group);
      }
    }
    return joined;
  }

  // Placed clusters are copies, made for every plan: where constants come from need not come along.
  SearchRequest without_sources(const Cluster& cluster) const {
    SearchRequest request = request_;
    request.cluster = cluster;
    for (NodeGroup& group : request.cluster.groups) group.node.sources.clear();
    return request;
  }

  void enter(const Way& way) {
    const SearchResult& result = way.result;
    Alternative alternative{way.name, cluster_text(way.nodes), std::nullopt, "", result.plans_in_space};
    if (result.best.empty()) {
      alternative.why_not = why_none(result);
    } else {
      alternative.best = result.best.front();
    }
    total_.alternatives.push_back(std::move(alternative));
    join(total_, result, request_);
    total_.others.insert(total_.others.end(), result.others.begin(), result.others.end());
    for (const Rejected& rejected : result.rejected) add(rejected);
  }

  void add(const Rejected& rejected) {
    const auto [at, fresh] = known_.try_emplace({rejected.family, rejected.rule}, total_.rejected.size());
    if (fresh) {
      total_.rejected.push_back(rejected);
    } else {
      total_.rejected[at->second].plans += rejected.plans;
    }
  }

  const SearchRequest& request_;
  int threads_;
  std::stop_token stop_;
  const Progress& progress_;
  int fast_ = 0, slow_ = 0;  // groups
  std::map<std::pair<std::string, std::string>, std::size_t> known_;
  SearchResult total_;
};

}  // namespace

SearchResult search_mixed(const SearchRequest& request, int threads, std::stop_token stop, const Progress& progress) {
  return MixedSearch(request, threads, std::move(stop), progress).run();
}

}  // namespace trivium::planner
