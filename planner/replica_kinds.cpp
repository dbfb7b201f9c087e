#include "planner/replica_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "edge/seconds.h"
#include "planner/evaluate.h"
#include "planner/parallel.h"
#include "planner/space.h"
#include "planner/tree.h"

namespace trivium::planner {
namespace {

using edge::kSecondsPerPs;
using hardware::Cluster;
using program::Plan;

constexpr std::size_t kAtOnce = 8;

/// How a split shares the batch out: the samples of a micro-batch on every kind of nodes.
struct Mix {
  std::size_t split = 0;
  std::vector<int> sizes;  // by group of the cluster
  std::int64_t micro_batches = 0;
  std::int64_t bound_ps = 0;
  std::size_t slowest = 0;  // group that the bound is of
  bool operator<(const Mix& other) const {
    return bound_ps != other.bound_ps ? bound_ps < other.bound_ps
                                      : std::tie(split, sizes) < std::tie(other.split, other.sizes);
  }
};

class KindSearch {
 public:
  KindSearch(const SearchRequest& request, std::int64_t limit_ps, int threads, const std::stop_token& stop,
             const Progress& progress)
      : request_(request), limit_ps_(limit_ps), threads_(threads), stop_(stop), progress_(progress) {
    for (std::size_t g = 0; g < request.cluster.groups.size(); ++g) {
      costs_.push_back(std::make_shared<simulator::SharedCosts>());
    }
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    if (const std::string why = refused(); !why.empty()) {
      refuse(why);
    } else {
      list_mixes();
      if (mixes_.empty()) refuse("no micro-batches of the kinds of nodes share out the batch, replica by replica");
      search_mixes();
    }
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  bool fixed(const char* field) const { return request_.fixed.contains(field); }

  std::string refused() const {
    const auto& groups = request_.cluster.groups;
    const int devices = groups.front().node.devices;
    if (std::any_of(groups.begin(), groups.end(), [&](const auto& g) { return g.node.devices != devices; })) {
      return "replicas of unlike micro-batches are looked for on nodes of equally many devices";
    }
    const Plan& plan = request_.job.plan;
    if (fixed("micro_batch")) return "micro_batch is fixed: one size for all replicas";
    if (fixed("stage_nodes")) return "stage_nodes is fixed: stages, not replicas, lie on kinds of nodes";
    if (fixed("placement") && plan.placement != kWholeReplicas) {
      return fmt::format("placement is fixed: whole replicas on kinds of nodes need {}", kWholeReplicas);
    }
    if (plan.expert > 1) return "expert is fixed: experts exchange rows of equal micro-batches";
    return "";
  }

  void refuse(std::string why) {
    result_.proved = true;
    result_.rejected.push_back({"replicas by kind", "replica-kinds", std::move(why), 0});
  }

  /// The problem in which all replicas are as those on the nodes of `group`.
  SearchRequest alike(const Plan& split, std::size_t group, int size, std::int64_t micro_batches) const {
    SearchRequest request = request_;
    request.cluster = {};
    request.cluster.name = request_.cluster.groups[group].node.name;
    request.cluster.groups.push_back(request_.cluster.groups[group]);
    request.cluster.groups.front().count = request_.cluster.nodes();
    request.job.plan.tensor = split.tensor;
    request.job.plan.context = split.context;
    request.job.plan.context_method = split.context_method;
    request.job.plan.pipeline = split.pipeline;
    request.job.plan.data = split.data;
    request.job.plan.expert = 1;
    request.job.plan.micro_batch = size;
    request.job.plan.replica_micro_batch.clear();
    request.job.plan.placement = kWholeReplicas;
    request.job.training.global_batch = micro_batches * split.data * size;
    request.fixed.insert(
        {"tensor", "context", "context_method", "pipeline", "data", "expert", "micro_batch", "placement"});
    request.others = 0;
    return request;
  }

  int replicas_on(const Plan& split, std::size_t group) const {
    const hardware::NodeGroup& nodes = request_.cluster.groups[group];
    const int replica = split.tensor * split.context * split.pipeline;
    return nodes.count * nodes.node.devices % replica == 0 ? nodes.count * nodes.node.devices / replica : 0;
  }

  void list_mixes() {
    // The splits of as many devices of one kind.
    SearchRequest any = alike(request_.job.plan, 0, 1, 1);
    for (const char* field : {"tensor", "context", "context_method", "pipeline", "data"}) {
      if (!fixed(field)) any.fixed.erase(field);
    }
    any.job.plan.data = request_.job.plan.data;
    std::erase_if(any.constraints, [](const Constraint& c) { return c.field == "micro_batch"; });
    const Space space(any);
    for (const Plan& split : space.splits()) {
      bool whole = split.ranks() == request_.cluster.devices();
      for (std::size_t g = 0; g < request_.cluster.groups.size(); ++g) whole &= replicas_on(split, g) > 0;
      if (!whole) continue;
      splits_.push_back(split);
      plans_.push_back(space.count(split));
      std::vector<int> sizes;
      for (std::int64_t m = 1; m <= request_.job.training.global_batch; ++m) {
        if (request_.job.training.global_batch % m != 0) continue;
        add_sizes(m, request_.job.training.global_batch / m, sizes);
      }
    }
    std::sort(mixes_.begin(), mixes_.end());
  }

  // Sizes of the groups from sizes.size() on that take `left` samples a pass.
  void add_sizes(std::int64_t micro_batches, std::int64_t left, std::vector<int>& sizes) {
    const std::size_t group = sizes.size();
    const Plan& split = splits_.back();
    if (group == request_.cluster.groups.size()) {
      if (left == 0) add_mix(micro_batches, sizes);
      return;
    }
    const std::int64_t replicas = replicas_on(split, group);
    const bool last = group + 1 == request_.cluster.groups.size();
    for (std::int64_t size = last ? std::max<std::int64_t>(1, left / replicas) : 1;
         size <= kMostMicroBatch && size * replicas <= left; ++size) {
      sizes.push_back(static_cast<int>(size));
      add_sizes(micro_batches, left - size * replicas, sizes);
      sizes.pop_back();
      if (last) break;
    }
  }

  // Replicas of one stage and one size are in the space of mixed nodes.
  void add_mix(std::int64_t micro_batches, const std::vector<int>& sizes) {
    const Plan& split = splits_.back();
    const bool same = std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes.front(); });
    if (same && split.pipeline == 1) return;
    if (fixed("replica_micro_batch") && spread(split, sizes) != request_.job.plan.replica_micro_batch) return;
    Mix mix{splits_.size() - 1, sizes, micro_batches, 0, 0};
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      const std::int64_t bound = bound_ps(split, layer_times(split, g, sizes[g]), micro_batches);
      if (bound == kNever) return;  // refused, or not allowed
      if (bound <= mix.bound_ps) continue;
      mix.bound_ps = bound;
      mix.slowest = g;
    }
    mixes_.push_back(std::move(mix));
  }

