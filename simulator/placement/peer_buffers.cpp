#include "simulator/placement/peer_buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "hardware_profiles/capabilities.h"
#include "program/ir/mesh.h"
#include "program/plan/stack.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {
namespace {

constexpr const char* kRule = "tensor-overlap";

/// A group of tensor ranks that lies on several nodes.
struct Crossing {
  int nodes = 0;
  const hardware::Node* node = nullptr;  ///< of its first rank
};

bool is_core(const hardware::NodeGroup& group) { return group.node.device.kind == hardware::DeviceKind::kCpu; }

/// Ranks that lie between the first of a tensor group and the first of the next that is no neighbour of it.
int block_of(const program::Plan& plan) { return plan.tensor * program::Mesh(plan).rank({1, 0, 0, 0}); }

/// The first tensor group on several nodes. Ranks of a group ascend, and so do nodes: the first and the last rank tell.
std::optional<Crossing> find_crossing(const program::Plan& plan, const hardware::Cluster& placed) {
  const int stride = block_of(plan) / plan.tensor, reach = (plan.tensor - 1) * stride;
  const int devices = placed.devices();
  for (int first = 0; first < std::min(plan.ranks(), devices); ++first) {
    if (first / stride % plan.tensor != 0) continue;
    const int from = placed.node_index(first), to = placed.node_index(std::min(first + reach, devices - 1));
    if (from == to) continue;
    const hardware::Node& node = placed.node_of_device(first);
    const int spread = stride >= node.devices ? plan.tensor : to - from + 1;
    return Crossing{std::min(spread, plan.tensor), &node};
  }
  return std::nullopt;
}

std::string_view word_for_domain(const hardware::Node& node) {
  return node.host_devices > 0 ? "NVLink domain" : "node";
}

std::optional<program::Infeasible> refused_by_device(const RanksToPlace& ranks, const hardware::Cluster& placed) {
  int left = ranks.all();  // ranks fill the nodes in order
  for (const hardware::NodeGroup& group : placed.groups) {
    if (left <= 0) break;
    left -= group.count * group.node.devices;
    if (is_core(group)) continue;
    const std::string_view why = why_no_peer_buffers(group.node);
    if (why.empty()) continue;
    return program::Infeasible{
        kRule, fmt::format("tensor collectives overlap products in user buffers or symmetric memory, which need NVLink "
                           "and compute capability 8.0; of {} {}. Give --overlap-tensor=false",
                           group.node.name, why)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<program::Infeasible> without_peer_buffers(const program::Plan& plan, const hardware::Cluster& cluster) {
  if (plan.tensor == 1) return std::nullopt;
  // Groups that begin together with a node, on each as many as fill it.
  const int block = block_of(plan);
  const bool fill_nodes = std::ranges::all_of(cluster.groups, [&](const hardware::NodeGroup& group) {
    return is_core(group) || (why_no_peer_buffers(group.node).empty() && group.node.devices % block == 0);
  });
  if (fill_nodes) return std::nullopt;
  const RanksToPlace ranks(plan);
  const PlacedCluster view(ranks, cluster);
  const hardware::Cluster& placed = view.get();
  if (auto no = refused_by_device(ranks, placed)) return no;
  const auto crossing = find_crossing(plan, placed);
  if (!crossing) return std::nullopt;
  const hardware::Node& node = *crossing->node;
  return program::Infeasible{
      kRule,
      fmt::format("groups of {} tensor ranks lie on {} {}s of {} ({} devices each); overlap in user buffers or "
                  "symmetric memory reaches no further than one. Give --overlap-tensor=false, or a smaller "
                  "tensor that keeps every group in one {}",
                  plan.tensor, crossing->nodes, word_for_domain(node), node.name, node.devices, word_for_domain(node))};
}

bool some_lack_peer_buffers(const program::Plan& plan, const hardware::Cluster& cluster) {
  return program::find_stack(plan.stack)->peer_buffers &&
         std::ranges::any_of(cluster.groups, [](const hardware::NodeGroup& group) {
           return !is_core(group) && !why_no_peer_buffers(group.node).empty();
         });
}

std::optional<program::Infeasible> tensor_overlap_refused(const program::Plan& plan, const hardware::Cluster& cluster) {
  if (!plan.overlap.tensor || plan.tensor == 1) return std::nullopt;
  const program::StackTraits* stack = program::find_stack(plan.stack);
  if (stack == nullptr || !stack->peer_buffers) return std::nullopt;
  return without_peer_buffers(plan, cluster);
}

}  // namespace trivium::simulator
