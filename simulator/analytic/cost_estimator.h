// Plans costed from one layer, the embedding and the head, without lowering them whole.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "program/lower/chunk_template.h"
#include "program/lower/lower.h"
#include "program/lower/sharding.h"
#include "simulator/analytic/schedule_costs.h"
#include "simulator/analytic/shared_costs.h"
#include "simulator/memory/memory.h"
#include "simulator/placement/placed_cluster.h"

namespace trivium::simulator {

/// Serves all plans of a job that differ in virtual stages, schedule and the number of layers of a stage only: a layer,
/// and the ranks that run it, are the same. Schedules that split the backward have an estimator of their own. The
/// cluster must outlive it. Not shared between threads: it keeps what it worked out.
class CostEstimator {
 public:
  /// Preconditions: program::check accepts the job with some virtual stages and schedule, unsupported_by the cluster.
  /// `shared`, where given, keeps what estimators of the same search have in common; it must outlive this.
  CostEstimator(program::Job job, const hardware::Cluster& cluster, SharedCosts* shared = nullptr);

  /// Preconditions: `plan` differs from the job's in virtual stages, schedule and stage layers at most, and passed
  /// program::check.
  ScheduleCosts schedule_costs(const program::Plan& plan);
  /// The same in two halves, whose `joined` it is. The passes depend neither on what ranks share nor on what overlaps;
  /// with endings of zero they bound the plan whatever its state is. The state does not depend on how layers are
  /// recomputed.
  ScheduleCosts passes(const program::Plan& plan);
  /// A lower bound of the passes however the plan recomputes its layers (except for kFull with offloaded activations,
  /// which program::check refuses): nothing is computed twice, and no more activations are copied than where the fewest
  /// are saved.
  ScheduleCosts least_passes(const program::Plan& plan);
  ScheduleCosts state(const program::Plan& plan);
  /// Memory of every stage: what lowering the plan counts.
  std::vector<StageMemory> memory(const program::Plan& plan);
  /// The same of one stage after the other, each counted when it is asked for. Of an estimator one at a time.
  class MemoryByStage {
   public:
    MemoryByStage(CostEstimator& estimator, const program::Plan& plan);
    StageMemory of(int stage);
    /// No more than that, and found without building chunks of several layers: of activations, what layers keep from
    /// their forward to their backward; of all else that the model needs nothing.
    StageMemory least_of(int stage);
    /// The first stage with chunks of the same kinds: of it, all is the same but what micro-batches keep.
    int alike(int stage) const;

   private:
    std::vector<int> kinds(int stage) const;
    void count_bytes(const std::vector<int>& kinds);
    void enter(int kind, const program::ChunkBytes& bytes);
    StageMemory laid_out(int stage, const std::vector<int>& kinds);

    CostEstimator& estimator_;
    const program::Plan& plan_;
    std::int64_t micro_batches_;
    std::shared_ptr<const std::vector<StageLimits>> limits_;
    std::vector<int> kind_of_;              // by position
    std::vector<program::ChunkKey> kinds_;  // different ones
    std::vector<char> counted_;             // by kind: whether its bytes are known
  };
  /// Compute time of one micro-batch on a stage that holds one chunk: what grows with its layers (those of all kinds in
  /// the model's proportion), and what the embedding and the head add.
  struct StageTimes {
    std::int64_t ends = 0, layer = 0;
  };
  struct StagePass {
    StageTimes forward, backward, weights;
    StageTimes exchanges;         ///< on their lane, in both passes
    std::int64_t copy_layer = 0;  ///< a layer's activations, one way; 0 where they stay
    StageTimes all() const {
      return {forward.ends + backward.ends + weights.ends, forward.layer + backward.layer + weights.layer};
    }
  };
  /// By stage. Precondition: `plan` has no virtual stages.
  std::vector<StagePass> stage_passes(const program::Plan& plan);
  /// The same with the least that a layer may take: the kinds of its layers are open until layers are assigned to
  /// stages.
  std::vector<StagePass> least_stage_passes(const program::Plan& plan);
  /// The same with each kind of layer apart: what one layer of it takes.
  struct StageKinds {
    PartTimes forward, backward, weights, exchanges, copies;
  };
  std::vector<StageKinds> passes_by_kind(const program::Plan& plan);
  const std::vector<models::LayersOfKind>& layer_kinds() const { return layers_->kinds; }
  /// The least that a layer without embedding and head takes of any stage for a micro-batch, both passes (ps).
  std::int64_t layer_ps();

