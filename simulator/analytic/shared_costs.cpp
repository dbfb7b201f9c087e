#include "simulator/analytic/shared_costs.h"

#include <algorithm>

#include "program/lower/settings.h"
#include "program/schedules/slots.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;
using program::Job;
using program::Plan;
using program::Space;
using program::Storage;
using Key = std::vector<std::int64_t>;

template <class... Parts>
Key key_of(Parts... parts) {
  return {static_cast<std::int64_t>(parts)...};
}

void append(Key& key, const ChunkKey& kind) {
  key.insert(key.end(), {kind.layers, kind.embedding, kind.head, static_cast<int>(kind.recompute), kind.modules.bits(),
                         kind.again, kind.phase, kind.group});
}

constexpr std::size_t kMostLayers = 4096;  // up to 150 MB
constexpr auto kStagingAt = static_cast<std::size_t>(Space::kStaging);

bool keeps(Storage storage) { return storage == Storage::kNone; }

bool is_dense_layer(const Job& job, const ChunkKey& kind) {
  const bool modules = kind.head && job.model.mtp && job.model.mtp_kind().mixture;
  return kind.layers == 1 && !modules && !(job.model.experts && job.model.layer_kind(kind.phase).mixture);
}

// Layers of multi-token prediction are part of the model's end, and depend on everything that layers depend on.
bool has_plain_ends(const Job& job, const ChunkKey& kind) {
  return (kind.embedding || kind.head) && !(kind.head && job.model.mtp);
}

// A dense layer computes the same however many ranks share the experts of others, wherever these are.
int place_of_passes(const Job& job, const ChunkKey& kind, const StagePlace& place) {
  return is_dense_layer(job, kind) ? place.dense : place.passes;
}

// The host of some stacks takes longer for tensor collectives in a pipeline.
bool issues_longer(const Plan& plan) {
  return plan.tensor > 1 && plan.pipeline > 1 && program::find_stack(plan.stack)->pipelined_issue > 0;
}

Key pass_fields(const Job& job, const ChunkKey& kind) {
  const Plan& p = job.plan;
  const bool dense = job.model.experts && is_dense_layer(job, kind);
  Key key =
      key_of(p.tensor, p.context, p.context_method, p.context_heads, dense ? 1 : p.expert, dense ? 0 : p.expert_tensor,
             p.micro_batch, p.sequence_parallel, p.overlap.tensor, program::traits_of(p.schedule).splits_backward,
             p.offload.activations, p.attention, p.overlap.expert, issues_longer(p),
             dense || p.expert == 1 ? program::ExpertDispatch::kStack : p.expert_dispatch, p.fp8_parameter_gather);
  append(key, kind);
  return key;
}

// What sums and keeps gradients, parameters and optimizer state. How layers are recomputed does not matter here.
Key state_fields(const Job& job, ChunkKey kind) {
  const Plan& p = job.plan;
  const bool accumulates =
      program::micro_batches(p, job.training.global_batch) > 1 || program::traits_of(p.schedule).splits_backward;
  Key key =
      key_of(p.tensor, p.context, p.expert, p.expert_tensor, p.data, p.zero_stage, p.shard_group, p.sequence_parallel,
             p.overlap.gradient_reduction, p.overlap.parameter_gather, p.compression, p.offload.optimizer,
             p.offload.gradients, p.offload.parameters, p.pipeline > 1, accumulates, p.fp8_parameter_gather);
  if (kind.embedding || kind.head) key.push_back(program::traits_of(p.schedule).folds ? 1 : 0);  // who adds tied ones
  kind.recompute = program::Recompute::kNone;
  kind.modules = {};
  kind.again = 0;
  kind.group = 1;
  append(key, kind);
  return key;
}

bool is_of_passes(Space space) {
  switch (space) {
    case Space::kFrame:
    case Space::kTokens:
    case Space::kDeferred:
    case Space::kWorkspace:
    case Space::kForwardWorkspace:
    case Space::kOffloadedActivation:
      return true;
    default:
      return false;
  }
}

