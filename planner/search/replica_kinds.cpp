#include "planner/search/replica_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/seconds.h"
#include "planner/bound/evaluate.h"
#include "planner/bound/site_bounds.h"
#include "planner/bound/tree.h"
#include "planner/search/one_space.h"
#include "planner/search/parallel.h"
#include "planner/search/ranking.h"
#include "planner/space/space.h"
#include "program/plan/job_json.h"
#include "simulator/placement/defaults.h"
#include "simulator/placement/peer_buffers.h"

namespace trivium::planner {
namespace {

using base::kSecondsPerPs;
using hardware::Cluster;
using program::Plan;

constexpr std::size_t kAtOnce = 8;
constexpr int kMost = static_cast<int>(kMostMicroBatch);

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
  KindSearch(const SearchRequest& request, int threads, const std::stop_token& stop, const Progress& progress)
      : request_(request), threads_(threads_for(threads)), stop_(stop), progress_(progress) {
    for (std::size_t g = 0; g < request.cluster.groups.size(); ++g) {
      costs_.push_back(std::make_shared<simulator::SharedCosts>());
    }
  }

  SearchResult run() {
    const auto start = std::chrono::steady_clock::now();
    if (const std::string why = refused(); !why.empty()) {
      refuse(why);
    } else {
      result_.proved = true;
      list_mixes();
      if (result_.plans_in_space == 0 && result_.proved) {
        refuse(refused_.value_or("no micro-batches of the kinds of nodes share out the batch, replica by replica"));
      }
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
      return "replicas with different micro-batches are searched for on nodes of equally many devices";
    }
    const Plan& plan = request_.job.plan;
    if (fixed("replica_micro_batch") && plan.replica_micro_batch.empty()) {
      return "replica_micro_batch is fixed: one size for all replicas";
    }
    for (const Constraint& constraint : request_.constraints) {
      if (constraint.field == "replica_micro_batch" && constraint.value.empty()) {
        return fmt::format("left out by {}", constraint.text());
      }
    }
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
    request.job.plan.context_heads = split.context_heads;
    request.job.plan.pipeline = split.pipeline;
    request.job.plan.data = split.data;
    request.job.plan.expert = 1;
    request.job.plan.expert_tensor = 0;
    request.job.plan.micro_batch = size;
    request.job.plan.replica_micro_batch.clear();
    request.job.plan.placement = kWholeReplicas;
    request.job.training.global_batch = micro_batches * split.data * size;
    request.fixed.insert({"tensor", "context", "context_method", "context_heads", "pipeline", "data", "expert",
                          "expert_tensor", "micro_batch", "placement"});
    // What only some kinds of nodes can do is open on none.
    if (!simulator::has_fused_attention(request.job.plan, request_.cluster)) request.fixed.insert("attention");
    if (!fixed("overlap.tensor") && simulator::some_lack_peer_buffers(request.job.plan, request_.cluster)) {
      request.job.plan.overlap.tensor = false;
      request.fixed.insert("overlap.tensor");
    }
    request.others = 0;
    return request;
  }

  int replicas_on(const Plan& split, std::size_t group) const {
    const hardware::NodeGroup& nodes = request_.cluster.groups[group];
    const int replica = split.tensor * split.context * split.pipeline;
    return nodes.count * nodes.node.devices % replica == 0 ? nodes.count * nodes.node.devices / replica : 0;
  }

  // Lists all mixes; those that a bound proves too slow are only counted.
  void list_mixes() {
    // The splits of as many devices of one kind.
    SearchRequest any = alike(request_.job.plan, 0, 1, 1);
    for (const char* field : {"tensor", "context", "context_method", "context_heads", "pipeline", "data"}) {
      if (!fixed(field)) any.fixed.erase(field);
    }
    any.job.plan.data = request_.job.plan.data;
    std::erase_if(any.constraints, [](const Constraint& c) { return c.field == "micro_batch"; });
    const Space space(any);
    for (const Plan& split : space.splits()) {
      replicas_.clear();
      for (std::size_t g = 0; g < request_.cluster.groups.size(); ++g) replicas_.push_back(replicas_on(split, g));
      const bool whole = std::find(replicas_.begin(), replicas_.end(), 0) == replicas_.end();
      if (!whole || split.ranks() != request_.cluster.devices() || !takes_given_sizes(split)) continue;
      splits_.push_back(split);
      plans_.push_back(space.count(split));
      ways_.clear();
      program::Job job = request_.job;
      job.plan = split;
      job.plan.placement = kWholeReplicas;
      reduction_ps_ = least_reduction_ps(job, request_.cluster);
      for (std::int64_t m = 1; m <= request_.job.training.global_batch; ++m) {
        if (request_.job.training.global_batch % m == 0) list_mixes(m, request_.job.training.global_batch / m);
      }
    }
    std::sort(mixes_.begin(), mixes_.end());
  }

  // Where the user gave a size for every replica: whether those on a kind of nodes have one.
  bool takes_given_sizes(const Plan& split) {
    if (!fixed("replica_micro_batch")) return true;
    given_ = sizes_of(request_.job.plan.replica_micro_batch, split);
    return !given_.empty();
  }

