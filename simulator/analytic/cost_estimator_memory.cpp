// The memory side of CostEstimator: bytes of a chunk grow by the same amount with every layer.
#include <algorithm>

#include "program/ir/alignment.h"
#include "program/lower/role_tasks.h"
#include "simulator/analytic/cost_estimator.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;

constexpr int kLayersBuilt = 2;  // the second shows what a layer adds
constexpr int kGroupsBuilt = 2;  // besides the last, which may be shorter: the second shows what a group adds

// What `times` more would take of what `more` has beyond `less`.
program::ChunkBytes grown(const program::ChunkBytes& more, const program::ChunkBytes& less, int times) {
  program::ChunkBytes bytes = more;
  for (std::size_t space = 0; space < bytes.size(); ++space) {
    const auto which = static_cast<program::Space>(space);
    const bool shared = program::is_workspace(which) || which == program::Space::kGathered ||
                        which == program::Space::kStaging;  // a few at a time
    if (!shared) bytes[space] += (more[space] - less[space]) * times;
  }
  bytes.cast_numbers += (more.cast_numbers - less.cast_numbers) * times;
  return bytes;
}

}  // namespace

CostEstimator::MemoryByStage::MemoryByStage(CostEstimator& estimator, const program::Plan& plan)
    : estimator_(estimator),
      plan_(plan),
      micro_batches_(program::micro_batches(plan, estimator.job().training.global_batch)),
      limits_(estimator.shared_->limits(plan, estimator.placed_.get())) {
  for (const ChunkKey& key : estimator.keys_of(plan)) {
    const auto known = std::find(kinds_.begin(), kinds_.end(), key);
    kind_of_.push_back(static_cast<int>(known - kinds_.begin()));
    if (known == kinds_.end()) kinds_.push_back(key);
  }
  estimator.program_.kinds.resize(kinds_.size());
  counted_.assign(kinds_.size(), 0);
}

void CostEstimator::MemoryByStage::count_bytes(const std::vector<int>& kinds) {
  for (const int kind : kinds) {
    const auto k = static_cast<std::size_t>(kind);
    if (counted_[k] != 0) continue;
    enter(kind, estimator_.bytes(kinds_[k]));
    counted_[k] = 1;
  }
}

void CostEstimator::MemoryByStage::enter(int kind, const program::ChunkBytes& bytes) {
  const ChunkKey& key = kinds_[static_cast<std::size_t>(kind)];
  program::ChunkTemplate& entered = estimator_.program_.kinds[static_cast<std::size_t>(kind)];
  entered.bytes = bytes;
  entered.head = key.head;
  entered.layers = key.layers;
  entered.mtp = key.head ? estimator_.job().model.mtp_depth() : 0;
}

std::vector<int> CostEstimator::MemoryByStage::kinds(int stage) const {
  std::vector<int> kinds;
  for (int v = 0; v < plan_.virtual_stages; ++v) {
    kinds.push_back(kind_of_[static_cast<std::size_t>(plan_.position_of(stage, v))]);
  }
  return kinds;
}

int CostEstimator::MemoryByStage::alike(int stage) const {
  const std::vector<int> here = kinds(stage);
  for (int other = 0; other < stage; ++other) {
    if (kinds(other) == here) return other;
  }
  return stage;
}

StageMemory CostEstimator::MemoryByStage::of(int stage) {
  const std::vector<int> here = kinds(stage);
  count_bytes(here);
  return laid_out(stage, here);
}

StageMemory CostEstimator::MemoryByStage::least_of(int stage) {
  const std::vector<int> here = kinds(stage);
  for (const int kind : here) {
    const auto k = static_cast<std::size_t>(kind);
    if (counted_[k] == 0) enter(kind, estimator_.least_bytes(kinds_[k]));
  }
  return laid_out(stage, here);
}

StageMemory CostEstimator::MemoryByStage::laid_out(int stage, const std::vector<int>& here) {
  const std::vector<Frames> in_flight = estimator_.shared_->frames(plan_, stage, micro_batches_, here);
  program::Role role;
  role.stage = stage;
  for (std::size_t v = 0; v < here.size(); ++v) {
    program::Chunk chunk;
    chunk.kind = here[v];
    chunk.frames = in_flight[v].whole;
    chunk.deferred_frames = in_flight[v].delayed;
    role.chunks.push_back(chunk);
  }
  program::lay_out_memory(estimator_.program_, role);
  return memory_of(estimator_.program_, role, (*limits_)[static_cast<std::size_t>(stage)]);
}

