#include "simulator/analytic/cost_estimator.h"

#include <algorithm>
#include <utility>

#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "simulator/analytic/pass_layer.h"

namespace trivium::simulator {
namespace {

using program::ChunkKey;
using program::Plan;
using program::Program;

// A task for every body that is wanted of the kind, so that it is costed on the stage.
void add_bodies(program::Role& role, const program::ChunkTemplate& kind, int pipeline, bool leads_back,
                const SharedCosts::Wanted& wanted) {
  const auto add = [&](int body, int peer = -1) {
    if (body < 0) return;
    program::Task task;
    task.body = body;
    task.peer_stage = peer;
    role.tasks.push_back(task);
  };
  if (wanted.passes) {
    for (const int body : {kind.forward, kind.backward, kind.backward_weights, kind.backward_whole}) add(body);
    if (!kind.store_layer.empty()) add(kind.store_layer.front());
  }
  if (wanted.state) {
    for (const int body : {kind.norm, kind.norm_reduce, kind.optimizer}) add(body);
    for (const auto* bodies :
         {&kind.reduce, &kind.reduce_replicas, &kind.gather, &kind.fetch_state, &kind.store_state}) {
      for (const int body : *bodies) add(body);
    }
  }
  if (wanted.transfers) {
    const int after = (role.stage + 1) % pipeline, before = (role.stage + pipeline - 1) % pipeline;
    add(kind.send_forward, leads_back ? before : after);
    add(kind.send_backward, leads_back ? after : before);
    add(kind.gather_forward);
    add(kind.gather_backward);
  }
}

// `turns`: of every chunk, where passes run in pairs; nothing is claimed where those of one are not known.
void set_pairs(ScheduleCosts& costs, const std::vector<LayerTurns>& turns) {
  const auto known = [](const LayerTurns& of) { return !of.forward.empty(); };
  if (turns.empty() || !std::all_of(turns.begin(), turns.end(), known)) return;
  for (std::size_t s = 0; s < static_cast<std::size_t>(costs.pipeline); ++s) {
    for (int f = 0; f < costs.virtual_stages; ++f) {
      for (int b = 0; b < costs.virtual_stages; ++b) {
        const LayerTurns &there = turns[costs.position_of(s, f)], &back = turns[costs.position_of(s, b)];
        costs.pair_ps.push_back(pair_ps(there.forward, back.backward));
      }
    }
  }
}

struct Transfers {
  std::int64_t send_forward, send_backward, gather_forward, gather_backward, bus;
};

// Nothing is sent between chunks of one stage that follow each other.
Transfers transfers_of(const KindCosts& costs, const Plan& plan, int position) {
  const bool from_here = plan.stays(position), stays_here = position + 1 < plan.chunks() && plan.stays(position + 1);
  return {stays_here ? 0 : costs.send_forward, from_here ? 0 : costs.send_backward,
          from_here ? 0 : costs.gather_forward, stays_here ? 0 : costs.gather_backward,
          from_here || stays_here ? 0 : costs.send_bus};
}

}  // namespace

CostEstimator::CostEstimator(program::Job job, const hardware::Cluster& cluster, SharedCosts* shared)
    : cluster_(cluster),
      placed_(job.plan, cluster),
      stack_(program::stack_of(job.plan)),
      own_(shared != nullptr ? nullptr : std::make_unique<SharedCosts>()),
      shared_(shared != nullptr ? shared : own_.get()) {
  program_.job = std::move(job);
  layers_ = &shared_->layers(program_.job.model);
  program_.job.plan = program::normalised(std::move(program_.job.plan));
  program_.stack = stack_;
  program_.settings = shared_->settings(program_.job, stack_);
  program_.mesh = program::Mesh(program_.job.plan, program::key_ranks(program_.job));
  sharding_ = program::Sharding(program_.job, stack_);
  for (const hardware::NodeGroup& group : placed_.get().groups) merged_lanes_ |= !group.node.asynchronous_lanes;
  places_ = shared_->places().of(program_.job.plan, placed_.get());
}

std::vector<ChunkKey> CostEstimator::keys_of(const Plan& plan) const {
  const std::vector<int> layers = program::chunk_layers(job().model.layers, plan);
  std::vector<ChunkKey> keys;
  keys.reserve(layers.size());
  int first_layer = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    ChunkKey key{.layers = layers[i], .embedding = i == 0, .head = i + 1 == layers.size()};
    key.phase = layer_kinds().size() == 1 ? 0 : layers_->first_alike(first_layer, layers[i]);
    keys.push_back(program::with_recompute(key, plan, static_cast<int>(i)));
    first_layer += layers[i];
  }
  return keys;
}

