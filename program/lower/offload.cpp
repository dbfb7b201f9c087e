#include "program/lower/offload.h"

#include <fmt/format.h>

#include <algorithm>

namespace trivium::program {
namespace {

std::int64_t& bytes_of(ChunkTemplate& kind, Space space) { return kind.bytes[static_cast<std::size_t>(space)]; }

std::int64_t state_bytes(const ChunkTemplate& kind, std::size_t bucket) {
  const std::int64_t end = bucket + 1 < kind.buckets.size()
                               ? kind.buckets[bucket + 1].optimizer_offset
                               : kind.bytes[static_cast<std::size_t>(Space::kOffloadedState)];
  return end - kind.buckets[bucket].optimizer_offset;
}

// Two slots on the device for what is offloaded of buckets, which use them in turn; `kept`: elements of a bucket.
template <class Kept>
void place_slots(BodyBuilder& builder, const char* what, DType type, const Kept& kept, int Bucket::*staged) {
  std::vector<Bucket>& buckets = builder.kind().buckets;
  std::int64_t widest = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) widest = std::max(widest, kept(i));
  std::array<std::int64_t, 2> slots{};
  for (std::size_t i = 0; i < std::min<std::size_t>(2, buckets.size()); ++i) {
    slots[i] = builder.buffer(builder.place(fmt::format("{} slot {}", what, i), Space::kStaging, type, widest)).offset;
  }
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i].*staged =
        builder.view(fmt::format("staged {} of bucket {}", what, i), Space::kStaging, type, kept(i), slots[i % 2]);
  }
}

class CopyWriter {
 public:
  CopyWriter(BodyBuilder& builder, std::vector<Body>& bodies) : builder_(builder), bodies_(bodies) {}

  int write(OpKind kind, Storage storage, const std::string& what, int from, int to, Pass pass) {
    builder_.begin(fmt::format("{} {}", name_of(kind), what));
    builder_.segment("copy");
    Op& op = builder_.add(kind, pass, {from}, {to});
    op.lane = Lane::kCopy;
    op.dtype = DType::kUint8;
    op.elements = builder_.buffer(from).bytes();
    op.disk = storage == Storage::kDisk;
    bodies_.push_back(builder_.finish());
    return static_cast<int>(bodies_.size()) - 1;
  }

 private:
  BodyBuilder& builder_;
  std::vector<Body>& bodies_;
};

}  // namespace

int LayerSlots::place(BodyBuilder& builder, int layer, int layout, const std::string& name, DType type,
                      std::int64_t elements) {
  if (layer == static_cast<int>(rooms_of_layers_.size())) {
    rooms_of_layers_.push_back(room_number(layer, layout));
    next_ = 0;
  }
  Room& room = rooms_[rooms_of_layers_.back()];
  if (room.first < 0) room.first = layer;
  if (room.first != layer) return builder.view(name, Space::kStaging, type, elements, room.offsets[next_++]);
  std::int64_t& end = bytes_of(builder.kind(), Space::kStaging);
  const std::int64_t before = end;
  const int buffer = builder.place(name, Space::kStaging, type, elements);
  room.offsets.push_back(builder.buffer(buffer).offset);
  room.bytes += end - before;
  return buffer;
}

void place_away_gradients(BodyBuilder& builder, const Plan& plan, DType gradient) {
  if (plan.offload.gradients == Storage::kNone) return;
  ChunkTemplate& kind = builder.kind();
  std::swap(bytes_of(kind, Space::kOffloadedGradient), bytes_of(kind, Space::kGradient));
  const auto kept = [&](std::size_t i) {
    const Bucket& bucket = kind.buckets[i];
    return bucket.gradient_shard >= 0 ? bucket.shard : bucket.elements;
  };
  place_slots(builder, "gradient", gradient, kept, &Bucket::staged_gradient);
}

