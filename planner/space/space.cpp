#include "planner/space/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "planner/space/disks.h"
#include "planner/space/divisors.h"
#include "planner/space/placements.h"
#include "program/plan/stack.h"
#include "simulator/placement/defaults.h"
#include "simulator/placement/peer_buffers.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::planner {
namespace {

using program::Attention;
using program::Compression;
using program::ContextMethod;
using program::Plan;
using program::Schedule;
using program::Storage;

// Layers by chunk are settled where a plan is whole; before, no bound can be held against them.
bool is_balanced_later(std::string_view field) { return field == "stage_layers"; }

// Whether a constraint is about this field, or a group that it is a member of.
bool concerns(const Constraint& constraint, const std::string& field) {
  return constraint.field == field || field.starts_with(constraint.field + ".");
}

}  // namespace

int ranks_of(const SearchRequest& request) { return request.ranks > 0 ? request.ranks : request.cluster.devices(); }

Space::Space(const SearchRequest& request)
    : request_(request),
      given_(request.job.plan),
      opens_disks_(opens_disks(request)),
      opens_modules_(std::ranges::none_of(request.constraints, [](const Constraint& constraint) {
        return constraint.field == "recompute_modules" && constraint.value.empty();
      })) {
  if (request.fixed.contains("schedule") && request.fixed.contains("zero_stage") && given_.zero_stage > 1 &&
      program::traits_of(given_.schedule).splits_backward) {
    throw base::Failure(base::ErrorKind::kUsage,
                        "searches have no split backward with ZeRO 2 or 3: fix one of schedule and zero_stage; "
                        "trivium simulate simulates both");
  }
  // A constraint on a group is split over the levels that decide its members.
  bounds_.resize(kLevels);
  for (const Constraint& constraint : request.constraints) {
    bool placed = false;
    for (const SearchedField& field : searched_fields()) {
      const bool decided_below = field.never == nullptr && field.level != Level::kSplit;
      if (!decided_below || is_balanced_later(field.name) || !concerns(constraint, field.name)) continue;
      Constraint part = constraint;
      part.field = field.name;
      bounds_[static_cast<std::size_t>(field.level)].add(part);
      placed = true;
    }
    if (!placed) bounds_.front().add(constraint);
  }
  if (request.trainer != nullptr) add_rules(*request.trainer);
  add_all_splits();
}

// Layers by chunk and what replicas of different sizes take are settled later, by others.
void Space::add_rules(const TrainerSpace& trainer) {
  for (const TrainerRule& rule : trainer.rules) {
    if (is_balanced_later(rule.field)) continue;
    bounds_[static_cast<std::size_t>(searched(rule.field).level)].add(rule, request_.job);
  }
}

std::vector<std::string> Space::placements(const Plan& split) const {
  if (fixed("placement") || !request_.cluster.homogeneous()) return {given_.placement};
  return placements_of(split);
}

// Whether plans that seat their ranks alike take the same time.
bool Space::seats_decide() const {
  return request_.cluster.homogeneous() && request_.cluster.links.empty() && !request_.simulated_as;
}

std::vector<Attention> Space::attentions(const Plan& split) const {
  if (fixed("attention")) return {given_.attention};
  if (!simulator::has_fused_attention(split, request_.cluster)) {
    // Cores can do both, though their profile prefers one; a trainer may have the other alone.
    const bool either = request_.trainer != nullptr && simulator::all_devices_are_cores(request_.cluster);
    return either ? std::vector{Attention::kFlash, Attention::kUnfused} : std::vector{given_.attention};
  }
  if (split.context > 1 && split.context_method == ContextMethod::kRing) return {Attention::kFlash};
  return {Attention::kFlash, Attention::kUnfused};
}

bool Space::places_tensor_groups_later() const { return !request_.cluster.homogeneous() && !fixed("stage_nodes"); }

// Where stages may still be put on other nodes, what is out is what some node cannot do and all nodes must.
bool Space::may_overlap_tensor(const Plan& placed) const {
  if (!program::find_stack(placed.stack)->peer_buffers || placed.tensor == 1) return true;
  if (!places_tensor_groups_later()) return !simulator::without_peer_buffers(placed, request_.cluster);
  const bool takes_all = ranks_of(request_) == request_.cluster.devices();
  return !takes_all || !simulator::some_lack_peer_buffers(placed, request_.cluster);
}