KindCosts CostEstimator::anew(const ChunkKey& one_layer, int stage, bool leads_back,
                              const SharedCosts::Wanted& wanted) const {
  if (wanted.passes) return passes_anew(one_layer, stage);
  Program program = without_bodies();
  const program::KindParts parts{.state = wanted.state, .transfers = wanted.transfers};
  program.kinds.push_back(program::make_parts(job(), stack_, one_layer, parts, program.bodies));
  give_tasks(program, stage, leads_back, wanted);
  return kind_costs(cost(program, cluster_), placed_.get(), stage, 0, sharding_.gradients);
}

// Where nodes are alike a layer is lowered and its kernels are costed once for all places of its ranks.
KindCosts CostEstimator::passes_anew(const ChunkKey& one_layer, int stage) const {
  const auto lowered = [&] {
    Program program = without_bodies();
    program.kinds.push_back(program::make_chunk_template(job(), stack_, one_layer, 0, program.bodies));
    shared_->note_bytes(job(), one_layer, program.kinds.front().bytes);
    return program;
  };
  const hardware::Cluster& placed = placed_.get();
  if (!cluster_.homogeneous() || shares_cores(job().plan, cluster_)) {
    Program program = lowered();
    give_tasks(program, stage, false, {.passes = true});
    const CostedProgram costed = cost(program, cluster_);
    return simulator::pass_costs(pass_layer(program, 0), times_of(costed, stage, 0), program, placed, stage,
                                 merged_lanes_);
  }
  const std::shared_ptr<const CostedPassLayer> layer = shared_->layer(
      job(), one_layer, [&] { return costed_pass_layer(lowered(), 0, cluster_.groups.front().node.device); });
  const PassOpTimes times = times_of(*layer, program_, cluster_, stage);
  return simulator::pass_costs(layer->layer, times, program_, placed, stage, merged_lanes_);
}

Program CostEstimator::without_bodies() const {
  Program program;
  program.settings = program_.settings;
  program.stack = stack_;
  program.mesh = program_.mesh;
  return program;
}

void CostEstimator::give_tasks(Program& program, int stage, bool leads_back, const SharedCosts::Wanted& wanted) const {
  program.roles.resize(static_cast<std::size_t>(stage) + 1);
  for (int s = 0; s <= stage; ++s) program.roles[static_cast<std::size_t>(s)].stage = s;
  add_bodies(program.roles.back(), program.kinds.front(), job().plan.pipeline, leads_back, wanted);
}

std::size_t CostEstimator::kind_of(int layer) const {
  return static_cast<std::size_t>(layers_->kind_of[static_cast<std::size_t>(layer)]);
}

CostEstimator::Counts CostEstimator::layers_of(const ChunkKey& key) const {
  Counts counts{};
  if (layer_kinds().size() == 1) {
    counts.front() = key.layers;
    return counts;
  }
  for (int layer = key.phase; layer < key.phase + key.layers; ++layer) {
    ++counts[kind_of(layer)];
  }
  return counts;
}

std::int64_t CostEstimator::least(const ByLayerKind<std::int64_t>& by_kind) const {
  return *std::min_element(by_kind.begin(), by_kind.begin() + static_cast<std::ptrdiff_t>(layer_kinds().size()));
}

