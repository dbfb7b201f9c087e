#include "simulator/cost/part_work.h"

#include <algorithm>
#include <cmath>

#include "base/seconds.h"
#include "simulator/collectives/places.h"
#include "simulator/cost/copy_cost.h"
#include "simulator/cost/issue.h"
#include "simulator/cost/transformer_engine.h"

namespace trivium::simulator {
namespace {

using program::Op;
using program::OpKind;
using program::Program;

// What moves over no link takes no number of seconds (0 / 0, 1 / 0): none.
std::int64_t to_ps(base::Seconds time) {
  constexpr double kMostPs = 1.0 * (std::int64_t{1} << 61);  // too_long() is what refuses it
  if (!std::isfinite(time.value())) return 0;
  return std::max<std::int64_t>(0, std::llround(std::min(time.value() * base::kPsPerSecond, kMostPs)));
}

// Ranks of this node that hold the same stage send at the same moment; one pair of the stage that crosses nodes holds
// up all: the slowest sets the pace.
base::Seconds transfer_time(const Program& program, const hardware::Cluster& cluster, double bytes, int rank,
                            int peer_stage) {
  const auto [same_node, sharing, between] = transfer_placement(program.mesh, cluster, rank, peer_stage);
  const int transfers = std::max(1, sharing);
  return transfer_cost(base::Bytes(bytes), same_node, transfers, cluster.node_of_device(rank), program.stack, between);
}

// Cores exchange rows one by one and gather parameters in their own type, whatever a plan says.
program::StackTraits executed_by(const Program& program, const hardware::Device& device) {
  program::StackTraits stack = program.stack;
  if (device.kind == hardware::DeviceKind::kCpu) stack.expert_dispatch = program::ExpertDispatch::kAllToAll;
  return stack;
}

// as_executed says so where a token is sent once to a rank.
TokenRoutes routes_of(const Op& op) {
  const bool routed = op.kind == OpKind::kAllToAll && op.group == program::Group::kExpert && op.experts > 0;
  return routed ? TokenRoutes{op.experts, op.k} : TokenRoutes{};
}

// Over nodes such an all-reduce reaches what one adapter carries, however many there are: 22 to 60 GB/s in the
// Ultra-Scale Playbook's runs, where reduce-scatters and gathers reach twice that.
hardware::Node on_one_adapter(const hardware::Node& node, const GroupPlacement& group) {
  hardware::Node one = node;
  one.adapters = std::min(node.adapters, std::max(1, group.sharing));
  return one;
}

// Of an exchange with the experts beside another pass, the share for which kernels wait: its blocks and theirs share
// multiprocessors and memory, and start late where hosts are late. Captured iterations start both in time, with
// exchanges on a stream of high priority (high_priority_a2a_comm_stream). Read off Megatron-Bridge's Qwen 3 235B on
// H100 and gpt-oss on GB200.
constexpr double kExposedExchange = 0.4;

double exposed_exchange(const program::StackTraits& stack) {
  return runs_transformer_engine(stack) ? kExposedExchange * std::min(1.0, stack.issue) : 0;
}

/// An exchange with experts beside another pass.
bool overlaps_passes(const Exchange& exchange) {
  return exchange.kind == OpKind::kAllToAll && exchange.lane == program::Lane::kExpert;
}

/// Spreads `waits` over what computes, in proportion.
void wait_longer(std::span<const OpWork> ops, base::Seconds waits, std::vector<base::Seconds>& costs) {
  base::Seconds computed(0);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].elsewhere) computed += costs[i];
  }
  if (computed.value() <= 0) return;
  const double longer = 1 + waits / computed;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].elsewhere) costs[i] = costs[i] * longer;
  }
}

}  // namespace

const std::vector<GroupPlacement>& GroupPlaces::of(program::Group group) {
  auto& known = known_[static_cast<std::size_t>(group)];
  if (!known) known = placements_of(mesh_, cluster_, group, rank_);
  return *known;
}

