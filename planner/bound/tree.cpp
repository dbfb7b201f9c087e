#include "planner/bound/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "planner/bound/balance.h"
#include "planner/bound/evaluate.h"
#include "planner/bound/site_bounds.h"
#include "planner/bound/spread.h"
#include "program/schedules/schedule.h"
#include "simulator/placement/defaults.h"

namespace trivium::planner {
namespace {

using program::Infeasible;
using program::Plan;
using program::Recompute;
using simulator::CostEstimator;
using simulator::ScheduleCosts;

// Whatever the request's own plan recomputes where that is open: until a recompute choice says more, nothing, which
// goes with everything else. So do fused kernels, where a layout may have them.
SearchRequest with_relaxed_fields(SearchRequest request) {
  Plan& plan = request.job.plan;
  if (!request.fixed.contains("recompute") && plan.stage_recompute.empty()) {
    plan.recompute = Recompute::kNone;
    program::settle_recomputation(plan);
  }
  if (!request.fixed.contains("attention") && simulator::has_fused_attention(plan, request.cluster)) {
    plan.attention = program::Attention::kFlash;
  }
  return request;
}

// The state that adds nothing to the passes: of all states, the one with the least work alongside them.
Plan with_relaxed_sharding(Plan plan) {
  ShardingChoice plain;
  return with(std::move(plan), plain);
}

// Recompute choices whose bound is above that of their shape by no more than this part of it have their turn soon, as a
// rule.
constexpr std::int64_t kPartSoon = 16;

Node child_of(const Node& parent, Node::Level level, std::size_t index, std::int64_t bound_ps, std::int64_t plans,
              std::shared_ptr<const Branch> branch) {
  Node node;
  node.level = level;
  node.bound_ps = std::max(parent.bound_ps, bound_ps);
  node.path = parent.path;
  node.path[static_cast<std::size_t>(level)] = static_cast<std::int32_t>(index);
  node.plans = plans;
  node.branch = std::move(branch);
  return node;
}

// Why a split has no state: what the trainer's rules, or what is fixed, leave out.
Infeasible no_state(const SearchRequest& request, const Plan& split) {
  std::string why;
  constexpr int kStages = 4;
  for (int stage = 0; request.trainer != nullptr && stage < kStages; ++stage) {
    Plan plan = split;
    plan.zero_stage = stage;
    for (const TrainerRule& rule : request.trainer->rules) {
      const bool is_new = why.find(rule.says) == std::string::npos;
      if (std::string_view(rule.field) != "zero_stage" || rule.holds(plan, request.job) || !is_new) continue;
      why += fmt::format("{}{}", why.empty() ? fmt::format("; {}: ", request.trainer->trainer) : "; ", rule.says);
    }
  }
  if (request.trainer != nullptr && !request.trainer->gathers_mixtures && request.job.model.experts) {
    why += fmt::format("; {} refuses ZeRO 3 of mixtures", request.trainer->trainer);
  }
  return {"state-searched",
          fmt::format("no zero_stage that the search may take goes with the split{}{}", why,
                      split.offload.parameters != program::Storage::kNone ? "; offload.parameters needs 3" : "")};
}

template <class Value>
const Value& of(const std::vector<Value>& values, const Node& node) {
  return values[static_cast<std::size_t>(node.path[static_cast<std::size_t>(node.level)])];
}

}  // namespace

Plan relaxed(Plan plan) {
  plan.placement = Plan{}.placement;
  plan.sequence_parallel = plan.overlap.tensor = plan.overlap.expert = false;
  plan.overlap.gradient_reduction = plan.overlap.parameter_gather = false;
  plan.virtual_stages = 1;
  plan.schedule = program::usual_schedule(1);
  plan.recompute = Recompute::kNone;
  plan.stage_recompute.clear();
  program::settle_recomputation(plan);
  plan.stage_layers.clear();
  plan.stage_nodes.clear();
  plan.zero_stage = plan.fp8_parameter_gather == program::Fp8Gather::kOn ? 1 : 0;
  if (plan.offload.parameters != program::Storage::kNone) plan.zero_stage = 3;  // nothing else is allowed then
  plan.shard_group = 0;
  plan.offload.optimizer = plan.offload.activations = program::Storage::kNone;
  plan.compression = program::Compression::kNone;
  return plan;
}

Tree::Tree(const SearchRequest& request)
    : request_(with_relaxed_fields(request)),
      without_links_(request_.cluster),
      space_(request_),
      costs_(request.costs ? request.costs : std::make_shared<simulator::SharedCosts>()),
      shared_(*costs_) {
  without_links_.links.clear();
}

program::Job Tree::job_of(const Plan& plan) const { return {request_.job.model, request_.job.training, plan}; }

std::int64_t Tree::micro_batches(const Plan& plan) const {
  return program::micro_batches(plan, request_.job.training.global_batch);
}

std::vector<Node> Tree::roots() const {
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < space_.splits().size(); ++i) {
    nodes.push_back(child_of({}, Node::Level::kSplit, i, 0, space_.count(space_.splits()[i]), nullptr));
  }
  return nodes;
}

