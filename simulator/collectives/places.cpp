#include "simulator/collectives/places.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/collectives/site_links.h"

namespace trivium::simulator {
namespace {

using program::Coordinates;
using program::Group;
using program::Mesh;

/// Ranks `stride` apart, `extent` of them.
struct Line {
  int extent = 1, stride = 0;
};

/// A group as an outer sum of lines, and the lines along which its like lie in the same stage.
struct Shape {
  std::vector<Line> own, others;
  bool joins_stages = false;
};

Shape shape_of(const Mesh& mesh, Group group) {
  const Line tensor{mesh.tensor(), mesh.rank({1, 0, 0, 0})}, context{mesh.context(), mesh.rank({0, 1, 0, 0})};
  const Line data{mesh.data(), mesh.rank({0, 0, 1, 0})}, pipeline{mesh.pipeline(), mesh.rank({0, 0, 0, 1})};
  const Line heads{mesh.context_heads(), context.stride};
  const Line ring{mesh.context() / heads.extent, context.stride * heads.extent};
  const int keys = mesh.key_ranks();
  const int shard = mesh.group_size(Group::kShard) / mesh.context(), expert = mesh.expert_replicas();
  const Line splitting{mesh.expert_tensor(), tensor.stride};
  const Line apart{mesh.tensor() / splitting.extent, tensor.stride * splitting.extent};
  const auto inner = [&](int size) { return Line{size, data.stride}; };
  const auto outer = [&](int size) { return Line{mesh.data() / size, data.stride * size}; };
  switch (group) {
    case Group::kNone:
      return {{}, {tensor, context, data}};
    case Group::kTensor:
      return {{tensor}, {context, data}};
    case Group::kKeys:
      return {{{keys, tensor.stride}}, {{mesh.tensor() / keys, tensor.stride * keys}, context, data}};
    case Group::kContext:
      return {{context}, {tensor, data}};
    case Group::kContextHeads:
      return {{heads}, {tensor, ring, data}};
    case Group::kContextRing:
      return {{ring}, {tensor, heads, data}};
    case Group::kData:
      return {{context, data}, {tensor}};
    case Group::kShard:
      return {{context, inner(shard)}, {tensor, outer(shard)}};
    case Group::kReplica:
      return {{outer(shard)}, {tensor, context, inner(shard)}};
    case Group::kExpert:
      return {{apart, inner(expert)}, {splitting, context, outer(expert)}};
    case Group::kExpertTensor:
      return {{splitting}, {apart, context, data}};
    case Group::kExpertData:
      return {{context, outer(expert)}, {tensor, inner(expert)}};
    case Group::kPipeline:
      return {{pipeline}, {tensor, context, data}, true};
    case Group::kEmbedding:
      return {{{std::min(2, pipeline.extent), pipeline.stride * (pipeline.extent - 1)}}, {tensor, context, data}, true};
    case Group::kModel:  // one look: that of the first rank
      return {{tensor, pipeline, inner(expert)}, {}, true};
    case Group::kWorld:
      return {{tensor, context, data, pipeline}, {}, true};
  }
  return {};
}

/// Which of the `devices` places of a node ranks take that are sums of a start and the lines.
std::vector<bool> places_taken(int start, const std::vector<Line>& lines, int devices) {
  std::vector<bool> taken(static_cast<std::size_t>(devices), false);
  taken[static_cast<std::size_t>(start % devices)] = true;
  for (const Line& line : lines) {
    std::vector<bool> more = taken;
    for (int i = 1; i < std::min(line.extent, devices); ++i) {  // beyond, places repeat
      for (std::size_t at = 0; at < taken.size(); ++at) {
        const auto moved = (at + static_cast<std::size_t>(i) * static_cast<std::size_t>(line.stride)) % taken.size();
        if (taken[at]) more[moved] = true;
      }
    }
    taken = std::move(more);
  }
  return taken;
}

int share_of_adapters(const GroupPlacement& group, int node_devices, int ranks) {
  return group.nodes > 1 ? std::max(1, std::min(node_devices, ranks) / group.ranks_per_node) : 1;
}

// A group that begins at a place of a node.
GroupPlacement placed_at(int place, const std::vector<Line>& own, int devices, int ranks) {
  int extent = 1;
  for (const Line& line : own) extent *= line.extent;
  if (extent == ranks) return {ranks, (ranks + devices - 1) / devices, std::min(devices, ranks), 1};  // all there are
  std::vector<int> members{place};
  const auto add = [&](const Line& line) {
    const std::size_t before = members.size();
    for (int i = 1; i < line.extent; ++i) {
      for (std::size_t m = 0; m < before; ++m) members.push_back(members[m] + i * line.stride);
    }
  };
  const auto by_nodes = [&](const Line& line) { return line.stride % devices == 0; };  // on each the same again
  for (const Line& line : own) {
    if (!by_nodes(line)) add(line);
  }
  if (const int here = static_cast<int>(members.size()); members.back() < devices) {
    GroupPlacement placement{extent, extent / here, here, 1};
    placement.sharing = share_of_adapters(placement, devices, ranks);
    return placement;
  }
  for (const Line& line : own) {
    if (by_nodes(line)) add(line);
  }
  std::vector<int> on_node(static_cast<std::size_t>(*std::max_element(members.begin(), members.end()) / devices + 1));
  for (const int member : members) ++on_node[static_cast<std::size_t>(member / devices)];
  GroupPlacement placement;
  placement.ranks = static_cast<int>(members.size());
  placement.nodes = static_cast<int>(std::count_if(on_node.begin(), on_node.end(), [](int n) { return n > 0; }));
  placement.ranks_per_node = *std::max_element(on_node.begin(), on_node.end());
  placement.sharing = share_of_adapters(placement, devices, ranks);
  return placement;
}

void enter(std::vector<GroupPlacement>& different, const GroupPlacement& p) {
  if (std::find(different.begin(), different.end(), p) == different.end()) different.push_back(p);
}

GroupPlacement placed_among(const Mesh& mesh, const hardware::Cluster& cluster, const std::vector<int>& members,
                            int rank) {
  std::map<int, int> per_node;
  for (const int member : members) ++per_node[cluster.node_index(member)];
  GroupPlacement placement;
  placement.ranks = static_cast<int>(members.size());
  placement.nodes = static_cast<int>(per_node.size());
  placement.ranks_per_node = 0;
  for (const auto& [node, count] : per_node) placement.ranks_per_node = std::max(placement.ranks_per_node, count);
  placement.sharing = share_of_adapters(placement, cluster.node_of_device(rank).devices, mesh.size());
  return placement;
}

// Ranks of the stage in ascending order; every group of them is looked at once.
std::vector<GroupPlacement> among_unlike_nodes(const Mesh& mesh, const hardware::Cluster& cluster, Group group,
                                               int stage) {
  std::vector<GroupPlacement> all;
  std::vector<SitesOfGroup> sites;
  std::vector<bool> seen(static_cast<std::size_t>(mesh.size()), false);
  for (const int rank : ranks_of_stage(mesh, stage)) {
    if (seen[static_cast<std::size_t>(rank)]) continue;
    const std::vector<int> members = mesh.members(group, rank);
    for (const int member : members) seen[static_cast<std::size_t>(member)] = true;
    all.push_back(placed_among(mesh, cluster, members, rank));
    if (!cluster.links.empty()) sites.push_back(sites_of(cluster, members));
    if (group == Group::kWorld || group == Group::kModel) break;
  }
  if (!cluster.links.empty()) share_site_links(cluster, sites, all);
  std::vector<GroupPlacement> different;
  for (const GroupPlacement& placement : all) enter(different, placement);
  return different;
}

}  // namespace

std::vector<int> ranks_of_stage(const Mesh& mesh, int stage) {
  std::vector<int> ranks{mesh.rank({0, 0, 0, stage})};
  const std::pair<int, int> lines[] = {{mesh.tensor(), mesh.rank({1, 0, 0, 0})},
                                       {mesh.context(), mesh.rank({0, 1, 0, 0})},
                                       {mesh.data(), mesh.rank({0, 0, 1, 0})}};
  for (const auto& [extent, stride] : lines) {
    const std::size_t before = ranks.size();
    for (int i = 1; i < extent; ++i) {
      for (std::size_t r = 0; r < before; ++r) ranks.push_back(ranks[r] + i * stride);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<GroupPlacement> placements_of(const Mesh& mesh, const hardware::Cluster& cluster, Group group, int rank) {
  const int stage = mesh.coordinates(rank).pipeline;
  if (!cluster.homogeneous()) return among_unlike_nodes(mesh, cluster, group, stage);
  const int devices = cluster.groups.front().node.devices;
  const Shape shape = shape_of(mesh, group);
  const int start = shape.joins_stages ? 0 : mesh.rank({0, 0, 0, stage});
  const std::vector<bool> taken = places_taken(start, shape.others, devices);
  std::vector<GroupPlacement> different;
  for (int place = 0; place < devices; ++place) {
    if (taken[static_cast<std::size_t>(place)]) enter(different, placed_at(place, shape.own, devices, mesh.size()));
  }
  return different;
}

bool stages_on_other_nodes(const Mesh& mesh, const hardware::Cluster& cluster) {
  if (!cluster.homogeneous() || mesh.pipeline() == 1) return false;
  return mesh.rank({0, 0, 0, 1}) % cluster.groups.front().node.devices == 0;
}

TransferPlacement transfer_placement(const Mesh& mesh, const hardware::Cluster& cluster, int rank, int peer_stage) {
  const Coordinates here = mesh.coordinates(rank);
  const int step = mesh.rank({here.tensor, here.context, here.data, peer_stage}) - rank;  // the same for all
  const int home = cluster.node_index(rank);
  TransferPlacement placement;
  if (cluster.homogeneous()) {
    const int devices = cluster.groups.front().node.devices;
    const Shape shape = shape_of(mesh, Group::kNone);
    const std::vector<bool> taken = places_taken(mesh.rank({0, 0, 0, here.pipeline}), shape.others, devices);
    for (int place = 0; place < devices; ++place) {
      const bool stays = place + step >= 0 && place + step < devices;
      if (taken[static_cast<std::size_t>(place)]) placement.same_node &= stays;
      const int other = home * devices + place;
      placement.sharing += other < mesh.size() && mesh.coordinates(other).pipeline == here.pipeline ? 1 : 0;
    }
    return placement;
  }
  std::map<const hardware::SiteLink*, int> crossing;
  for (const int other : ranks_of_stage(mesh, here.pipeline)) {
    const int node = cluster.node_index(other);
    placement.same_node &= node == cluster.node_index(other + step);
    placement.sharing += node == home ? 1 : 0;
    if (cluster.links.empty()) continue;
    const auto* link = cluster.link_between(cluster.site_of_device(other), cluster.site_of_device(other + step));
    if (link != nullptr) ++crossing[link];
  }
  for (const auto& [link, pairs] : crossing) {
    placement.between.bandwidth = std::min(placement.between.bandwidth, rate_of(*link) / pairs);
    placement.between.latency = std::max(placement.between.latency, link->link.latency);
  }
  return placement;
}

}  // namespace trivium::simulator