// Transfers of chunks on the way back go the other way: other ones than the same place has else.
const KindCosts& CostEstimator::costs(const ChunkKey& key, int stage, SharedCosts::Part part, bool leads_back) {
  StagePlace place = (*places_)[static_cast<std::size_t>(stage)];
  if (leads_back) place.transfers = -1 - place.transfers;
  ChunkKey alike = layer_of(key);
  alike.embedding = key.embedding;
  alike.head = key.head;
  for (const Asked& asked : asked_) {
    if (asked.key == alike && asked.place == place && asked.part == part) return *asked.costs;
  }
  std::vector<KindCosts> by_kind;
  for (const models::LayersOfKind& kind : layer_kinds()) {
    ChunkKey one = alike;
    one.phase = static_cast<int>(kind.first);
    by_kind.push_back(shared_->costs(
        job(), one, place, part,
        [&](const ChunkKey& wanted, const SharedCosts::Wanted& of) { return anew(wanted, stage, leads_back, of); }));
  }
  costs_.push_back(joined(by_kind));
  asked_.push_back({alike, place, part, &costs_.back()});
  return costs_.back();
}

std::vector<CostEstimator::StagePass> CostEstimator::stage_passes(const Plan& plan) {
  return passes_with(plan, [this](const ByLayerKind<std::int64_t>& layer) {
    std::int64_t sum = 0;
    for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) sum += layer_kinds()[kind].count * layer[kind];
    return sum / job().model.layers;
  });
}

std::vector<CostEstimator::StagePass> CostEstimator::least_stage_passes(const Plan& plan) {
  return passes_with(plan, [this](const ByLayerKind<std::int64_t>& layer) { return least(layer); });
}

std::vector<CostEstimator::StageKinds> CostEstimator::passes_by_kind(const Plan& plan) {
  std::vector<StageKinds> passes;
  passes.reserve(static_cast<std::size_t>(plan.pipeline));
  for (const ChunkKey& key : keys_of(plan)) {
    const KindCosts& c = costs(key, static_cast<int>(passes.size()), SharedCosts::Part::kPasses);
    passes.push_back({c.forward, c.backward, c.weights, c.exchanges, merged_lanes_ ? PartTimes{} : c.copies});
  }
  return passes;
}

std::vector<CostEstimator::StagePass> CostEstimator::passes_with(
    const Plan& plan, const std::function<std::int64_t(const ByLayerKind<std::int64_t>&)>& layer) {
  const auto part = [&](const PartTimes& times) { return StageTimes{times.ends, layer(times.layer)}; };
  std::vector<StagePass> passes;
  passes.reserve(static_cast<std::size_t>(plan.pipeline));
  for (const ChunkKey& key : keys_of(plan)) {
    const KindCosts& c = pass_costs(key, static_cast<int>(passes.size()), SharedCosts::Part::kPasses, false);
    passes.push_back({part(c.forward), part(c.backward), part(c.weights), part(c.exchanges),
                      merged_lanes_ ? 0 : layer(c.copies.layer)});
  }
  return passes;
}

ScheduleCosts CostEstimator::empty_schedule_costs(const Plan& plan, std::size_t chunks) const {
  ScheduleCosts schedule_costs;
  schedule_costs.schedule = plan.schedule;
  schedule_costs.pipeline = plan.pipeline;
  schedule_costs.virtual_stages = plan.virtual_stages;
  schedule_costs.pairs = plan.overlap.expert;
  schedule_costs.micro_batches = program::micro_batches(plan, job().training.global_batch);
  schedule_costs.norm_joins_stages = plan.pipeline > 1;
  schedule_costs.chunks.resize(chunks);
  schedule_costs.endings.resize(static_cast<std::size_t>(plan.pipeline));
  return schedule_costs;
}

ScheduleCosts CostEstimator::passes(const Plan& plan) {
  return passes_of(plan, keys_of(plan), [&](const ChunkKey& key, int stage, bool leads_back) -> const KindCosts& {
    return pass_costs(key, stage, SharedCosts::Part::kPassesAndTransfers, leads_back);
  });
}