 private:
  using Bytes = SharedCosts::Bytes;
  using Counts = ByLayerKind<int>;

  std::vector<StagePass> passes_with(const program::Plan& plan,
                                     const std::function<std::int64_t(const ByLayerKind<std::int64_t>&)>& layer);
  using CostsOf = std::function<const KindCosts&(const program::ChunkKey&, int stage, bool leads_back)>;
  ScheduleCosts passes_of(const program::Plan& plan, const std::vector<program::ChunkKey>& chunks,
                          const CostsOf& costs_of) const;
  std::vector<program::ChunkKey> keys_of(const program::Plan& plan) const;  // of every chunk, in model order
  /// One layer without ends, of any kind, that recomputes as the chunk does.
  static program::ChunkKey layer_of(const program::ChunkKey& key);
  /// Passes, or all else that is wanted.
  KindCosts anew(const program::ChunkKey& one_layer, int stage, bool leads_back,
                 const SharedCosts::Wanted& wanted) const;
  KindCosts passes_anew(const program::ChunkKey& one_layer, int stage) const;
  program::Program without_bodies() const;
  void give_tasks(program::Program& program, int stage, bool leads_back, const SharedCosts::Wanted& wanted) const;
  const KindCosts& costs(const program::ChunkKey& key, int stage, SharedCosts::Part part = SharedCosts::Part::kAll,
                         bool leads_back = false);
  const KindCosts& pass_costs(const program::ChunkKey& key, int stage, SharedCosts::Part part, bool leads_back);
  LayerTurns turns_of(const program::ChunkKey& key, const KindCosts& costs) const;
  std::size_t kind_of(int layer) const;
  Counts layers_of(const program::ChunkKey& key) const;                // of a chunk
  std::int64_t least(const ByLayerKind<std::int64_t>& by_kind) const;  // of the kinds that the model has
  ScheduleCosts empty_schedule_costs(const program::Plan& plan, std::size_t chunks) const;
  /// What collectives add to the passes of a chunk, where they do not overlap with them (ps).
  struct Serial {
    std::int64_t forward = 0, backward = 0;
  };
  Serial serial_of(const program::ChunkKey& key, int stage);
  void add_copies(ScheduleCosts::Chunk& chunk, const program::ChunkKey& key, const KindCosts& costs) const;
  std::int64_t state_copies(const program::ChunkKey& key, const KindCosts& costs, const KindCosts& middle) const;
  std::int64_t norm(const Counts& layers, const KindCosts& middle) const;
  bool slots_apart() const;
  void add_gathers(ScheduleCosts& schedule_costs, const KindCosts& middle, const Counts& layers,
                   std::size_t position) const;
  void add_bus(ScheduleCosts& schedule_costs, const program::ChunkKey& key, std::size_t position);
  void add_ending(ScheduleCosts& schedule_costs, const program::Plan& plan,
                  const std::vector<program::ChunkKey>& chunks, int stage);
  Bytes bytes(const program::ChunkKey& key);
  Bytes bytes_of_groups(const program::ChunkKey& key);
  Bytes lowered_bytes(const program::ChunkKey& key);
  Bytes least_bytes(const program::ChunkKey& key);
  /// How many of the chunk's last layers are all dense, or all mixtures.
  int layers_alike(const program::ChunkKey& key) const;

  const program::Job& job() const { return program_.job; }

  program::Program program_;  // the job, and what the layout of memory reads; no bodies, no tasks
  const hardware::Cluster& cluster_;
  PlacedCluster placed_;
  const program::StackTraits stack_;
  program::Sharding sharding_{};
  bool merged_lanes_ = false;
  std::unique_ptr<SharedCosts> own_;  // where none was given
  SharedCosts* shared_;
  const SharedCosts::Layers* layers_ = nullptr;
  std::shared_ptr<const std::vector<StagePlace>> places_;  // by stage
  /// What was asked of `shared_`, again and again for every chunk.
  struct Asked {
    program::ChunkKey key;
    StagePlace place;
    SharedCosts::Part part;
    const KindCosts* costs;
  };
  std::vector<Asked> asked_;
  std::deque<KindCosts> costs_;  // that were asked for, or are made of those
  std::vector<std::pair<program::ChunkKey, Bytes>> bytes_;
};

}  // namespace trivium::simulator
