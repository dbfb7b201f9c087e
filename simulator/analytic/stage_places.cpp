#include "simulator/analytic/stage_places.h"

#include <initializer_list>

#include "simulator/collectives/places.h"

namespace trivium::simulator {
namespace {

using program::Group;
using program::Mesh;

void append(std::vector<int>& place, const Mesh& mesh, const hardware::Cluster& cluster, int rank,
            std::initializer_list<Group> groups) {
  for (const Group group : groups) {
    for (const GroupPlacement& p : placements_of(mesh, cluster, group, rank)) {
      place.insert(place.end(), {p.ranks, p.nodes, p.ranks_per_node, p.sharing});
    }
    place.push_back(-1);
  }
}

}  // namespace

int StagePlaces::number_of(std::vector<int> place) {
  const std::lock_guard lock(mutex_);
  return numbers_.try_emplace(std::move(place), static_cast<int>(numbers_.size())).first->second;
}

StagePlace StagePlaces::place_of(const Mesh& mesh, int stage, const hardware::Cluster& placed) {
  const int rank = mesh.rank({0, 0, 0, stage});
  const int devices = std::min(placed.groups.front().node.devices, mesh.size());
  std::vector<int> passes{0, devices}, state{1, devices}, transfers{2}, dense{6, devices};
  append(passes, mesh, placed, rank, {Group::kTensor, Group::kContext, Group::kExpert});
  append(dense, mesh, placed, rank, {Group::kTensor, Group::kContext});
  if (mesh.context_heads() > 1) {
    for (std::vector<int>* place : {&passes, &dense}) {
      append(*place, mesh, placed, rank, {Group::kContextHeads, Group::kContextRing});
    }
  }
  if (mesh.expert_tensor() > 1 && mesh.expert_tensor() < mesh.tensor()) {
    for (std::vector<int>* place : {&passes, &state}) append(*place, mesh, placed, rank, {Group::kExpertTensor});
  }
  append(state, mesh, placed, rank,
         {Group::kTensor, Group::kData, Group::kShard, Group::kReplica, Group::kExpertData, Group::kEmbedding,
          Group::kModel, Group::kWorld});
  for (const int other : {(stage + 1) % mesh.pipeline(), (stage + mesh.pipeline() - 1) % mesh.pipeline()}) {
    const TransferPlacement t = transfer_placement(mesh, placed, rank, other);
    transfers.insert(transfers.end(), {t.same_node ? 1 : 0, t.sharing});
  }
  transfers.push_back(stages_on_other_nodes(mesh, placed) ? 1 : 0);
  return {number_of(std::move(passes)), number_of(std::move(state)), number_of(std::move(transfers)),
          number_of(std::move(dense))};
}

// Where nodes differ, every split is for itself. Stages that fill nodes of one group lie alike, but for the first and
// the last and for neighbours on other nodes; their passes are those of every split with the same groups in a node.
// Passes of stages that share nodes, but all of one kind, depend on where in a node they begin.
std::vector<StagePlace> StagePlaces::on_unlike_nodes(const program::Plan& plan, const hardware::Cluster& placed) {
  std::vector<int> split{plan.tensor,      plan.context, plan.pipeline,      plan.data,
                         plan.shard_group, plan.expert,  plan.expert_tensor, plan.context_heads};
  for (const char letter : plan.placement) split.push_back(letter);
  split.insert(split.end(), plan.stage_nodes.begin(), plan.stage_nodes.end());
  const int ranks = plan.ranks() / plan.pipeline;
  const auto group_at = [&](int device) {  // and whether a node begins there
    int group = 0;
    for (const hardware::NodeGroup& held : placed.groups) {
      const int devices = held.count * held.node.devices;
      if (device < devices) return std::pair(group, device % held.node.devices == 0);
      device -= devices;
      ++group;
    }
    return std::pair(group, true);
  };
  const auto place_in_group = [&](int device) {  // and of which group
    int group = 0;
    for (const hardware::NodeGroup& held : placed.groups) {
      const int devices = held.count * held.node.devices;
      if (device < devices) return std::pair(group, device % held.node.devices);
      device -= devices;
      ++group;
    }
    return std::pair(group, 0);
  };
  std::vector<int> filled;  // by stage: the group whose nodes it fills; -1: it does not
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const auto [first, begins] = group_at(stage * ranks);
    const auto [after, ends] = group_at((stage + 1) * ranks);
    const bool alone = group_at((stage + 1) * ranks - 1).first == first;
    const bool whole = plan.placement.ends_with("pipeline") && begins && (ends || after != first) && alone;
    filled.push_back(whole ? first : -1);
  }
  std::vector<StagePlace> places;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const int here = filled[static_cast<std::size_t>(stage)];
    const int before = filled[static_cast<std::size_t>((stage + plan.pipeline - 1) % plan.pipeline)];
    const int after = filled[static_cast<std::size_t>((stage + 1) % plan.pipeline)];
    std::vector<int> place{3, here, before, after, before < 0 || here < 0 || after < 0 ? stage : -1};
    if (stage == 0 || stage + 1 == plan.pipeline) place.push_back(stage);
    place.insert(place.end(), split.begin(), split.end());
    const int number = number_of(std::move(place));
    const auto [held_by, offset] = place_in_group(stage * ranks);
    const bool alone = place_in_group((stage + 1) * ranks - 1).first == held_by;
    if (plan.placement != program::Plan{}.placement || !alone) {
      places.push_back({number, number, number, number});
      continue;
    }
    const hardware::Node& node = placed.groups[static_cast<std::size_t>(held_by)].node;
    const bool apart = here < 0;  // its groups lie as those of any stage that begins at the same place of such a node
    const int block = plan.tensor * plan.context * program::expert_replicas(plan);
    const bool tiles = node.devices % block == 0 || block % node.devices == 0;
    std::vector<int> passes{apart ? 5 : 4,
                            plan.tensor,
                            plan.context,
                            plan.context_heads,
                            plan.expert,
                            plan.expert_tensor,
                            std::min(node.devices, plan.ranks()),
                            apart ? plan.data : 0,
                            apart ? offset : (tiles ? 0 : ranks)};
    passes.insert(passes.end(), node.name.begin(), node.name.end());
    const int of_passes = number_of(std::move(passes));
    places.push_back({of_passes, number, number, of_passes});
  }
  return places;
}