Expansion Tree::open(const Node& node) {
  switch (node.level) {
    case Node::Level::kSplit:
      return expand_split(node);
    case Node::Level::kPlacement:
      return expand_placement_choice(node);
    case Node::Level::kSchedule:
      return expand_schedule_choice(node);
    case Node::Level::kRecompute:
      return node.close ? expand_recompute_choice(node) : walk(node);
    case Node::Level::kSharding:
      break;
  }
  return settle(node);
}

Expansion Tree::expand_split(const Node& node) {
  const Plan& split = split_of(node);
  const Plan plain = relaxed(split);
  if (auto no = refusal(job_of(plain), request_.cluster, ranks_of(request_))) {
    return {{}, {{std::move(*no), split, node.plans}}};
  }
  auto branch = std::make_shared<Branch>();
  branch->plan = split;
  branch->layouts = space_.layouts(split);
  Expansion opened;
  const std::int64_t layers = (request_.job.model.layers + split.pipeline - 1) / split.pipeline;
  for (std::size_t i = 0; i < branch->layouts.size(); ++i) {
    const PlacementChoice& layout = branch->layouts[i];
    const std::int64_t plans = space_.count(split, layout);
    const Plan laid = with(plain, layout);
    Plan somewhere = laid;  // where stages go to other nodes later, so may tensor groups
    if (space_.places_tensor_groups_later()) somewhere.overlap.tensor = false;
    if (auto no = refusal(job_of(somewhere), request_.cluster, ranks_of(request_))) {
      opened.refused.push_back({std::move(*no), with(split, layout), plans});
      continue;
    }
    ScheduleChoice even;  // where backwards are whole there are the most states
    even.schedule = program::usual_schedule(1);
    const std::vector<ShardingChoice> states = space_.states(split, layout, even);
    if (states.empty()) {
      opened.refused.push_back({no_state(request_, split), with(split, layout), plans});
      continue;
    }
    if (!request_.ignore_memory && !state_may_fit(laid, states)) {
      opened.refused.push_back({{kMemoryRule, ""}, with(with(split, layout), states.back()), plans});
      continue;
    }
    // Whatever is recomputed, offloaded, delayed to a second half or reduced comes on top of this. Which stages lie at
    // which site is open: no link between sites holds a layer up here.
    Plan cheapest = laid;
    cheapest.overlap.expert = space_.may_overlap_expert(split);
    const std::int64_t layer = request_.cluster.links.empty()
                                   ? CostEstimator(job_of(cheapest), request_.cluster, &shared_).layer_ps()
                                   : CostEstimator(job_of(cheapest), without_links_).layer_ps();
    opened.nodes.push_back(
        child_of(node, Node::Level::kPlacement, i, micro_batches(split) * layers * layer, plans, branch));
  }
  return opened;
}

Expansion Tree::expand_placement_choice(const Node& node) {
  const Branch& above = *node.branch;
  const PlacementChoice& layout = of(above.layouts, node);
  auto branch = std::make_shared<Branch>();
  branch->plan = with(above.plan, layout);
  branch->shapes = space_.shapes(above.plan, layout);
  Expansion opened;
  for (std::size_t i = 0; i < branch->shapes.size(); ++i) {
    const ScheduleChoice& shape = branch->shapes[i];
    const std::int64_t plans = space_.count(above.plan, layout, shape);
    Plan plan = with(with(relaxed(above.plan), layout), shape);
    plan.stage_layers = above.plan.stage_layers;
    if (auto no = refusal(job_of(plan), request_.cluster, ranks_of(request_))) {
      opened.refused.push_back({std::move(*no), with(branch->plan, shape), plans});
      continue;
    }
    std::int64_t bound = 0;
    if (!shape.balanced) {
      CostEstimator estimator(job_of(plan), request_.cluster, &shared_);
      bound = simulator::lower_bound_ps(estimator.least_passes(plan));
    }
    bound = std::max(bound, least_reduction_ps(job_of(plan), request_.cluster));
    opened.nodes.push_back(child_of(node, Node::Level::kSchedule, i, bound, plans, branch));
  }
  return opened;
}