KindCosts transfers_of(const KindCosts& whole) {
  KindCosts part;
  part.send_forward = whole.send_forward;
  part.send_backward = whole.send_backward;
  part.gather_forward = whole.gather_forward;
  part.gather_backward = whole.gather_backward;
  part.send_bus = whole.send_bus;
  return part;
}

// Enters what `from` knows of the passes.
void set_passes(KindCosts& costs, const KindCosts& from) {
  costs.forward = from.forward;
  costs.backward = from.backward;
  costs.exchanges = from.exchanges;
  costs.turns = from.turns;
  costs.forward_lead = from.forward_lead;
  costs.backward_lead = from.backward_lead;
  costs.weights = from.weights;
  costs.forward_through = from.forward_through;
  costs.backward_through = from.backward_through;
  costs.copies = from.copies;
  costs.forward_bus = from.forward_bus;
  costs.backward_bus = from.backward_bus;
  costs.copies_bus = from.copies_bus;
}

KindCosts passes_of(const KindCosts& whole) {
  KindCosts part;
  set_passes(part, whole);
  return part;
}

KindCosts joined(KindCosts costs, const KindCosts& transfers) {
  costs.send_forward = transfers.send_forward;
  costs.send_backward = transfers.send_backward;
  costs.gather_forward = transfers.gather_forward;
  costs.gather_backward = transfers.gather_backward;
  costs.send_bus = transfers.send_bus;
  return costs;
}

}  // namespace

// FNV-1a over whole numbers, and what mixes their upper bits into the lower ones.
std::size_t SharedCosts::Hash::operator()(const Key& key) const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::int64_t value : key) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

int SharedCosts::Layers::first_alike(int layer, int count) const {
  const auto alike = kind_of.begin() + layer;
  const auto found = std::search(kind_of.begin(), alike + count, alike, alike + count);
  return static_cast<int>(found - kind_of.begin());
}

const SharedCosts::Layers& SharedCosts::layers(const models::Model& model) {
  const std::lock_guard lock(mutex_);
  if (layers_alike_) return *layers_alike_;
  Layers layers{models::layer_kinds(model), {}};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const models::LayerKind kind = model.layer_kind(layer);
    const auto known = std::ranges::find(layers.kinds, kind, &models::LayersOfKind::kind);
    layers.kind_of.push_back(static_cast<int>(known - layers.kinds.begin()));
  }
  layers_alike_ = std::make_unique<const Layers>(std::move(layers));
  return *layers_alike_;
}

program::Settings SharedCosts::settings(const Job& job, const program::StackTraits& stack) {
  const program::Settings* other = nullptr;
  {
    const std::lock_guard lock(mutex_);
    other = settings_.get();
  }
  if (other != nullptr) return program::settings_of(job, stack, other);
  auto fresh = std::make_unique<const program::Settings>(program::settings_of(job, stack));
  const program::Settings copy = *fresh;
  const std::lock_guard lock(mutex_);
  if (!settings_) settings_ = std::move(fresh);
  return copy;
}

template <class Value>
std::optional<Value> SharedCosts::find(const Known<Value>& known, const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = known.find(key);
  return found == known.end() ? std::nullopt : std::optional<Value>(found->second);
}

// Embedding and head take the same time with any layer.
KindCosts SharedCosts::with_ends(const Job& job, const ChunkKey& kind, const StagePlace& place, const Coster& coster) {
  const Plan& p = job.plan;
  const Key key = key_of(p.tensor, p.context, p.context_method, p.context_heads, p.micro_batch, p.sequence_parallel,
                         p.overlap.tensor, program::traits_of(p.schedule).splits_backward, p.overlap.expert,
                         kind.embedding, kind.head, place.dense, issues_longer(p));
  auto ends = find(ends_, key);
  if (!ends) {
    const KindCosts fresh = passes_of(coster(kind, {.passes = true}));
    const std::lock_guard lock(mutex_);
    ends = ends_.try_emplace(key, fresh).first->second;
  }
  ChunkKey layer = kind;
  layer.embedding = layer.head = false;
  KindCosts passes = costs(job, layer, place, Part::kPasses, coster);
  for (const auto part :
       {&KindCosts::forward, &KindCosts::backward, &KindCosts::exchanges, &KindCosts::weights, &KindCosts::forward_bus,
        &KindCosts::backward_bus, &KindCosts::forward_through, &KindCosts::backward_through}) {
    (passes.*part).ends = ((*ends).*part).ends;
  }
  passes.forward_lead = ends->forward_lead;
  passes.backward_lead = ends->backward_lead;
  Key known = pass_fields(job, kind);
  known.push_back(place_of_passes(job, kind, place));
  const std::lock_guard lock(mutex_);
  return passes_.try_emplace(std::move(known), passes).first->second;
}

