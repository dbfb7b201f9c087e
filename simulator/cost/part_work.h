// Ops of a part of a body: what they cost wherever the ranks lie, and, with that, what they take in one place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "program/ir/program.h"
#include "simulator/collectives/collective_cost.h"
#include "simulator/collectives/expert_exchange.h"
#include "simulator/cost/compute_cost.h"

namespace trivium::simulator {

/// A copy, a collective or a transfer, as it is executed.
struct Exchange {
  program::OpKind kind{};
  program::Group group{};
  program::Lane lane{};
  bool disk = false;
  double bytes = 0;
  TokenRoutes routes{};  ///< of an exchange with experts that sends a token once to a rank
};

/// Of ops that the host issues without waiting.
struct PartWork {
  std::vector<OpWork> ops;
  std::vector<Exchange> exchanges;
  std::vector<std::int32_t> exchange_of;  ///< by op; -1: none, or one that is left out
};

/// Where the groups of a rank lie, each worked out when first asked for. What it is given must outlive it.
class GroupPlaces {
 public:
  GroupPlaces(const program::Mesh& mesh, const hardware::Cluster& cluster, int rank)
      : mesh_(mesh), cluster_(cluster), rank_(rank) {}
  const std::vector<GroupPlacement>& of(program::Group group);

 private:
  const program::Mesh& mesh_;
  const hardware::Cluster& cluster_;
  int rank_;
  std::array<std::optional<std::vector<GroupPlacement>>, program::kGroups> known_;
};

/// `program`: its stack, mesh and settings count.
PartWork work_of(std::span<const program::Op> written, const program::Program& program, const hardware::Device& device);

/// Ranks of a stage that lie on nodes of one kind, one of them for all. What it is given must outlive it.
class PlacedRanks {
 public:
  PlacedRanks(const program::Program& program, const hardware::Cluster& cluster, const hardware::Node& node, int rank)
      : program_(program), cluster_(cluster), node_(node), rank_(rank), places_(program.mesh, cluster, rank) {}

  /// By op (ps). `peer_stage`: of transfers.
  std::vector<std::int64_t> times(const PartWork& work, int peer_stage);

 private:
  base::Seconds time_of(const Exchange& exchange, int peer_stage);
  base::Seconds collective(const Exchange& exchange);
  bool one_ring(const Exchange& exchange) const;

  const program::Program& program_;
  const hardware::Cluster& cluster_;
  const hardware::Node& node_;
  int rank_;
  GroupPlaces places_;
};

}  // namespace trivium::simulator
