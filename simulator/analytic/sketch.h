// Plans costed from one layer, the embedding and the head, without lowering them whole.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "program/chunk_kind.h"
#include "program/lower.h"
#include "program/sharding.h"
#include "simulator/analytic/kind_bytes.h"
#include "simulator/analytic/kind_costs.h"
#include "simulator/analytic/outline.h"
#include "simulator/memory/memory.h"
#include "simulator/placed_cluster.h"

namespace trivium::simulator {

/// Serves all plans of a job that differ in virtual stages, schedule and the number of layers of a stage only: a layer,
/// and the ranks that run it, are the same. Schedules that split the backward have a sketch of their own. The job and
/// the cluster must outlive it. Not shared between threads: it keeps what it worked out.
class Sketch {
 public:
  /// Preconditions: program::check accepts the job with some virtual stages and schedule, unsupported_by the cluster.
  /// `shared`, where given, keeps bytes of kinds for other sketches of the same search; it must outlive this.
  Sketch(const program::Job& job, const hardware::Cluster& cluster, KindBytes* shared = nullptr);

  /// Preconditions: `plan` differs from the job's in virtual stages, schedule and stage layers at most, and passed
  /// program::check.
  Outline outline(const program::Plan& plan);
  /// Memory of every stage: what lowering the plan counts.
  std::vector<StageMemory> memory(const program::Plan& plan);
  /// Compute time of one micro-batch, forward and backward, of a stage that holds one chunk: what grows with its
  /// layers (dense and mixture layers in the model's proportion), and what the embedding and the head add.
  /// Precondition: `plan` has no virtual stages.
  PartTimes pass(const program::Plan& plan, int stage);

 private:
  using Bytes = std::array<std::int64_t, program::kSpaces>;

  std::vector<program::ChunkKey> keys_of(const program::Job& job) const;  // of every chunk, in model order
  void cost_kinds();
  std::pair<int, int> groups_of(int stage) const;
  void find_alike();
  KindCosts costs(const program::ChunkKey& key, int stage) const;
  std::vector<int> phases() const;  // of one dense layer, where there are any, and of one mixture layer
  int mixtures(const program::ChunkKey& key) const;  // mixture layers of a chunk
  /// What collectives add to the passes of a chunk, where they do not run beside them (ps).
  struct Serial {
    std::int64_t forward = 0, backward = 0;
  };
  Serial serial_of(const program::ChunkKey& key, int stage) const;
  Outline::Ending ending(const program::Plan& plan, const std::vector<program::ChunkKey>& chunks, int stage) const;
  Bytes bytes(const program::ChunkKey& key);
  Bytes lowered_bytes(const program::ChunkKey& key);

  program::Job job_;
  const hardware::Cluster& cluster_;
  PlacedCluster placed_;
  const program::Habits& habits_;
  program::Sharding sharding_{};
  std::vector<program::ChunkKey> kinds_;       // of one layer
  std::vector<std::vector<KindCosts>> costs_;  // by costed stage and kind
  std::vector<std::size_t> costed_stage_;      // by stage: the stage whose costs hold for it
  bool merged_lanes_ = false;
  std::vector<std::pair<program::ChunkKey, Bytes>> bytes_;  // of kinds built so far
  KindBytes* shared_;
};

}  // namespace trivium::simulator