ScheduleCosts CostEstimator::passes_of(const Plan& plan, const std::vector<ChunkKey>& chunks,
                                       const CostsOf& costs_of) const {
  ScheduleCosts schedule_costs = empty_schedule_costs(plan, chunks.size());
  std::vector<LayerTurns> turns;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const int position = static_cast<int>(i), layers = chunks[i].layers;
    const bool leads_back = program::traits_of(plan.schedule).leads_back(position / plan.pipeline);
    const Counts of_kinds = layers_of(chunks[i]);
    const KindCosts& c = costs_of(chunks[i], plan.stage_of(position), leads_back);
    const Transfers sent = transfers_of(c, plan, position);
    ScheduleCosts::Chunk& chunk = schedule_costs.chunks[i];
    chunk.forward = c.forward.of(of_kinds);
    chunk.backward = c.backward.of(of_kinds);
    // In pairs a whole backward is one body, which takes less than a pass and its weights apart: a bound counts
    // nothing for these.
    chunk.weights = plan.overlap.expert ? 0 : c.weights.of(of_kinds);
    chunk.exchanges = c.exchanges.of(of_kinds);
    chunk.send_forward += sent.send_forward;
    chunk.send_backward += sent.send_backward;
    if (i > 0) schedule_costs.chunks[i - 1].send_forward += sent.gather_forward;
    if (i + 1 < chunks.size()) schedule_costs.chunks[i + 1].send_backward += sent.gather_backward;
    chunk.layers = layers;
    chunk.kind = static_cast<int>(std::find(chunks.begin(), chunks.end(), chunks[i]) - chunks.begin());
    add_copies(chunk, chunks[i], c);
    const std::int64_t forward = c.forward_bus.of(of_kinds), backward = c.backward_bus.of(of_kinds);
    const PartTimes copies = merged_lanes_ ? PartTimes{} : c.copies_bus;
    const std::int64_t inside = all_but(2, copies, of_kinds);
    chunk.forward_bus = forward + inside;
    chunk.backward_bus = backward + inside;
    chunk.bus = forward + backward + copies.of(of_kinds) + sent.bus;
    chunk.forward_through = c.forward_through.of(of_kinds);
    chunk.backward_through = c.backward_through.of(of_kinds);
    hold_to_bus(chunk, plan.overlap.expert);
    if (plan.overlap.expert) turns.push_back(turns_of(chunks[i], c));
  }
  set_pairs(schedule_costs, turns);
  return schedule_costs;
}

// Of a chunk: what comes before its layers, these in the order of the pass, what comes after them.
LayerTurns CostEstimator::turns_of(const ChunkKey& key, const KindCosts& costs) const {
  LayerTurns turns{{{costs.forward_lead, 0, 0}}, {{costs.backward_lead, 0, 0}}};
  ByLayerKind<LayerTurns> of_kinds;
  for (std::size_t kind = 0; kind < layer_kinds().size(); ++kind) {
    if (costs.turns[kind]) {
      of_kinds[kind] = *costs.turns[kind];
    } else if (!layer_kinds()[kind].kind.mixture) {
      of_kinds[kind] = {{{costs.forward.layer[kind], 0, 0}}, {{costs.backward.layer[kind], 0, 0}}};
    } else {
      return {};
    }
  }
  for (int layer = 0; layer < key.layers; ++layer) {
    append(turns.forward, of_kinds[kind_of(key.phase + layer)].forward);
    append(turns.backward, of_kinds[kind_of(key.phase + key.layers - 1 - layer)].backward);
  }
  append(turns.forward, {{costs.forward.ends - costs.forward_lead, 0, 0}});
  append(turns.backward, {{costs.backward.ends - costs.backward_lead, 0, 0}});
  return turns;
}

ScheduleCosts CostEstimator::schedule_costs(const Plan& plan) { return joined(passes(plan), state(plan)); }

// From the third on, each layer waits until its slot was stored, or fetched, after the first: a pass takes no less than
// the copies of all layers but two. A backward finds two layers in their slots.
void CostEstimator::add_copies(ScheduleCosts::Chunk& chunk, const ChunkKey& key, const KindCosts& costs) const {
  if (least(costs.copies.layer) == 0 || merged_lanes_) return;
  const Counts layers = layers_of(key);
  const std::int64_t inside = all_but(2, costs.copies, layers);
  chunk.forward = std::max(chunk.forward, inside);
  chunk.backward = std::max(chunk.backward, inside);
  chunk.store = chunk.fetch = costs.copies.of(layers);
  chunk.fetch_inner = inside;
  chunk.copy_layer = range_of(costs.copies, layers).first;
  chunk.forward_layer = range_of(costs.forward, layers).first;
  chunk.backward_layer = range_of(costs.backward, layers).first;
}

}  // namespace trivium::simulator