std::vector<PlacementChoice> Space::layouts(const Plan& split) const {
  std::vector<bool> sequence{false}, overlap{false};
  if (split.tensor > 1) sequence = overlap = {false, true};
  if (fixed("sequence_parallel")) sequence = {given_.sequence_parallel};
  if (fixed("overlap.tensor") || !has_lanes()) overlap = {given_.overlap.tensor};
  std::vector<PlacementChoice> found;
  std::set<Seating> seen;
  Plan placed = split;
  for (const std::string& placement : placements(split)) {
    const std::size_t before = found.size();
    if (seats_decide() && seen.contains(seating_of(split, placement, request_.cluster))) continue;
    placed.placement = placement;
    const bool may_overlap = fixed("overlap.tensor") || may_overlap_tensor(placed);
    for (const bool parallel : sequence) {
      for (const bool beside : overlap) {
        if (beside && !may_overlap) continue;
        for (const Attention attention : attentions(split)) {
          const PlacementChoice layout{placement, parallel, beside, attention};
          if (of(Level::kPlacement).none() || allows(Level::kPlacement, with(split, layout))) found.push_back(layout);
        }
      }
    }
    if (seats_decide() && found.size() > before) seen.insert(seating_of(split, placement, request_.cluster));
  }
  return found;
}

// With their counts of virtual stages. Single chunks come first.
std::vector<std::pair<Schedule, int>> Space::schedules_of(const Plan& split) const {
  const bool open = !fixed("schedule"), counted = fixed("virtual_stages");
  if (!open && !program::traits_of(given_.schedule).virtual_stages) {
    return {{given_.schedule, counted ? given_.virtual_stages : 1}};
  }
  const auto all = program::schedule_table();
  const bool may_be_single = open && (!counted || given_.virtual_stages == 1);
  const bool splits = program::find_stack(given_.stack)->splits_backward;
  const bool may_split = splits && (counted || !request_.job.model.experts);
  std::vector<std::pair<Schedule, int>> found;
  for (const program::ScheduleTraits& traits : all) {
    if (!may_be_single || !traits.searched || traits.virtual_stages) continue;
    const bool usual = traits.schedule == program::usual_schedule(1);
    const bool worthwhile = split.pipeline > 1 && (may_split || !traits.splits_backward);
    if (usual || worthwhile) found.emplace_back(traits.schedule, 1);
  }
  const std::int64_t layers = request_.job.model.layers;
  for (const program::ScheduleTraits& traits : all) {
    const bool tried = open ? traits.searched : traits.schedule == given_.schedule;
    if (!tried || !traits.virtual_stages) continue;
    if (counted) {
      const bool may_be = traits.chunks == 0 || !open || traits.takes(given_.virtual_stages);
      if (!may_be_single && may_be) found.emplace_back(traits.schedule, given_.virtual_stages);
    } else if (traits.chunks > 0) {
      if (split.pipeline > 1 && (!open || layers % (split.pipeline * traits.chunks) == 0)) {
        found.emplace_back(traits.schedule, traits.chunks);
      }
    } else if (split.pipeline > 1 && layers % split.pipeline == 0) {
      for (const int count : divisors(layers / split.pipeline, layers)) {
        if (count > 1) found.emplace_back(traits.schedule, count);
      }
    }
  }
  if (found.empty()) found.emplace_back(given_.schedule, given_.virtual_stages);
  return found;
}

bool Space::may_overlap_expert(const Plan& split) const {
  if (fixed("overlap.expert") || !has_lanes()) return given_.overlap.expert;
  Plan pairs = split;
  pairs.overlap.expert = true;
  // Which of two constraints forbids it is all the same; others are about fields that shapes set.
  return split.expert > 1 && std::ranges::none_of(request_.constraints, [&](const Constraint& constraint) {
           return constraint.field == "overlap.expert" && !constraint.allows(pairs);
         });
}