  // By group; empty where replicas on one group differ.
  std::vector<int> sizes_of(const std::vector<int>& of_replicas, const Plan& split) const {
    std::vector<int> sizes;
    std::size_t first = 0;
    for (const int replicas : replicas_) {
      if (first < of_replicas.size()) sizes.push_back(of_replicas[first]);
      first += static_cast<std::size_t>(replicas);
    }
    return sizes.size() == replicas_.size() && spread(split, sizes) == of_replicas ? sizes : std::vector<int>{};
  }

  void list_mixes(std::int64_t micro_batches, std::int64_t samples) {
    const Plan& split = splits_.back();
    left_out_.clear();
    // Replicas of one stage and one size are in the space of mixed nodes.
    if (split.pipeline == 1 && samples % split.data == 0) {
      left_out_.emplace_back(replicas_.size(), static_cast<int>(std::min<std::int64_t>(samples / split.data, kMost)));
    }
    for (const Constraint& constraint : request_.constraints) {
      if (constraint.field != "replica_micro_batch") continue;
      Plan forbidden;
      program::Training training;
      program::set_field(forbidden, training, constraint.field, constraint.value);
      left_out_.push_back(sizes_of(forbidden.replica_micro_batch, split));
    }
    std::erase_if(left_out_, [&](const std::vector<int>& sizes) { return !shares_out(sizes, samples); });
    std::sort(left_out_.begin(), left_out_.end());
    left_out_.erase(std::unique(left_out_.begin(), left_out_.end()), left_out_.end());
    go_on({splits_.size() - 1, {}, micro_batches, 0, 0}, samples);
  }

  bool shares_out(const std::vector<int>& sizes, std::int64_t samples) {
    if (sizes.empty()) return false;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      if (!allowed(g, sizes[g])) return false;
      samples -= std::int64_t{sizes[g]} * replicas_[g];
    }
    return samples == 0;
  }

  // Sizes for the groups that have none yet, which take `left` samples a pass.
  void go_on(const Mix& mix, std::int64_t left) {
    const std::size_t group = mix.sizes.size();
    if (group == replicas_.size()) {
      if (std::binary_search(left_out_.begin(), left_out_.end(), mix.sizes)) return;
      result_.plans_in_space += plans_.back();
      mixes_.push_back(mix);
      mixes_.back().bound_ps = std::max(mix.bound_ps, reduction_ps_);
      return;
    }
    for (int size = 1; size <= kMost && std::int64_t{size} * replicas_[group] <= left; ++size) {
      if (stop_.stop_requested()) {
        result_.proved = false;
        left_ps_ = 0;  // nothing is known of what was not listed
        return;
      }
      const std::int64_t rest = left - std::int64_t{size} * replicas_[group];
      const std::int64_t ways = ways_to_go_on(group + 1, rest);
      if (ways == 0 || !allowed(group, size)) continue;
      Mix longer = mix;
      longer.sizes.push_back(size);
      const std::int64_t bound = bound_ps(splits_.back(), layer_times(splits_.back(), group, size), mix.micro_batches);
      if (bound > longer.bound_ps) {
        longer.bound_ps = bound;
        longer.slowest = group;
      }
      const std::int64_t at_least = std::max(longer.bound_ps, reduction_ps_);
      if (at_least <= request_.limit_ps) {
        go_on(longer, rest);
        continue;
      }
      const auto begins = [&](const std::vector<int>& sizes) {
        return std::equal(longer.sizes.begin(), longer.sizes.end(), sizes.begin());
      };
      const std::int64_t plans = (ways - std::count_if(left_out_.begin(), left_out_.end(), begins)) * plans_.back();
      if (plans == 0) continue;
      result_.plans_in_space += plans;
      result_.plans_bounded += plans;
      left_ps_ = std::min(left_ps_, at_least);
    }
  }

  // In how many ways the groups from this one on take so many samples a pass.
  std::int64_t ways_to_go_on(std::size_t group, std::int64_t left) {
    if (group == replicas_.size()) return left == 0 ? 1 : 0;
    const auto [at, fresh] = ways_.try_emplace({group, left}, 0);
    if (!fresh) return at->second;
    std::int64_t ways = 0;
    for (int size = 1; size <= kMost && std::int64_t{size} * replicas_[group] <= left; ++size) {
      const std::int64_t on = ways_to_go_on(group + 1, left - std::int64_t{size} * replicas_[group]);
      if (on > 0 && allowed(group, size)) ways += on;
    }
    return at->second = ways;  // references into a map outlive insertions
  }

