#include "planner/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "program/schedule.h"
#include "simulator/placed_cluster.h"

namespace trivium::planner {
namespace {

using program::ContextMethod;
using program::Plan;
using program::Recompute;
using program::Schedule;

constexpr std::int64_t kMostTensor = 64;  // eight nodes of eight: beyond, every layer waits for the network
constexpr std::int64_t kMostContext = 64;
// Tokens: shorter sequences fit a device, and splitting them leaves attention blocks that are too small.
constexpr std::int64_t kLongSequence = 16'384;
constexpr std::int64_t kMostMicroBatch = 64;  // samples; products are large enough long before

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> found;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) found.push_back(static_cast<int>(d));
  }
  return found;
}

class Enumerator {
 public:
  explicit Enumerator(const SearchRequest& request) : request_(request), given_(request.job.plan) {}

  std::int64_t forbidden() const { return forbidden_; }

  std::vector<Plan> all() {
    const int ranks = ranks_of(request_);
    for (const int tensor : tensors(ranks)) {
      for (const int context : contexts(ranks / std::max(1, tensor))) {
        for (const int pipeline : pipelines(ranks, tensor)) {
          const std::int64_t split = std::int64_t{tensor} * pipeline * std::max(1, context);
          const std::int64_t data = fixed("data") ? given_.data : std::max<std::int64_t>(1, ranks / split);
          if (split * data != ranks) continue;
          Plan plan = given_;
          plan.tensor = tensor;
          plan.context = context;
          plan.pipeline = pipeline;
          plan.data = static_cast<int>(data);
          add_groups(plan);
        }
      }
    }
    if (plans_.empty() && forbidden_ == 0) plans_.push_back(given_);
    return std::move(plans_);
  }

 private:
  bool fixed(const char* field) const { return request_.fixed.contains(field); }

  std::vector<int> tensors(int ranks) const {
    if (fixed("tensor")) return {given_.tensor};
    std::vector<int> some = divisors(request_.job.model.heads, kMostTensor);
    std::erase_if(some, [&](int tensor) { return ranks % tensor != 0; });
    return some;
  }

  std::vector<int> contexts(int ranks) const {
    if (fixed("context") || request_.job.training.sequence < kLongSequence) return {given_.context};
    return divisors(ranks, kMostContext);
  }

  // How the context ranks exchange keys and values, and how many ranks share the experts.
  void add_groups(Plan plan) {
    std::vector<ContextMethod> methods{given_.context_method};
    if (plan.context > 1 && !fixed("context_method")) methods = {ContextMethod::kRing, ContextMethod::kAllToAll};
    std::vector<int> experts{given_.expert};
    if (request_.job.model.experts && !fixed("expert")) {
      experts = divisors(request_.job.model.experts->count, plan.data);
      std::erase_if(experts, [&](int expert) { return plan.data % expert != 0; });
    }
    for (const ContextMethod method : methods) {
      for (const int expert : experts) {
        plan.context_method = method;
        plan.expert = expert;
        add_family(plan);
      }
    }
  }

  std::vector<int> pipelines(int ranks, int tensor) const {
    if (fixed("pipeline")) return {given_.pipeline};
    return divisors(ranks / std::max(1, tensor), request_.job.model.layers);
  }

  std::vector<int> micro_batches_of(const Plan& plan) const {
    if (fixed("micro_batch")) return {given_.micro_batch};
    const std::int64_t batch = request_.job.training.global_batch;
    if (batch % plan.data != 0) return {1};  // refused whatever the micro-batch: once is enough to say so
    return divisors(batch / plan.data, kMostMicroBatch);
  }

