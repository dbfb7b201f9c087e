// Offload: parameters, optimizer state, gradients and activations that are kept in the host's memory or on its disk,
// and come to the device while they are used (Rajbhandari et al. 2021, ZeRO-Infinity, arXiv 2104.07857, section 5).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "program/lower/body_builder.h"
#include "program/lower/chunk_shape.h"

namespace trivium::program {

/// Two slots of Space::kStaging that the layers of a chunk use in turn: while one layer computes, another is copied.
/// Layers of different layouts (with experts, without) keep different buffers: a slot has room for each of those that
/// use it.
class LayerSlots {
 public:
  /// Places the next buffer of a layer in its slot. Layers of a layout (ChunkShape::layout) place the same buffers in
  /// the same order, layer 0 first.
  int place(BodyBuilder& builder, int layer, int layout, const std::string& name, DType type, std::int64_t elements);

  std::int64_t bytes(int layer) const { return room_of(layer).bytes; }
  std::int64_t offset(int layer) const { return room_of(layer).offsets.front(); }

 private:
  struct Room {
    int first = -1;                     // the layer that placed it
    std::vector<std::int64_t> offsets;  // of every buffer
    std::int64_t bytes = 0;
  };
  static std::size_t room_number(int layer, int layout) {
    return static_cast<std::size_t>(layer % 2 * ChunkShape::kLayouts + layout);
  }
  const Room& room_of(int layer) const { return rooms_[rooms_of_layers_[static_cast<std::size_t>(layer)]]; }

  std::array<Room, 2 * ChunkShape::kLayouts> rooms_;
  std::vector<std::size_t> rooms_of_layers_;
  std::size_t next_ = 0;
};

/// Offloads the optimizer state of the builder's kind: its bytes, and for every bucket the buffer in one of two slots
/// in which AdamW uses it. Does nothing where the plan keeps it on the device.
void place_away_state(BodyBuilder& builder, const Plan& plan);

/// Offloads the gradients that the builder's kind keeps, whole buckets or shards: their bytes, and for every bucket the
/// buffer in one of two slots in which they are accumulated and used. Does nothing where the plan keeps them on the
/// device. Precondition: place_shards.
void place_away_gradients(BodyBuilder& builder, const Plan& plan, DType gradient);

/// Offloads the parameters: their bytes, and for every bucket the buffer in one of two slots to which a rank's shard is
/// fetched, to be gathered from there and for AdamW. A rank that keeps whole buckets fetches them to where passes read
/// them. Precondition: place_shards.
void place_away_parameters(BodyBuilder& builder, const Plan& plan, DType type);

/// Appends the bodies that copy states and gradients of buckets and activations of layers, one op each, and registers
/// them in the kind.
void add_copies(BodyBuilder& builder, const Plan& plan, const LayerSlots& slots, std::vector<Body>& bodies);
void add_bucket_copies(BodyBuilder& builder, const Plan& plan, std::vector<Body>& bodies);  ///< those of buckets
void add_layer_copies(BodyBuilder& builder, const Plan& plan, const LayerSlots& slots, std::vector<Body>& bodies);

}  // namespace trivium::program