  // Neither refused by a rule or a constraint, nor another than the user gave.
  bool allowed(std::size_t group, int size) {
    if (!given_.empty() && given_[group] != size) return false;
    return size <= kMost && !layer_times(splits_.back(), group, size).empty();
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
    const auto [at, fresh] = layers_.try_emplace({split.tensor, split.context,
                                                  static_cast<int>(split.context_method) + 2 * split.context_heads,
                                                  static_cast<int>(group), size});
    if (!fresh) return at->second;
    const SearchRequest one = alike(split, group, size, split.pipeline);
    const Space space(one);
    if (space.splits().size() != 1) return at->second;
    program::Job job = one.job;
    job.plan = relaxed(space.splits().front());
    if (const auto no = refusal(job, one.cluster, 0)) {
      if (!refused_) refused_ = no->reason;
      return at->second;
    }
    for (const PlacementChoice& layout : space.layouts(job.plan)) {
      LayerTimes times;
      const auto passes_of = [&](program::Schedule schedule) {
        program::Job laid = job;
        laid.plan = with(job.plan, layout);
        laid.plan.schedule = schedule;
        return simulator::CostEstimator(laid, one.cluster, costs_[group].get()).least_stage_passes(laid.plan);
      };
      const auto least = [](const auto& passes, auto part) {
        std::int64_t ps = kNever;
        for (const auto& pass : passes) ps = std::min(ps, part(pass).layer);
        return ps;
      };
      const auto whole = passes_of(program::usual_schedule(1));
      times.forward = least(whole, [](const auto& pass) { return pass.forward; });
      times.backward = least(whole, [](const auto& pass) { return pass.backward; });
      const auto halves = passes_of(program::usual_schedule(1, true));
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
    for (; next < mixes_.size(); ++next) {
      if (mixes_[next].bound_ps > limit()) result_.plans_bounded += plans_[mixes_[next].split];
    }
    if (left_ps_ != kNever) result_.bound_s = static_cast<double>(left_ps_) * kSecondsPerPs;
  }

  // Each on a thread of its own, all with the limit that is known before them: what is found depends on no thread.
  void search(const std::vector<const Mix*>& mixes) {
    std::vector<SearchResult> found(mixes.size());
    const std::int64_t limit_ps = limit();
    run_parallel(
        mixes.size(), threads_, {},
        [&](std::size_t i) {
          const Mix& mix = *mixes[i];
          const Plan& split = splits_[mix.split];
          SearchRequest one = alike(split, mix.slowest, mix.sizes[mix.slowest], mix.micro_batches);
          one.simulated_as =
              SimulatedAs{request_.cluster, request_.job.training.global_batch, spread(split, mix.sizes)};
          one.costs = costs_[mix.slowest];
          one.limit_ps = limit_ps;
          found[i] = search_as_given(one, 1, stop_, {});
        },
        [](std::size_t) {});
    for (SearchResult& one : found) enter(std::move(one));
    keep_best(result_.best, request_);
    if (progress_) {
      const std::int64_t done = result_.plans_infeasible + result_.plans_bounded + result_.plans_simulated;
      progress_(done, result_.plans_in_space, result_.best_s);
    }
  }

  void enter(SearchResult found) {
    result_.best.insert(result_.best.end(), found.best.begin(), found.best.end());
    for (Rejected& rejected : found.rejected) {
      const auto [at, fresh] = rejected_.try_emplace({rejected.family, rejected.rule}, result_.rejected.size());
      if (fresh) {
        result_.rejected.push_back(std::move(rejected));
      } else {
        result_.rejected[at->second].plans += rejected.plans;
      }
    }
    result_.plans_infeasible += found.plans_infeasible;
    result_.plans_bounded += found.plans_bounded;
    result_.plans_simulated += found.plans_simulated;
    result_.nodes_opened += found.nodes_opened;
    result_.proved &= found.proved;
    if (found.best_s > 0) result_.best_s = result_.best_s > 0 ? std::min(result_.best_s, found.best_s) : found.best_s;
    const bool none_left = found.proved && found.bound_s == 0;  // all of it was refused
    if (!none_left) left_ps_ = std::min<std::int64_t>(left_ps_, std::llround(found.bound_s / kSecondsPerPs));
  }

  std::int64_t limit() const { return limit_behind(result_.best, request_); }

  const SearchRequest& request_;
  int threads_;
  const std::stop_token& stop_;
  const Progress& progress_;
  std::vector<Plan> splits_;
  std::vector<std::shared_ptr<simulator::SharedCosts>> costs_;  // by group
  std::vector<std::int64_t> plans_;                             // by split: of one combination of sizes
  std::vector<Mix> mixes_;                                      // by bound
  // Of the split that is being listed: replicas by group, sizes that the user gave them, combinations that are no part
  // of the space, and ways_to_go_on().
  std::vector<int> replicas_, given_;
  std::vector<std::vector<int>> left_out_;
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> ways_;
  std::int64_t reduction_ps_ = 0;       // what its gradients take between sites
  std::optional<std::string> refused_;  // why the first split that a rule refuses is refused
  std::map<std::pair<std::string, std::string>, std::size_t> rejected_;  // family and rule -> place
  std::map<std::tuple<int, int, int, int, int>, std::vector<LayerTimes>> layers_;
  std::int64_t left_ps_ = kNever;  // no plan that was not simulated is faster
  SearchResult result_;
};

}  // namespace

SearchResult search_replica_kinds(const SearchRequest& request, int threads, const std::stop_token& stop,
                                  const Progress& progress) {
  return KindSearch(request, threads, stop, progress).run();
}

}  // namespace trivium::planner