KindCosts SharedCosts::costs(const Job& job, const ChunkKey& kind, const StagePlace& place, Part part,
                             const Coster& coster) {
  Key pass_key = pass_fields(job, kind), state_key, transfer_key;
  pass_key.push_back(place_of_passes(job, kind, place));
  auto passes = find(passes_, pass_key);
  if (!passes && has_plain_ends(job, kind)) passes = with_ends(job, kind, place, coster);
  if (passes && part == Part::kPasses) return *passes;
  std::optional<KindCosts> sent, state;
  const bool sends = part != Part::kPasses, all = part == Part::kAll;
  if (sends) {
    transfer_key = key_of(job.plan.tensor, job.plan.context, job.plan.micro_batch, job.plan.sequence_parallel,
                          place.transfers, place.dense, kind.embedding, kind.head);
    sent = find(transfers_, transfer_key);
  }
  if (all) {
    state_key = state_fields(job, kind);
    state_key.push_back(place.state);
    state = find(states_, state_key);
  }
  const Wanted missing{!passes, sends && !sent, all && !state};
  if (missing.passes) {
    const KindCosts fresh = passes_of(coster(kind, {.passes = true}));
    const std::lock_guard lock(mutex_);
    passes = passes_.try_emplace(std::move(pass_key), fresh).first->second;
  }
  if (missing.transfers || missing.state) {
    const KindCosts fresh = coster(kind, {.transfers = missing.transfers, .state = missing.state});
    const std::lock_guard lock(mutex_);
    if (missing.transfers) sent = transfers_.try_emplace(std::move(transfer_key), transfers_of(fresh)).first->second;
    if (missing.state) state = states_.try_emplace(std::move(state_key), fresh).first->second;
  }
  KindCosts costs = all ? *state : *passes;
  if (sends) costs = joined(costs, *sent);
  set_passes(costs, *passes);
  return costs;
}

std::shared_ptr<const CostedPassLayer> SharedCosts::layer(const Job& job, const ChunkKey& kind,
                                                          const std::function<CostedPassLayer()>& lower) {
  Key key = pass_fields(job, kind);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = layer_of_.find(key); known != layer_of_.end()) {
      layers_.splice(layers_.begin(), layers_, known->second);
      return layers_.front().layer;
    }
  }
  auto fresh = std::make_shared<const CostedPassLayer>(lower());
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = layer_of_.try_emplace(key);
  if (!is_new) return known->second->layer;
  layers_.push_front({std::move(key), std::move(fresh)});
  known->second = layers_.begin();
  if (layers_.size() > kMostLayers) {
    layer_of_.erase(layers_.back().key);
    layers_.pop_back();
  }
  return layers_.front().layer;
}

// Buffers of a space are consecutive: slots of copies are those of the state, followed by those of the
// passes.
SharedCosts::Bytes SharedCosts::bytes(const Job& job, const program::StackTraits& stack, const ChunkKey& kind) {
  const Key pass_key = pass_fields(job, kind), state_key = state_fields(job, kind);
  auto passes = find(pass_bytes_, pass_key);
  if (!passes) {
    Job here = job;  // whose state stays, so that all slots are of the passes
    here.plan.offload.optimizer = here.plan.offload.gradients = here.plan.offload.parameters = Storage::kNone;
    std::vector<program::Body> bodies;
    note_bytes(here, kind, program::make_chunk_template(here, stack, kind, 0, bodies).bytes);
    passes = find(pass_bytes_, pass_key);
  }
  auto state = find(state_bytes_, state_key);
  if (!state) {
    state = program::bytes_without_passes(job, stack, kind);
    const std::lock_guard lock(mutex_);
    state_bytes_.try_emplace(state_key, *state);
  }
  Bytes bytes = *state;
  for (std::size_t space = 0; space < bytes.size(); ++space) {
    if (is_of_passes(static_cast<Space>(space))) bytes[space] = (*passes)[space];
  }
  bytes[kStagingAt] += (*passes)[kStagingAt];
  return bytes;
}