Expansion Tree::expand_schedule_choice(const Node& node) {
  const Branch& above = *node.branch;
  const ScheduleChoice& shape = of(above.shapes, node);
  const Plan& split = split_of(node);
  auto branch = std::make_shared<Branch>();
  branch->plan = with(above.plan, shape);
  branch->balanced = shape.balanced;
  branch->recompute_choices = space_.recompute_choices(split, shape);
  const PlacementChoice layout{branch->plan.placement, branch->plan.sequence_parallel, branch->plan.overlap.tensor,
                               branch->plan.attention};
  Plan plain = with(with(relaxed(branch->plan), layout), shape);
  plain.stage_layers = branch->plan.stage_layers;
  branch->states = space_.states(split, layout, shape);
  branch->plans_of_each = static_cast<std::int64_t>(branch->states.size());
  CostEstimator estimator(job_of(plain), request_.cluster, &shared_);
  Expansion opened;
  for (std::size_t i = 0; i < branch->recompute_choices.size(); ++i) {
    Plan plan = with(plain, branch->recompute_choices[i]);
    if (plan.stage_recompute.empty()) plan.stage_recompute = branch->plan.stage_recompute;
    if (auto no = refusal(job_of(plan), request_.cluster, ranks_of(request_))) {
      opened.refused.push_back(
          {std::move(*no), with(branch->plan, branch->recompute_choices[i]), branch->plans_of_each});
      continue;
    }
    const std::int64_t bound = shape.balanced
                                   ? balanced_bounds(plan, estimator, std::vector<std::vector<StageRoom>>(1)).front()
                                   : simulator::lower_bound_ps(estimator.passes(plan));
    // Of the others memory is looked at when their turn comes, if it does.
    const bool soon = bound - node.bound_ps <= node.bound_ps / kPartSoon;
    if (soon && !shape.balanced && !request_.ignore_memory && !first_stage_may_fit(*branch, plan, estimator)) {
      Plan example = with(with(branch->plan, branch->recompute_choices[i]), branch->states.front());
      opened.refused.push_back({{kMemoryRule, ""}, std::move(example), branch->plans_of_each});
      continue;
    }
    opened.nodes.push_back(child_of(node, Node::Level::kRecompute, i, bound, branch->plans_of_each, branch));
  }
  return opened;
}

// No distribution of the layers makes the slowest stage faster, and its work is not all: when stage s of p begins its
// first backward, a micro-batch has gone forward through all stages and backward through the stages after s, and s has
// done its warm-up of u_s forwards and one more; after its last backward that micro-batch goes through the stages
// before s. With f and b of the stages, and m micro-batches:
//   sum_j (f_j + b_j) + (m - 1 - u_s) f_s + (m - 1) b_s,
// where the sum is the least of any distribution too. Second halves w of a split backward come after the first begin:
//   sum_j f_j + (m - 1 - u_s) f_s + m (b_s + w_s).
// Here u_s is at least p - 1 - s, and equal to it where all forwards come first: then as many more forwards come before
// the first backward.
// After all passes, as the norm joins the stages, come the copies of offloaded state. Offloaded activations leave after
// every forward and come back, except for two layers' that are still resident: m (2 L_s - 2) copies of a layer.
std::vector<std::int64_t> Tree::balanced_bounds(const Plan& plan, CostEstimator& estimator,
                                                const std::vector<std::vector<StageRoom>>& rooms) const {
  const auto layers = static_cast<int>(request_.job.model.layers);
  const std::int64_t m = micro_batches(plan);
  const program::ScheduleTraits& schedule = program::traits_of(plan.schedule);
  const bool splits = schedule.splits_backward;
  std::vector<StageLoad> busy, behind, copying, exchanging;
  std::vector<std::int64_t> all_later;
  for (std::vector<StageLoad>* loads : {&busy, &behind, &copying, &exchanging}) {
    loads->reserve(static_cast<std::size_t>(plan.pipeline));
  }
  std::int64_t way = 0, least = kNever;  // of one micro-batch: with a layer on every stage; the fastest layer
  for (const auto& [forward, backward, weights, exchanges, copy_layer] : estimator.least_stage_passes(plan)) {
    copying.push_back({-2 * m * copy_layer, 2 * m * copy_layer, layers});
    exchanging.push_back({m * exchanges.ends, m * exchanges.layer, layers});
    const int stage = static_cast<int>(busy.size());
    std::int64_t warm_up = plan.pipeline - 1 - stage;
    if (schedule.has_steady_state()) warm_up = std::max(warm_up, schedule.warm_up({stage, plan.pipeline, 1}));
    const std::int64_t later = std::max<std::int64_t>(0, m - 1 - warm_up), first = splits ? 0 : 1;
    all_later.push_back(later);
    const auto load = [&](std::int64_t f, std::int64_t b, std::int64_t w) {
      return later * f + (m - first) * b + m * w;
    };
    busy.push_back({m * (forward.ends + backward.ends + weights.ends),
                    m * (forward.layer + backward.layer + weights.layer), layers});
    behind.push_back(
        {load(forward.ends, backward.ends, weights.ends), load(forward.layer, backward.layer, weights.layer), layers});
    const std::int64_t layer = forward.layer + first * backward.layer;
    way += forward.ends + first * backward.ends + layer;
    least = std::min(least, layer);
  }
  way += (layers - plan.pipeline) * least;
  const bool unlike = estimator.layer_kinds().size() > 1;
  const std::int64_t spread_ps =
      unlike ? spread_passes(estimator.passes_by_kind(plan), estimator.layer_kinds(), m, all_later, splits) : 0;
  std::vector<std::int64_t> bounds;
  for (const std::vector<StageRoom>& of_state : rooms) {
    const auto known = bounds.begin() + (std::find(rooms.begin(), rooms.end(), of_state) - rooms.begin());
    if (known != bounds.end()) {  // as an earlier state's
      bounds.push_back(*known);
      continue;
    }
    std::vector<StageLoad> all = busy, last = behind, away = copying, sent = exchanging;
    for (std::size_t s = 0; s < of_state.size(); ++s) {
      const StageLoad& copies = of_state[s].copies;
      for (StageLoad* load : {&all[s], &last[s], &away[s], &sent[s]}) {
        *load = {load->ends + copies.ends, load->layer + copies.layer, of_state[s].most};
      }
    }
    const std::int64_t slowest_behind = slowest(last, layers);
    bounds.push_back(slowest_behind == kNever ? kNever
                                              : std::max({slowest(all, layers), way + slowest_behind,
                                                          slowest(away, layers), slowest(sent, layers), spread_ps}));
  }
  return bounds;
}

