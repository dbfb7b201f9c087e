// What plans of one search have in common, worked out once: costs and bytes of chunk templates, frames, places of
// stages.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "program/lower/chunk_template.h"
#include "simulator/analytic/kind_costs.h"
#include "simulator/analytic/pass_layer.h"
#include "simulator/analytic/stage_places.h"
#include "simulator/memory/limits.h"

namespace trivium::simulator {

/// Frames of a chunk: of whole micro-batches, and between the halves of a split backward.
struct Frames {
  int whole = 0, delayed = 0;
};

/// Serves plans of one job on one cluster that differ in fields of planner/space/space.h alone. A kind's passes depend
/// on few of those fields and its reductions, gathers and optimizer on few others: each half is known apart.
/// Thread-safe.
class SharedCosts {
 public:
  using Bytes = program::ChunkBytes;
  /// Costs a kind of one layer anew: of it what is asked for, passes alone or all else, and zero for the rest.
  struct Wanted {
    bool passes = false, transfers = false, state = false;
    bool any() const { return passes || transfers || state; }
  };
  using Coster = std::function<KindCosts(const program::ChunkKey&, const Wanted&)>;

  /// What is asked of a kind; the rest of its costs is zero.
  enum class Part { kPasses, kPassesAndTransfers, kAll };
  /// Of a kind of one layer on a stage at `place`. `coster` is asked for what is not known.
  KindCosts costs(const program::Job& job, const program::ChunkKey& key, const StagePlace& place, Part part,
                  const Coster& coster);

  /// Passes of a kind of one layer, wherever its ranks lie. `lower` is asked for what is not known, or was forgotten.
  std::shared_ptr<const CostedPassLayer> layer(const program::Job& job, const program::ChunkKey& key,
                                               const std::function<CostedPassLayer()>& lower);

  /// Which layers of the model are alike.
  struct Layers {
    std::vector<models::LayersOfKind> kinds;
    std::vector<int> kind_of;  ///< by layer
    /// The first layer from which on as many are of the same kinds as from `layer` on.
    int first_alike(int layer, int count) const;
  };
  const Layers& layers(const models::Model& model);
  program::Settings settings(const program::Job& job, const program::StackTraits& stack);

  /// Bytes of the kind `key` under a plan; lowered where no plan needed them before.
  Bytes bytes(const program::Job& job, const program::StackTraits& stack, const program::ChunkKey& key);

  /// Keeps the bytes of a kind that was lowered for its costs.
  void note_bytes(const program::Job& job, const program::ChunkKey& key, const Bytes& bytes);

  /// By chunk of a stage whose chunks are of `kinds` (numbers that are equal for equal kinds).
  std::vector<Frames> frames(const program::Plan& plan, int stage, std::int64_t micro_batches,
                             const std::vector<int>& kinds);

  /// By stage. `placed`: the cluster as the ranks of the plan see it.
  std::shared_ptr<const std::vector<StageLimits>> limits(const program::Plan& plan, const hardware::Cluster& placed);

  StagePlaces& places() { return places_; }

 private:
  using Key = std::vector<std::int64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  template <class Value>
  using Known = std::unordered_map<Key, Value, Hash>;

  template <class Value>
  std::optional<Value> find(const Known<Value>& known, const Key& key);

  KindCosts with_ends(const program::Job& job, const program::ChunkKey& kind, const StagePlace& place,
                      const Coster& coster);

  struct Layer {
    Key key;
    std::shared_ptr<const CostedPassLayer> layer;
  };

  std::mutex mutex_;
  std::list<Layer> layers_;  // the one last asked for first
  Known<std::list<Layer>::iterator> layer_of_;
  Known<KindCosts> passes_, ends_, states_, transfers_;
  Known<Bytes> pass_bytes_, state_bytes_;
  Known<std::vector<Frames>> frames_;
  Known<std::shared_ptr<const std::vector<StageLimits>>> limits_;
  std::unique_ptr<const Layers> layers_alike_;
  std::unique_ptr<const program::Settings> settings_;  // of some plan
  StagePlaces places_;
};

}  // namespace trivium::simulator