// Single chunks only without a pipeline. Layers that cannot be cut evenly are as even as they can be: a stage's chunks
// hold one layer more or less than those of another.
std::vector<std::pair<Schedule, int>> Space::schedules_of_pairs(const Plan& split) const {
  std::vector<std::pair<Schedule, int>> found = schedules_of(split);
  const bool in_v = program::find_stack(given_.stack)->pairs_in_v;
  std::erase_if(found, [&](const auto& one) {
    const bool usual = one.first == program::usual_schedule(one.second);
    const bool searched = usual ? !in_v || fixed("schedule") || split.pipeline == 1 : fixed("schedule");
    return !searched || !program::traits_of(one.first).pairs || (one.second == 1) != (split.pipeline == 1);
  });
  const std::int64_t layers = request_.job.model.layers;
  const program::ScheduleTraits& v = program::paired_in_v();
  const bool may_be_v = in_v && !fixed("schedule") && split.pipeline > 1 && v.chunks * split.pipeline <= layers;
  if (may_be_v && (!fixed("virtual_stages") || given_.virtual_stages == v.chunks)) {
    found.emplace_back(v.schedule, v.chunks);
  }
  if (in_v && !fixed("schedule")) return found;
  const bool open = !fixed("schedule") || given_.schedule == program::usual_schedule(2);
  if (!open || fixed("virtual_stages") || !may_be_uneven() || layers % split.pipeline == 0) return found;
  for (const int count : {2, 3, 4, 6, 8}) {
    if (count * split.pipeline <= layers) found.emplace_back(program::usual_schedule(count), count);
  }
  return found;
}

std::vector<ScheduleChoice> Space::shapes(const Plan& split, const PlacementChoice& layout) const {
  std::vector<std::pair<Schedule, int>> schedules = schedules_of(split);
  if (fixed("overlap.expert") && given_.overlap.expert) {
    if (auto of_pairs = schedules_of_pairs(split); !of_pairs.empty()) schedules = std::move(of_pairs);
  }
  const std::int64_t layers = request_.job.model.layers;
  std::vector<Storage> activations{given_.offload.activations};
  if (!fixed("offload.activations") && has_lanes()) activations = {Storage::kNone, Storage::kHost};
  std::vector<ScheduleChoice> found;
  const Plan placed = with(split, layout);
  const auto add = [&](ScheduleChoice shape) {
    if (fixed("overlap.expert")) shape.overlap_expert = given_.overlap.expert;
    if (shape.activations != Storage::kNone && program::traits_of(shape.schedule).splits_backward) return;
    const bool is_even = !given_.stage_layers.empty() || layers % (split.pipeline * shape.virtual_stages) == 0;
    if (!is_even && !may_be_uneven()) return;
    if (of(Level::kSchedule).none() || allows(Level::kSchedule, with(placed, shape))) found.push_back(shape);
  };
  const bool open_layers = !fixed("stage_layers"), open_nodes = !fixed("stage_nodes");
  for (const Storage storage : activations) {
    for (const auto& [schedule, count] : schedules) {
      add({schedule, count, false, given_.stage_nodes, storage});
      const bool may_balance = open_layers && count == 1 && split.pipeline > 1 && may_be_uneven();
      if (may_balance && request_.cluster.homogeneous() && layers > split.pipeline) {
        add({schedule, count, true, given_.stage_nodes, storage});
      }
      if (!may_balance || !open_nodes) continue;
      for (std::vector<int>& nodes : stages_on_groups(placed)) add({schedule, count, true, std::move(nodes), storage});
    }
  }
  if (fixed("overlap.expert") || !may_overlap_expert(split)) return found;
  for (const auto& [schedule, count] : schedules_of_pairs(split)) {
    add({schedule, count, false, given_.stage_nodes, Storage::kNone, true});
  }
  return found;
}

