// Ranks as points of a grid: tensor x context x data x pipeline.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "program/plan/plan.h"

namespace trivium::program {

/// The sets of ranks that communicate.
enum class Group : std::uint8_t {
  kNone,
  kTensor,      ///< ranks that share a stage and a replica
  kKeys,        ///< part of kTensor that holds the same key heads, where there are fewer of them than ranks
  kContext,     ///< ranks that share a sequence, in the order of its ring
  kData,        ///< ranks that hold the same parameters: data x context
  kShard,       ///< part of kData that the ZeRO state is split over: `shard_group` neighbouring replicas
  kReplica,     ///< ranks of kData that hold the same shards: one of every shard group
  kExpert,      ///< neighbours along `data` that share the experts of a layer; with every expert_tensor-th tensor rank
  kExpertData,  ///< ranks that hold the same experts
  kPipeline,    ///< ranks that differ in their stage alone; transfers join two of them
  kEmbedding,   ///< first and last stage, which both hold a tied embedding
  kModel,       ///< tensor x pipeline x expert replicas: every expert, the rest of the model once for each of these
  kWorld,
  kContextHeads,  ///< neighbours of kContext that exchange heads, where the others are a ring
  kContextRing,   ///< that ring: one of each such set
  kExpertTensor   ///< neighbours of kTensor that split every expert among them, where others have other experts
};
constexpr int kGroups = static_cast<int>(Group::kExpertTensor) + 1;
std::string_view name_of(Group group);

/// Whether members of a group lie on several stages (not kPipeline, whose members meet in pairs); in several replicas.
bool joins_stages(Group group);
bool joins_replicas(Group group);

struct Coordinates {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
  bool operator==(const Coordinates&) const = default;
};

/// Bijection between ranks 0 … size-1 and coordinates; the first dimension of the placement varies fastest.
class Mesh {
 public:
  Mesh() = default;
  /// `key_ranks`: neighbouring tensor ranks that hold the same key heads (program/lower/layout.h).
  explicit Mesh(const Plan& plan, int key_ranks = 1);

  int size() const;
  int tensor() const { return extents_[0]; }
  int context() const { return extents_[1]; }
  /// Context ranks that exchange heads within a ring, 1: none do.
  int context_heads() const { return context_heads_; }
  int data() const { return extents_[2]; }
  int pipeline() const { return extents_[3]; }
  /// Which part of a sharded bucket the rank holds: its place among the ranks of its kShard group.
  int shard_rank(int rank) const;
  /// Number of the rank's shard group among those of its kData group; 0 unless sharding is hybrid.
  int shard_replica(int rank) const { return coordinates(rank).data / shard_; }
  /// Ranks that share the experts of a layer, and how many neighbours along `data` these are.
  int expert() const { return expert_replicas_ * (tensor() / expert_tensor_); }
  int expert_replicas() const { return expert_replicas_; }
  /// Neighbouring tensor ranks that each have a part of every expert that they hold.
  int expert_tensor() const { return expert_tensor_; }
  int key_ranks() const { return key_ranks_; }
  int rank(const Coordinates& at) const;
  Coordinates coordinates(int rank) const;
  /// Ranks of the group that `rank` belongs to, ascending along the group's own dimension; {rank} for kNone.
  std::vector<int> members(Group group, int rank) const;
  int group_size(Group group) const;
  /// Place of `rank` among the members of its group.
  int index_in(Group group, int rank) const;
  /// Which of the `expert` parts of the experts the rank holds.
  int expert_rank(const Coordinates& at) const { return index_in(Group::kExpert, rank(at)); }
  /// Its place among the replicas that share them.
  int expert_replica(const Coordinates& at) const { return at.data % expert_replicas_; }
  bool operator==(const Mesh&) const = default;

 private:
  std::array<int, 4> extents_{1, 1, 1, 1};  // tensor, context, data, pipeline
  int context_heads_ = 1;
  int shard_ = 1;                         // data coordinates of a shard group
  std::array<int, 4> order_{0, 1, 2, 3};  // dimensions, fastest first
  int expert_replicas_ = 1;
  int expert_tensor_ = 1;
  int key_ranks_ = 1;
};

}  // namespace trivium::program