void SharedCosts::note_bytes(const Job& job, const ChunkKey& kind, const Bytes& bytes) {
  const program::Offload& offload = job.plan.offload;
  const bool state_stays = keeps(offload.optimizer) && keeps(offload.gradients) && keeps(offload.parameters);
  if (!state_stays && !keeps(offload.activations)) return;  // whose slots are whose cannot be told
  Bytes passes = bytes, state = bytes;
  (state_stays ? state : passes)[kStagingAt] = 0;
  const std::lock_guard lock(mutex_);
  pass_bytes_.try_emplace(pass_fields(job, kind), passes);
  state_bytes_.try_emplace(state_fields(job, kind), state);
}

std::shared_ptr<const std::vector<StageLimits>> SharedCosts::limits(const Plan& plan, const hardware::Cluster& placed) {
  Key key = key_of(plan.pipeline, plan.ranks());
  if (!placed.homogeneous()) {
    key.insert(key.end(), plan.placement.begin(), plan.placement.end());
    key.insert(key.end(), plan.stage_nodes.begin(), plan.stage_nodes.end());
    if (!plan.placement.ends_with("pipeline")) key.insert(key.end(), {plan.tensor, plan.context, plan.data});
  }
  if (auto known = find(limits_, key)) return std::move(*known);
  auto fresh = std::make_shared<const std::vector<StageLimits>>(
      limits_of(program::Mesh(plan), program::replica_kinds(plan), placed));
  const std::lock_guard lock(mutex_);
  return limits_.try_emplace(std::move(key), std::move(fresh)).first->second;
}

// One chunk holds what its stage does. Of several each holds a part that is counted: in the steady state of a schedule
// frames come back as fast as they are taken, so the first rounds show the most there are.
std::vector<Frames> SharedCosts::frames(const Plan& plan, int stage, std::int64_t micro_batches,
                                        const std::vector<int>& kinds) {
  constexpr std::int64_t kRounds = 4;
  if (plan.virtual_stages == 1) {
    const auto order = program::order_of(plan.schedule, stage_place(plan, stage), micro_batches);
    return {Frames{static_cast<int>(order.in_flight()), static_cast<int>(order.between_halves())}};
  }
  const bool steady = program::traits_of(plan.schedule).has_steady_state();
  const std::int64_t some = steady ? std::min(micro_batches, kRounds * plan.pipeline) : micro_batches;
  Key key = key_of(plan.schedule, stage, plan.pipeline, plan.virtual_stages, plan.overlap.expert, some);
  key.insert(key.end(), kinds.begin(), kinds.end());
  if (auto known = find(frames_, key)) return std::move(*known);
  const auto slots =
      program::schedule_of(plan.schedule, stage, plan.pipeline, plan.virtual_stages, some, plan.overlap.expert);
  std::vector<Frames> frames;
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const auto first = static_cast<std::size_t>(std::find(kinds.begin(), kinds.end(), kinds[c]) - kinds.begin());
    if (first < c) {
      frames.push_back(frames[first]);
      continue;
    }
    std::vector<int> alike;
    for (std::size_t other = 0; other < kinds.size(); ++other) {
      if (kinds[other] == kinds[c]) alike.push_back(static_cast<int>(other));
    }
    frames.push_back({program::frames_needed(slots, alike), program::deferred_frames_needed(slots, alike)});
  }
  const std::lock_guard lock(mutex_);
  frames_.try_emplace(std::move(key), frames);
  return frames;
}

}  // namespace trivium::simulator