std::vector<ShardingChoice> Space::states(const Plan& split, const PlacementChoice& layout,
                                          const ScheduleChoice& shape) const {
  const bool lanes = has_lanes(), alone = split.data * split.context == 1;
  std::vector<int> zero{0};
  if (split.data > 1) zero = {0, 1, 2, 3};
  const bool splits = program::traits_of(shape.schedule).splits_backward;
  if (given_.offload.parameters != Storage::kNone) zero = {3};  // nothing else is allowed
  if (splits || shape.overlap_expert) std::erase_if(zero, [](int stage) { return stage > 1; });
  if (split.fp8_parameter_gather == program::Fp8Gather::kOn) {
    std::erase_if(zero, [](int stage) { return stage == 0 || stage == 3; });
  }
  if (fixed("zero_stage")) zero = {given_.zero_stage};
  const TrainerSpace* trainer = request_.trainer;
  if (trainer != nullptr && !trainer->gathers_mixtures && request_.job.model.experts) std::erase(zero, 3);
  // The bounds do not know that split backwards reduce sharded gradients twice.
  if (splits) std::erase_if(zero, [](int stage) { return stage > 1; });
  // A trainer may leave no choice but to overlap, which cores without lanes run in turn.
  const auto either = [&](const char* field, bool open, bool given) {
    if (fixed(field) || (!lanes && request_.trainer == nullptr)) return std::vector<bool>{given};
    return open ? std::vector<bool>{false, true} : std::vector<bool>{false};
  };
  std::vector<Storage> away{given_.offload.optimizer};
  if (!fixed("offload.optimizer") && lanes) away = {Storage::kNone, Storage::kHost};
  if (opens_disks_) away.push_back(Storage::kDisk);
  std::vector<ShardingChoice> found;
  Plan tried = split;
  for (const int stage : zero) {
    std::vector<int> groups{fixed("shard_group") || stage > 0 ? given_.shard_group : 0};
    if (stage == 3 && !fixed("shard_group") && split.expert == 1) {  // spread experts have no hybrid sharding
      if (const int group = replicas_on_a_node(split, layout); group > 0) groups.push_back(group);
    }
    std::vector<Compression> compressions{given_.compression};
    const bool may_compress = stage == 0 && !alone && given_.compression == Compression::kNone;
    if (!fixed("compression") && may_compress) compressions.push_back(Compression::kFp16);
    for (const int group : groups) {
      for (const Compression compression : compressions) {
        for (const Storage optimizer : away) {
          for (const bool reduces : either("overlap.gradient_reduction", !alone, given_.overlap.gradient_reduction)) {
            for (const bool gathers : either("overlap.parameter_gather", stage > 0, given_.overlap.parameter_gather)) {
              const ShardingChoice state{stage, group, reduces, gathers, optimizer, compression};
              tried = with(std::move(tried), state);
              if (allows(Level::kSharding, tried)) found.push_back(state);
            }
          }
        }
      }
    }
  }
  return found;
}

// ZeRO-3 whose gathers stay inside nodes: the replicas of a stage that share one, where that is fewer than all; 0:
// none.
int Space::replicas_on_a_node(const Plan& split, const PlacementChoice& layout) const {
  if (!layout.placement.starts_with("tensor-context-data")) return 0;
  const auto& groups = request_.cluster.groups;
  int devices = groups.front().node.devices;
  for (const hardware::NodeGroup& group : groups) devices = std::gcd(devices, group.node.devices);
  const int replicas = devices / (split.tensor * split.context);
  const bool tiles = replicas > 1 && replicas < split.data && split.data % replicas == 0;
  return tiles && devices % (split.tensor * split.context) == 0 ? replicas : 0;
}

bool Space::may_be_uneven() const {
  const auto is_even = [](const TrainerRule& rule) { return is_balanced_later(rule.field); };
  return request_.trainer == nullptr || std::ranges::none_of(request_.trainer->rules, is_even);
}

bool Space::has_lanes() const {
  return std::ranges::all_of(request_.cluster.groups,
                             [](const hardware::NodeGroup& group) { return group.node.asynchronous_lanes; });
}

// Whole stages on nodes of one kind: the groups in their order and in the opposite one, each taking as many stages as
// it has devices for.
std::vector<std::vector<int>> Space::stages_on_groups(const Plan& placed) const {
  const auto& groups = request_.cluster.groups;
  const int count = static_cast<int>(groups.size());
  if (count == 1 || !placed.placement.ends_with("pipeline")) return {};
  std::vector<std::vector<int>> found;
  for (const bool backwards : {false, true}) {
    std::vector<int> nodes;
    for (int i = 0; i < count; ++i) {
      const int group = backwards ? count - 1 - i : i;
      const hardware::NodeGroup& held = groups[static_cast<std::size_t>(group)];
      const int room = held.count * held.node.devices / (placed.tensor * placed.context * placed.data);
      const int left = placed.pipeline - static_cast<int>(nodes.size());
      nodes.insert(nodes.end(), static_cast<std::size_t>(std::min(room, left)), group);
    }
    if (static_cast<int>(nodes.size()) < placed.pipeline) continue;
    Plan there = placed;
    there.stage_nodes = nodes;
    if (!simulator::misplaced(there, request_.cluster)) found.push_back(std::move(nodes));
  }
  return found;
}

// Of a shape's fields it matters alone whether the schedule splits the backward and whether passes run in pairs.
std::int64_t Space::count_sharding_choices(const Plan& split, const PlacementChoice& layout,
                                           const ScheduleChoice& shape) const {
  const std::tuple key(split.tensor, split.context, split.pipeline, split.data, split.expert,
                       program::traits_of(shape.schedule).splits_backward, shape.overlap_expert, layout.placement);
  const std::lock_guard lock(mutex_);
  const auto [known, fresh] = sharding_choices_known_.try_emplace(key);
  if (fresh) known->second = static_cast<std::int64_t>(states(split, layout, shape).size());
  return known->second;
}