void place_away_parameters(BodyBuilder& builder, const Plan& plan, DType type) {
  if (plan.offload.parameters == Storage::kNone) return;
  ChunkTemplate& kind = builder.kind();
  std::swap(bytes_of(kind, Space::kOffloadedParameter), bytes_of(kind, Space::kParameter));
  const auto kept = [&](std::size_t i) { return kind.buckets[i].shard; };
  place_slots(builder, "parameter", type, kept, &Bucket::staged_parameter);
}

void place_away_state(BodyBuilder& builder, const Plan& plan) {
  if (plan.offload.optimizer == Storage::kNone) return;
  ChunkTemplate& kind = builder.kind();
  std::swap(bytes_of(kind, Space::kOffloadedState), bytes_of(kind, Space::kOptimizer));
  const auto kept = [&](std::size_t i) { return state_bytes(kind, i); };
  place_slots(builder, "optimizer", DType::kUint8, kept, &Bucket::staged_state);
}

void add_copies(BodyBuilder& builder, const Plan& plan, const LayerSlots& slots, std::vector<Body>& bodies) {
  add_bucket_copies(builder, plan, bodies);
  add_layer_copies(builder, plan, slots, bodies);
}

void add_bucket_copies(BodyBuilder& builder, const Plan& plan, std::vector<Body>& bodies) {
  ChunkTemplate& kind = builder.kind();
  CopyWriter writer(builder, bodies);
  for (std::size_t i = 0; plan.offload.optimizer != Storage::kNone && i < kind.buckets.size(); ++i) {
    const int staged = kind.buckets[i].staged_state;
    const int away = builder.view(fmt::format("state of bucket {}", i), Space::kOffloadedState, DType::kUint8,
                                  state_bytes(kind, i), kind.buckets[i].optimizer_offset);
    const std::string what = fmt::format("state of bucket {}", i);
    const Storage storage = plan.offload.optimizer;
    kind.fetch_state.push_back(writer.write(OpKind::kFetch, storage, what, away, staged, Pass::kOptimizer));
    kind.store_state.push_back(writer.write(OpKind::kStore, storage, what, staged, away, Pass::kOptimizer));
  }
  for (std::size_t i = 0; plan.offload.gradients != Storage::kNone && i < kind.buckets.size(); ++i) {
    const Buffer staged = builder.buffer(kind.buckets[i].staged_gradient);
    const std::string what = fmt::format("gradients of bucket {}", i);
    const int away = builder.view(what, Space::kOffloadedGradient, staged.dtype, staged.elements,
                                  kind.buckets[i].kept_gradients() * size_of(staged.dtype));
    const int here = kind.buckets[i].staged_gradient;
    const Storage storage = plan.offload.gradients;
    kind.fetch_gradient.push_back(writer.write(OpKind::kFetch, storage, what, away, here, Pass::kBackward));
    kind.store_gradient.push_back(writer.write(OpKind::kStore, storage, what, here, away, Pass::kBackward));
  }
}

void add_layer_copies(BodyBuilder& builder, const Plan& plan, const LayerSlots& slots, std::vector<Body>& bodies) {
  ChunkTemplate& kind = builder.kind();
  CopyWriter writer(builder, bodies);
  for (int layer = 0; plan.offload.activations != Storage::kNone && layer < kind.layers; ++layer) {
    const std::string what = fmt::format("activations of layer {}", layer);
    const int staged =
        builder.view("staged " + what, Space::kStaging, DType::kUint8, slots.bytes(layer), slots.offset(layer));
    const int away = builder.place(what, Space::kOffloadedActivation, DType::kUint8, slots.bytes(layer));
    const Storage storage = plan.offload.activations;
    kind.fetch_layer.push_back(writer.write(OpKind::kFetch, storage, what, away, staged, Pass::kBackward));
    kind.store_layer.push_back(writer.write(OpKind::kStore, storage, what, staged, away, Pass::kForward));
  }
}

}  // namespace trivium::program