std::vector<StageMemory> CostEstimator::memory(const program::Plan& plan) {
  MemoryByStage by_stage(*this, plan);
  std::vector<StageMemory> stages;
  for (int stage = 0; stage < plan.pipeline; ++stage) stages.push_back(by_stage.of(stage));
  return stages;
}

// Buckets of several layers are padded as they fall: such chunks are built whole. Of others each of the last layers
// that are all dense, or all mixtures, adds the same; what a layer keeps does not depend on its window, but on whether
// its heads are normalised.
CostEstimator::Bytes CostEstimator::bytes(const ChunkKey& key) {
  if (key.group > 1) return bytes_of_groups(key);
  const int alike = layers_alike(key);
  if (alike <= kLayersBuilt || job().plan.bucket_bytes > 0) return lowered_bytes(key);
  ChunkKey shorter = key, shortest = key;
  shorter.layers = key.layers - alike + kLayersBuilt;
  shortest.layers = shorter.layers - 1;
  const Bytes more = lowered_bytes(shorter), less = lowered_bytes(shortest);
  return grown(more, less, alike - kLayersBuilt);
}

// Of layers that are all alike, each group but the last adds the same; any one of them shows how much room it takes to
// go back through it. Other chunks are built whole.
CostEstimator::Bytes CostEstimator::bytes_of_groups(const ChunkKey& key) {
  const int rest = (key.layers - 1) % key.group + 1, more_groups = (key.layers - rest) / key.group - kGroupsBuilt;
  if (layer_kinds().size() > 1 || more_groups <= 0 || job().plan.bucket_bytes > 0) return lowered_bytes(key);
  ChunkKey shorter = key, shortest = key;
  shorter.layers = rest + kGroupsBuilt * key.group;
  shortest.layers = shorter.layers - key.group;
  return grown(lowered_bytes(shorter), lowered_bytes(shortest), more_groups);
}

// A chunk of one layer keeps in its frame what the layer does, its input and its output; every layer, or the first of
// those that are made again together, has an input there.
CostEstimator::Bytes CostEstimator::least_bytes(const ChunkKey& key) {
  Bytes least{};
  if (job().plan.bucket_bytes > 0 || !job().plan.replica_micro_batch.empty()) return least;
  const std::int64_t output = program_.settings.sent_bytes_per_sample * job().plan.micro_batch + program::kAlignment;
  const Counts layers = layers_of(key);
  constexpr auto kFrame = static_cast<std::size_t>(program::Space::kFrame);
  for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) {
    if (layers[kind] == 0) continue;
    ChunkKey one{1, false, false, key.recompute, key.modules, 0, static_cast<int>(layer_kinds()[kind].first)};
    if (key.again > 0) one.modules = {};  // whole, then, as some of its layers are
    const std::int64_t kept = std::max<std::int64_t>(0, lowered_bytes(one)[kFrame] - output);
    least[kFrame] = key.group > 1 ? kept : least[kFrame] + layers[kind] * kept;  // inputs alone, all of one size
  }
  if (key.group > 1) least[kFrame] *= (key.layers + key.group - 1) / key.group;
  return least;
}

int CostEstimator::layers_alike(const ChunkKey& key) const {
  if (layer_kinds().size() == 1) return key.layers - key.again;
  const auto keeps = [&](int layer) {
    const models::LayerKind kind = job().model.layer_kind(key.phase + layer);
    return std::pair(kind.mixture, job().model.norms_heads(kind));
  };
  int first = key.layers - 1;
  while (first > key.again && keeps(first - 1) == keeps(key.layers - 1)) --first;
  return key.layers - first;
}

CostEstimator::Bytes CostEstimator::lowered_bytes(const ChunkKey& key) {
  for (const auto& [known, bytes] : bytes_) {
    if (known == key) return bytes;
  }
  bytes_.emplace_back(key, shared_->bytes(job(), stack_, key));
  return bytes_.back().second;
}

}  // namespace trivium::simulator