std::vector<StagePlace> StagePlaces::work_out(const program::Plan& plan, const hardware::Cluster& placed) {
  const Mesh mesh(plan);
  const auto stages = static_cast<std::size_t>(plan.pipeline);
  std::vector<StagePlace> places(stages);
  if (!placed.homogeneous()) return on_unlike_nodes(plan, placed);
  // Stages that begin at the same place of a node lie alike; the first and the last have other neighbours, and the last
  // node may be filled in part.
  const int devices = placed.groups.front().node.devices;
  const bool fills = mesh.size() % devices == 0;
  std::map<int, StagePlace> by_start;
  for (std::size_t s = 0; s < stages; ++s) {
    const int stage = static_cast<int>(s), start = mesh.rank({0, 0, 0, stage}) % devices;
    const bool alone = !fills || s == 0 || s + 1 == stages;
    if (alone) {
      places[s] = place_of(mesh, stage, placed);
      continue;
    }
    const auto [at, fresh] = by_start.try_emplace(start);
    if (fresh) at->second = place_of(mesh, stage, placed);
    places[s] = at->second;
  }
  return places;
}

std::shared_ptr<const std::vector<StagePlace>> StagePlaces::of(const program::Plan& plan,
                                                               const hardware::Cluster& placed) {
  Key key{plan.tensor,        plan.context,     plan.pipeline,  plan.data,        plan.expert,
          plan.expert_tensor, plan.shard_group, plan.placement, plan.stage_nodes, plan.context_heads};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  auto fresh = std::make_shared<const std::vector<StagePlace>>(work_out(plan, placed));
  const std::lock_guard lock(mutex_);
  return known_.try_emplace(std::move(key), std::move(fresh)).first->second;
}

}  // namespace trivium::simulator