  // What one layer takes for a micro-batch in one layout, nothing recomputed.
  struct LayerTimes {
    std::int64_t forward = 0, backward = 0;
    std::int64_t split_forward = 0, first_half = 0, second_half = 0;  // with the backward split in halves
  };

  // As Tree::balanced_bounds, for layers alone: with L of them, l = ceil(L / p) at least on the slowest stage s and m
  // micro-batches, whole backwards take L (f + b) + (m - 1) l b + (m - p + s) l f, split ones L f + m l (b + w) +
  // (m - p + s) l f; s is the first stage at worst. Interleaved, whose chunks are as small as a layer, the last stage
  // waits for a chunk of each before it and each of them for it: (p - 1) (f + b) + m l (f + b).
  std::int64_t bound_ps(const Plan& split, const std::vector<LayerTimes>& layouts, std::int64_t m) const {
    const std::int64_t p = split.pipeline, all = request_.job.model.layers, most = (all + p - 1) / p;
    const std::int64_t later = std::max<std::int64_t>(0, m - p) * most;
    std::int64_t least = kNever;
    for (const LayerTimes& t : layouts) {
      const std::int64_t f = t.forward, b = t.backward;
      least = std::min(least, all * (f + b) + (m - 1) * most * b + later * f);
      if (p == 1) continue;
      if (m % p == 0) least = std::min(least, (p - 1 + m * most) * (f + b));
      const std::int64_t halves = t.first_half + t.second_half;
      least = std::min(least, all * t.split_forward + m * most * halves + later * t.split_forward);
    }
    return least;
  }

  // In all layouts of the split; the stages' number says nothing of it, as tensor and context ranks come first. Empty
  // where a rule refuses the split, or a constraint its size.
  const std::vector<LayerTimes>& layer_times(const Plan& split, std::size_t group, int size) {
    const auto [at, fresh] = layers_.try_emplace(
        {split.tensor, split.context, static_cast<int>(split.context_method), static_cast<int>(group), size});
    if (!fresh) return at->second;
    const SearchRequest one = alike(split, group, size, split.pipeline);
    const Space space(one);
    if (space.splits().size() != 1) return at->second;
    program::Job job = one.job;
    job.plan = plainest(space.splits().front());
    if (refusal(job, one.cluster, 0)) return at->second;
    for (const Layout& layout : space.layouts(job.plan)) {
      LayerTimes times;
      const auto passes_of = [&](program::Schedule schedule) {
        program::Job laid = job;
        laid.plan = with(job.plan, layout);
        laid.plan.schedule = schedule;
        return simulator::Sketch(laid, one.cluster, costs_[group].get()).least_stage_passes(laid.plan);
      };
      const auto least = [](const auto& passes, auto part) {
        std::int64_t ps = kNever;
        for (const auto& pass : passes) ps = std::min(ps, part(pass).layer);
        return ps;
      };
      const auto whole = passes_of(program::Schedule::k1f1b);
      times.forward = least(whole, [](const auto& pass) { return pass.forward; });
      times.backward = least(whole, [](const auto& pass) { return pass.backward; });
      const auto halves = passes_of(program::Schedule::kZeroBubble);
      times.split_forward = least(halves, [](const auto& pass) { return pass.forward; });
      times.first_half = least(halves, [](const auto& pass) { return pass.backward; });
      times.second_half = least(halves, [](const auto& pass) { return pass.weights; });
      at->second.push_back(times);
    }
    return at->second;
  }