std::int64_t Space::count(const Plan& split, const PlacementChoice& layout, const ScheduleChoice& shape) const {
  return count_recompute_choices(split, shape) * count_sharding_choices(split, layout, shape);
}

// The other fields of a split and a layout change nothing below.
std::int64_t Space::count(const Plan& split, const PlacementChoice& layout) const {
  const std::tuple key(split.tensor, split.context, split.pipeline, split.data, split.expert, split.micro_batch,
                       layout.placement);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = placement_choices_known_.find(key); known != placement_choices_known_.end())
      return known->second;
  }
  std::int64_t plans = 0;
  for (const ScheduleChoice& shape : shapes(split, layout)) plans += count(split, layout, shape);
  const std::lock_guard lock(mutex_);
  return placement_choices_known_.try_emplace(key, plans).first->second;
}

std::int64_t Space::count(const Plan& split) const {
  std::int64_t plans = 0;
  for (const PlacementChoice& layout : layouts(split)) plans += count(split, layout);
  return plans;
}

std::int64_t Space::count() const {
  std::int64_t plans = 0;
  for (const Plan& split : splits_) plans += count(split);
  return plans;
}

Plan with(Plan plan, const PlacementChoice& layout) {
  plan.placement = layout.placement;
  plan.sequence_parallel = layout.sequence_parallel;
  plan.overlap.tensor = layout.overlap_tensor;
  plan.attention = layout.attention;
  return plan;
}

Plan with(Plan plan, const ScheduleChoice& shape) {
  plan.schedule = shape.schedule;
  plan.virtual_stages = shape.virtual_stages;
  plan.stage_nodes = shape.stage_nodes;
  plan.offload.activations = shape.activations;
  plan.overlap.expert = shape.overlap_expert;
  return plan;
}

Plan with(Plan plan, const RecomputeChoice& recompute_choice) {
  plan.recompute = recompute_choice.recompute;
  plan.recompute_modules = recompute_choice.modules;
  if (recompute_choice.more > 0) {
    plan.stage_recompute.assign(static_cast<std::size_t>(plan.chunks()), recompute_choice.recompute);
    std::fill_n(plan.stage_recompute.begin(), recompute_choice.more, recompute_choice.of_more);
  }
  if (!recomputes(plan, Recompute::kFull)) settle_full_recomputation(plan);
  return plan;
}

Plan with(Plan plan, const ShardingChoice& state) {
  plan.zero_stage = state.zero_stage;
  plan.shard_group = state.shard_group;
  plan.overlap.gradient_reduction = state.gradient_reduction;
  plan.overlap.parameter_gather = state.parameter_gather;
  plan.offload.optimizer = state.optimizer;
  plan.compression = state.compression;
  return plan;
}

std::vector<Member> enumerate(const SearchRequest& request) {
  const Space space(request);
  std::vector<Member> members;
  for (const Plan& split : space.splits()) {
    for (const PlacementChoice& layout : space.layouts(split)) {
      for (const ScheduleChoice& shape : space.shapes(split, layout)) {
        const Plan shaped = with(with(split, layout), shape);
        const std::vector<ShardingChoice> states = space.states(split, layout, shape);
        for (const RecomputeChoice& recompute_choice : space.recompute_choices(split, shape)) {
          const Plan kept = with(shaped, recompute_choice);
          for (const ShardingChoice& state : states) members.push_back({with(kept, state), shape.balanced});
        }
      }
    }
  }
  return members;
}

std::int64_t count_forbidden(const SearchRequest& request) {
  if (request.constraints.empty()) return 0;
  SearchRequest open = request;
  open.constraints.clear();
  return Space(open).count() - Space(request).count();
}

std::string family_of(const Plan& plan) {
  std::string text = fmt::format("TP{}", plan.tensor);
  if (plan.context > 1) text += fmt::format(" CP{}", plan.context);
  text += fmt::format(" PP{} DP{}", plan.pipeline, plan.data);
  if (plan.expert > 1) text += fmt::format(" EP{}", plan.expert);
  return program::folds_experts(plan) ? text + fmt::format(" ETP{}", plan.expert_tensor) : text;
}

}  // namespace trivium::planner