// As planner::balanced will choose them.
std::vector<std::vector<int>> Tree::layers_of_states(const Plan& plan, CostEstimator& estimator,
                                                     const std::vector<std::vector<StageRoom>>& rooms) const {
  const auto layers = static_cast<int>(request_.job.model.layers);
  Plan one = plan;
  one.stage_layers.assign(static_cast<std::size_t>(plan.pipeline), 1);
  std::vector<StageLoad> loads;
  for (const auto& pass : estimator.stage_passes(one)) loads.push_back({pass.all().ends, pass.all().layer, layers});
  std::vector<std::vector<int>> found;
  for (const std::vector<StageRoom>& of_state : rooms) {
    const auto same = [&](const std::vector<StageRoom>& other) {
      return std::equal(other.begin(), other.end(), of_state.begin(),
                        [](const StageRoom& a, const StageRoom& b) { return a.most == b.most; });
    };
    const auto known = found.begin() + (std::find_if(rooms.begin(), rooms.end(), same) - rooms.begin());
    if (known != found.end()) {
      found.push_back(*known);
      continue;
    }
    for (std::size_t s = 0; s < loads.size(); ++s) loads[s].most = of_state[s].most;
    found.push_back(balance(loads, layers));
  }
  return found;
}

// On heterogeneous nodes layers are balanced by what fits there, which depends on the state.
bool Tree::layers_wait_for_state(const Branch& branch) const {
  return branch.balanced && !request_.cluster.homogeneous();
}