PartWork work_of(std::span<const Op> written, const Program& program, const hardware::Device& device) {
  const bool codes = program.settings.gathers_in_8_bits && device.kind == hardware::DeviceKind::kGpu;
  const auto executed = as_executed(written, executed_by(program, device), program.mesh.tensor(),
                                    {program.settings.rotary.amplitude, codes});
  const std::span<const Op> ops = executed ? std::span<const Op>(*executed) : written;
  PartWork work{segment_work(ops, device, program.stack), {}, std::vector<std::int32_t>(ops.size(), -1)};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    const bool left_out = op.elements == 0 && written[i].elements > 0;
    if (!program::is_copy(op.kind) && (!program::is_communication(op.kind) || left_out)) continue;
    const double share = program::is_copy(op.kind) ? copied_share(op, program.settings, program.stack) : 1;
    work.exchange_of[i] = static_cast<std::int32_t>(work.exchanges.size());
    work.exchanges.push_back({op.kind, op.group, op.lane, op.disk, op.bytes * share, routes_of(op)});
  }
  return work;
}

std::vector<std::int64_t> PlacedRanks::times(const PartWork& work, int peer_stage) {
  std::vector<base::Seconds> communicated(work.ops.size());
  base::Seconds waits(0);  // of kernels for exchanges that overlap with them
  for (std::size_t i = 0; i < communicated.size(); ++i) {
    if (work.exchange_of[i] < 0) continue;
    const Exchange& exchange = work.exchanges[static_cast<std::size_t>(work.exchange_of[i])];
    communicated[i] = time_of(exchange, peer_stage);
    if (overlaps_passes(exchange)) waits += communicated[i] * exposed_exchange(program_.stack);
  }
  std::vector<base::Seconds> costs =
      segment_costs(work.ops, node_.device, communicated, pipelined_issue(program_.mesh, program_.stack));
  if (waits.value() > 0) wait_longer(work.ops, waits, costs);
  std::vector<std::int64_t> times;
  times.reserve(work.ops.size());
  for (const base::Seconds time : costs) times.push_back(to_ps(time));
  return times;
}

base::Seconds PlacedRanks::time_of(const Exchange& exchange, int peer_stage) {
  if (program::is_copy(exchange.kind)) {
    return copy_cost(base::Bytes(exchange.bytes), exchange.disk, std::min(node_.devices, program_.mesh.size()), node_);
  }
  if (exchange.kind == OpKind::kSend || exchange.kind == OpKind::kRecv) {
    return transfer_time(program_, cluster_, exchange.bytes, rank_, peer_stage);
  }
  return collective(exchange);
}

// Wide gradients of a stack that adds to them after a pipeline are one all-reduce of gigabytes.
bool PlacedRanks::one_ring(const Exchange& exchange) const {
  return program_.stack.fills_half_gradients && program_.mesh.pipeline() > 1 && exchange.kind == OpKind::kAllReduce &&
         exchange.group == program::Group::kData;
}

base::Seconds PlacedRanks::collective(const Exchange& exchange) {
  base::Seconds slowest(0);
  for (const GroupPlacement& group : places_.of(exchange.group)) {
    const auto cost = [&](const hardware::Node& node) {
      const base::Bytes bytes(exchange.bytes);
      if (exchange.routes.experts > 0) {
        return expert_exchange_cost(bytes, exchange.routes, group, node, program_.stack);
      }
      return collective_cost(exchange.kind, bytes, group, node, program_.stack);
    };
    slowest = std::max(slowest, one_ring(exchange) ? cost(on_one_adapter(node_, group)) : cost(node_));
  }
  // User buffers: a product and its collective run piece by piece, each overlapping the other's next piece.
  const bool inside_products = exchange.group == program::Group::kTensor && exchange.lane == program::Lane::kTensor;
  return inside_products ? slowest * (1 - program_.stack.hidden_tensor) : slowest;
}

}  // namespace trivium::simulator