  std::vector<int> spread(const Plan& split, const std::vector<int>& sizes) const {
    std::vector<int> of_replicas;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      of_replicas.insert(of_replicas.end(), static_cast<std::size_t>(replicas_on(split, g)), sizes[g]);
    }
    return of_replicas;
  }

  void search_mixes() {
    for (const Mix& mix : mixes_) result_.plans_in_space += plans_[mix.split];
    result_.proved = true;
    std::size_t next = 0;
    while (next < mixes_.size() && mixes_[next].bound_ps <= limit() && !stop_.stop_requested()) {
      std::vector<const Mix*> some;
      for (; next < mixes_.size() && some.size() < kAtOnce && mixes_[next].bound_ps <= limit(); ++next) {
        some.push_back(&mixes_[next]);
      }
      search(some);
    }
    if (next < mixes_.size()) {
      left_ps_ = std::min(left_ps_, mixes_[next].bound_ps);
      result_.proved &= mixes_[next].bound_ps > limit();
    }
    for (; next < mixes_.size(); ++next) result_.plans_bounded += plans_[mixes_[next].split];
    std::sort(result_.best.begin(), result_.best.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.simulation.iteration_ps, program::summary(a.plan)) <
             std::pair(b.simulation.iteration_ps, program::summary(b.plan));
    });
    if (result_.best.size() > wanted()) result_.best.resize(wanted());
    if (left_ps_ != kNever) result_.bound_s = static_cast<double>(left_ps_) * kSecondsPerPs;
  }

  // Each on a thread of its own, all with the limit that is known before them: what is found hangs on no thread.
  void search(const std::vector<const Mix*>& mixes) {
    std::vector<SearchResult> found(mixes.size());
    const std::int64_t limit_ps = limit();
    run_parallel(
        mixes.size(), threads_, {},
        [&](std::size_t i) {
          const Mix& mix = *mixes[i];
          const Plan& split = splits_[mix.split];
          SearchRequest one = alike(split, mix.slowest, mix.sizes[mix.slowest], mix.micro_batches);
          one.played_as = PlayedAs{request_.cluster, request_.job.training.global_batch, spread(split, mix.sizes),
                                   costs_[mix.slowest]};
          one.limit_ps = limit_ps;
          found[i] = search_as_given(one, 1, stop_, {});
        },
        [](std::size_t) {});
    for (std::size_t i = 0; i < mixes.size(); ++i) enter(std::move(found[i]));
    if (progress_) {
      const std::int64_t done = result_.plans_infeasible + result_.plans_bounded + result_.plans_simulated;
      progress_(done, result_.plans_in_space, result_.best_s);
    }
  }

  void enter(SearchResult found) {
    for (Candidate& candidate : found.best) {
      ends_.insert(std::upper_bound(ends_.begin(), ends_.end(), candidate.simulation.iteration_ps),
                   candidate.simulation.iteration_ps);
      result_.best.push_back(std::move(candidate));
    }
    result_.plans_infeasible += found.plans_infeasible;
    result_.plans_bounded += found.plans_bounded;
    result_.plans_simulated += found.plans_simulated;
    result_.nodes_opened += found.nodes_opened;
    result_.proved &= found.proved;
    if (found.best_s > 0) result_.best_s = result_.best_s > 0 ? std::min(result_.best_s, found.best_s) : found.best_s;
    if (found.bound_s > 0) {
      left_ps_ = std::min<std::int64_t>(left_ps_, std::llround(found.bound_s / kSecondsPerPs));
    }
  }

  std::size_t wanted() const { return static_cast<std::size_t>(std::max(1, request_.best)); }

  // What is ranked by segments and what was simulated op by op differ by less than this part.
  std::int64_t limit() const {
    constexpr std::int64_t kPart = 100;
    const std::int64_t last = ends_.size() < wanted() ? kNever : ends_[wanted() - 1];
    return last == kNever ? limit_ps_ : std::min(limit_ps_, last + last / kPart);
  }

  const SearchRequest& request_;
  std::int64_t limit_ps_;
  int threads_;
  const std::stop_token& stop_;
  const Progress& progress_;
  std::vector<Plan> splits_;
  std::vector<std::shared_ptr<simulator::SharedCosts>> costs_;  // by group
  std::vector<std::int64_t> plans_;                             // by split: of one combination of sizes
  std::vector<Mix> mixes_;                                      // by bound
  std::map<std::tuple<int, int, int, int, int>, std::vector<LayerTimes>> layers_;
  std::vector<std::int64_t> ends_;  // iterations of what was found, ascending
  std::int64_t left_ps_ = kNever;   // no plan that was not played is faster
  SearchResult result_;
};

}  // namespace

SearchResult search_replica_kinds(const SearchRequest& request, std::int64_t limit_ps, int threads,
                                  const std::stop_token& stop, const Progress& progress) {
  return KindSearch(request, limit_ps, threads, stop, progress).run();
}

}  // namespace trivium::planner