  std::vector<Recompute> recomputes() const {
    if (fixed("recompute") || !given_.stage_recompute.empty()) return {given_.recompute};
    return {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  }

  std::vector<int> virtual_stages_of(const Plan& plan) const {
    if (fixed("virtual_stages")) return {given_.virtual_stages};
    const bool may_interleave = !fixed("schedule") || given_.schedule == Schedule::kInterleaved;
    const bool must_interleave = fixed("schedule") && given_.schedule == Schedule::kInterleaved;
    std::vector<int> counts;
    if (!must_interleave) counts.push_back(1);
    if (may_interleave && plan.pipeline > 1 && request_.job.model.layers % plan.pipeline == 0) {
      for (const int count : divisors(request_.job.model.layers / plan.pipeline, request_.job.model.layers)) {
        if (count > 1) counts.push_back(count);
      }
    }
    return counts;
  }

  void add_family(const Plan& split) {
    std::vector<int> zero{0}, sequence{0};
    if (split.data > 1) zero = {0, 1, 2, 3};
    if (split.tensor > 1) sequence.push_back(1);
    if (fixed("zero_stage")) zero = {given_.zero_stage};
    if (fixed("sequence_parallel")) sequence = {given_.sequence_parallel ? 1 : 0};
    for (const int micro_batch : micro_batches_of(split)) {
      for (const Recompute recompute : recomputes()) {
        for (const int stage : zero) {
          for (const int parallel : sequence) {
            Plan plan = split;
            plan.micro_batch = micro_batch;
            plan.recompute = recompute;
            plan.zero_stage = stage;
            plan.sequence_parallel = parallel == 1;
            overlap_data_parallel(plan);
            add_offloads(plan);
            if (const int group = replicas_on_a_node(plan); group > 0) {
              plan.shard_group = group;
              add_offloads(plan);
            }
          }
        }
      }
    }
  }

  // What runs beside the passes costs a slot of memory at most and never time, where there are lanes for it.
  void overlap_data_parallel(Plan& plan) const {
    const auto has_lanes = [](const hardware::NodeGroup& group) { return group.node.asynchronous_lanes; };
    if (plan.data == 1 || !std::ranges::all_of(request_.cluster.groups, has_lanes)) return;
    if (!fixed("overlap.gradient_reduction")) plan.overlap.gradient_reduction = true;
    if (!fixed("overlap.parameter_gather")) plan.overlap.parameter_gather = plan.zero_stage > 0;
  }

  // ZeRO-3 whose gathers stay inside nodes: the replicas of a stage that share one, where that is fewer than all; 0:
  // none.
  int replicas_on_a_node(const Plan& plan) const {
    if (plan.zero_stage != 3 || fixed("shard_group") || !plan.placement.starts_with("tensor-context-data")) return 0;
    const auto& groups = request_.cluster.groups;
    int devices = groups.front().node.devices;
    for (const hardware::NodeGroup& group : groups) devices = std::gcd(devices, group.node.devices);
    const int replicas = devices / (plan.tensor * plan.context);
    const bool tiles = replicas > 1 && replicas < plan.data && plan.data % replicas == 0;
    return tiles && devices % (plan.tensor * plan.context) == 0 ? replicas : 0;
  }

  void add_offloads(Plan plan) {
    for (const program::Offload& offload : offloads()) {
      plan.offload = offload;
      add_schedules(plan);
    }
  }

  std::vector<program::Offload> offloads() const {
    using program::Storage;
    std::vector<program::Offload> all{given_.offload};
    if (!request_.offload) return all;
    const auto open = [&](const char* field, Storage program::Offload::*part) {
      if (fixed(field) || given_.offload.*part != Storage::kNone) return;
      for (std::size_t i = 0, count = all.size(); i < count; ++i) {
        all.push_back(all[i]);
        all.back().*part = Storage::kHost;
      }
    };
    open("offload.optimizer", &program::Offload::optimizer);
    open("offload.activations", &program::Offload::activations);
    return all;
  }

  void add_schedules(Plan plan) {
    for (const int count : virtual_stages_of(plan)) {
      plan.virtual_stages = count;
      if (!fixed("schedule")) plan.schedule = count > 1 ? Schedule::kInterleaved : Schedule::k1f1b;
      keep(plan);
    }
    plan.virtual_stages = 1;
    if (plan.pipeline == 1 || (fixed("virtual_stages") && given_.virtual_stages != 1)) return;
    for (const Schedule schedule : schedules_of(plan)) {
      plan.schedule = schedule;
      if (!fixed("schedule") && schedule == Schedule::kZeroBubble) keep(plan);
      if (fixed("stage_nodes")) continue;
      for (std::vector<int>& nodes : stages_on_groups(plan)) {
        Plan placed = plan;
        placed.stage_nodes = std::move(nodes);
        keep(placed);
      }
    }
  }

  void keep(const Plan& plan) {
    if (broken_by(request_.constraints, plan) == nullptr) {
      plans_.push_back(plan);
    } else {
      ++forbidden_;
    }
  }

  // Of stages with one chunk. Only our own runtime splits backwards, and only where gradients are kept whole.
  std::vector<Schedule> schedules_of(const Plan& plan) const {
    if (fixed("schedule") && given_.schedule == Schedule::kInterleaved) return {};
    if (fixed("schedule")) return {given_.schedule};
    if (given_.stack != "trivium" || plan.zero_stage > 1) return {Schedule::k1f1b};
    return {Schedule::k1f1b, Schedule::kZeroBubble};
  }

  // Whole stages on nodes of one kind: the groups in their order and in the opposite one, each taking as many stages as
  // it has devices for.
  std::vector<std::vector<int>> stages_on_groups(const Plan& plan) const {
    const auto& groups = request_.cluster.groups;
    const int count = static_cast<int>(groups.size());
    if (count == 1 || !plan.placement.ends_with("pipeline")) return {};
    std::vector<std::vector<int>> found;
    for (const bool backwards : {false, true}) {
      std::vector<int> nodes;
      for (int i = 0; i < count; ++i) {
        const int group = backwards ? count - 1 - i : i;
        const hardware::NodeGroup& held = groups[static_cast<std::size_t>(group)];
        const int room = held.count * held.node.devices / (plan.tensor * plan.context * plan.data);
        const int left = plan.pipeline - static_cast<int>(nodes.size());
        nodes.insert(nodes.end(), static_cast<std::size_t>(std::min(room, left)), group);
      }
      if (static_cast<int>(nodes.size()) < plan.pipeline) continue;
      Plan placed = plan;
      placed.stage_nodes = nodes;
      if (!simulator::misplaced(placed, request_.cluster)) found.push_back(std::move(nodes));
    }
    return found;
  }

  const SearchRequest& request_;
  const Plan& given_;
  std::vector<Plan> plans_;
  std::int64_t forbidden_ = 0;
};

}  // namespace