Expansion Tree::walk(const Node& node) {
  const Branch& branch = *node.branch;
  const Plan kept = with(branch.plan, of(branch.recompute_choices, node));
  auto walked = std::make_shared<PassTimes>();
  Plan& plan = walked->plan = with_relaxed_sharding(kept);
  CostEstimator estimator(job_of(plan), request_.cluster, &shared_);
  Expansion opened;
  Node closer = node;
  closer.close = true;
  walked->may_fit.assign(branch.states.size(), 1);
  const bool layers_wait = layers_wait_for_state(branch);
  if (layers_wait && !request_.ignore_memory) {
    const std::vector<std::vector<StageRoom>> room = rooms(branch, plan, estimator);
    walked->bounds_ps = balanced_bounds(plan, estimator, room);
    walked->layers = layers_of_states(plan, estimator, room);
    std::transform(walked->bounds_ps.begin(), walked->bounds_ps.end(), walked->may_fit.begin(),
                   [](std::int64_t ps) { return static_cast<char>(ps < kNever); });
    const auto least = std::min_element(walked->bounds_ps.begin(), walked->bounds_ps.end());
    if (least != walked->bounds_ps.end()) closer.bound_ps = std::max(closer.bound_ps, *least);
  }
  if (!layers_wait) {
    if (branch.balanced) {
      auto layered = balanced(estimator, plan, static_cast<int>(request_.job.model.layers), false);
      if (auto* no = std::get_if<Infeasible>(&layered)) return {{}, {{std::move(*no), kept, node.plans}}};
      plan = std::get<Plan>(std::move(layered));
    }
    if (!request_.ignore_memory) walked->may_fit = states_that_may_fit(branch, plan, estimator);
  }
  const auto full = std::find(walked->may_fit.begin(), walked->may_fit.end(), 0);
  if (full != walked->may_fit.end()) {
    Plan example = with(kept, branch.states[static_cast<std::size_t>(full - walked->may_fit.begin())]);
    example.stage_layers = plan.stage_layers;
    const auto plans = std::count(walked->may_fit.begin(), walked->may_fit.end(), 0);
    opened.refused.push_back({{kMemoryRule, ""}, std::move(example), plans});
    closer.plans -= plans;
    if (closer.plans == 0) return opened;
  }
  if (!layers_wait) {
    walked->passes = estimator.passes(plan);
    walked->ends = simulator::recurrence_ends(walked->passes);
    closer.bound_ps = std::max(closer.bound_ps, simulator::lower_bound_ps(walked->passes, walked->ends));
  }
  closer.walked = std::move(walked);
  opened.nodes.push_back(std::move(closer));
  return opened;
}

const ScheduleCosts& Tree::sharding_costs(const Branch& branch, std::size_t state) {
  const std::lock_guard lock(branch.mutex);
  branch.schedule_costs.resize(branch.states.size());
  if (!branch.schedule_costs[state]) {
    Plan plan = with(with_relaxed_sharding(branch.plan), branch.states[state]);
    plan.recompute = Recompute::kNone;  // no state depends on what passes recompute, and the request may say
    plan.stage_recompute.clear();       // what no plan below does
    program::settle_recomputation(plan);
    branch.schedule_costs[state] =
        std::make_unique<ScheduleCosts>(CostEstimator(job_of(plan), request_.cluster, &shared_).state(plan));
  }
  return *branch.schedule_costs[state];
}

Expansion Tree::expand_recompute_choice(const Node& node) {
  const Branch& above = *node.branch;
  const PassTimes& walked = *node.walked;
  auto branch = std::make_shared<Branch>();
  branch->plan = with(above.plan, of(above.recompute_choices, node));
  branch->balanced = layers_wait_for_state(above);
  if (!branch->balanced) branch->plan.stage_layers = walked.plan.stage_layers;
  branch->states = above.states;
  Expansion opened;
  for (std::size_t i = 0; i < branch->states.size(); ++i) {
    if (walked.may_fit[i] == 0) continue;
    std::int64_t bound = walked.bounds_ps.empty() ? 0 : walked.bounds_ps[i];
    if (!above.balanced) {
      bound = simulator::lower_bound_ps(sharding_costs(above, i), walked.ends);  // after the passes only the state's
    }
    opened.nodes.push_back(child_of(node, Node::Level::kSharding, i, bound, 1, branch));
  }
  return opened;
}

// A plan with its layers, what it needs, and its own passes walked.
Expansion Tree::settle(const Node& node) {
  Plan plan = with(node.branch->plan, of(node.branch->states, node));
  const auto refuse = [&](Infeasible why) { return Expansion{{}, {{std::move(why), plan, 1}}}; };
  if (auto no = refusal(job_of(plan), request_.cluster, ranks_of(request_))) return refuse(std::move(*no));
  CostEstimator estimator(job_of(plan), request_.cluster, &shared_);
  if (node.branch->balanced) {
    auto layered = balanced(estimator, plan, static_cast<int>(request_.job.model.layers), !request_.ignore_memory);
    if (auto* no = std::get_if<Infeasible>(&layered)) return refuse(std::move(*no));
    plan = std::get<Plan>(std::move(layered));
  }
  if (!request_.ignore_memory) {
    if (auto no = simulator::out_of_memory(estimator.memory(plan))) return refuse(std::move(*no));
  }
  const ScheduleCosts schedule_costs = estimator.schedule_costs(plan);
  Node closer = node;
  closer.close = true;
  closer.bound_ps =
      std::max(closer.bound_ps, simulator::lower_bound_ps(schedule_costs, simulator::recurrence_ends(schedule_costs)));
  closer.plan = std::make_shared<const Plan>(std::move(plan));
  return {{std::move(closer)}, {}};
}

}  // namespace trivium::planner
