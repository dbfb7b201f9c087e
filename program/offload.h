// Offload: optimizer state and activations that are kept in the host's memory or on its disk, and come to the device
// while they are used (Rajbhandari et al. 2021, ZeRO-Infinity, arXiv 2104.07857, section 5).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "program/body_builder.h"

namespace trivium::program {

/// Two slots of Space::kStaging that the layers of a chunk use in turn: while one layer computes, another is copied.
class LayerSlots {
 public:
  /// Places the next buffer of a layer in its slot. All layers place the same buffers in the same order, layer 0 first.
  int place(BodyBuilder& builder, int layer, const std::string& name, DType type, std::int64_t elements);

  std::int64_t bytes() const { return bytes_; }  ///< of one layer
  std::int64_t offset(int layer) const { return offsets_[static_cast<std::size_t>(layer % 2)].front(); }

 private:
  std::array<std::vector<std::int64_t>, 2> offsets_;  // of every buffer, by slot
  std::size_t next_ = 0;
  int layer_ = -1;
  std::int64_t bytes_ = 0;
};

/// Moves the optimizer state of the builder's kind away: its bytes, and for every bucket the buffer in one of two slots
/// in which AdamW uses it. Does nothing where the plan keeps it on the device.
void place_away_state(BodyBuilder& builder, const Plan& plan);

/// Appends the bodies that copy states of buckets and activations of layers, one op each, and enters them in the kind.
void add_copies(BodyBuilder& builder, const Plan& plan, const LayerSlots& slots, std::vector<Body>& bodies);

}  // namespace trivium::program