int ranks_of(const SearchRequest& request) { return request.ranks > 0 ? request.ranks : request.cluster.devices(); }

std::vector<Plan> enumerate(const SearchRequest& request, std::int64_t* forbidden) {
  Enumerator enumerator(request);
  std::vector<Plan> plans = enumerator.all();
  if (forbidden != nullptr) *forbidden = enumerator.forbidden();
  return plans;
}

bool leaves_layers_open(const Plan& plan) {
  return !plan.stage_nodes.empty() && plan.stage_layers.empty() && plan.virtual_stages == 1;
}

bool share_layers(const Plan& a, const Plan& b) {
  const auto opened = [](const Plan& p) {
    return std::tuple(p.tensor, p.context, p.context_method, p.pipeline, p.data, p.expert, p.micro_batch, p.recompute,
                      p.zero_stage, p.shard_group, p.sequence_parallel, p.stage_nodes,
                      program::splits_backward(p.schedule), p.offload.optimizer, p.offload.activations);
  };
  return opened(a) == opened(b);
}

std::string family_of(const Plan& plan) {
  std::string text = fmt::format("TP{}", plan.tensor);
  if (plan.context > 1) text += fmt::format(" CP{}", plan.context);
  text += fmt::format(" PP{} DP{}", plan.pipeline, plan.data);
  return plan.expert > 1 ? text + fmt::format(" EP{}", plan.expert) : text;
}

}  // namespace trivium::planner
