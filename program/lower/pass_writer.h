// Bodies of a chunk template that a micro-batch passes through: forward, backward and the transfers between stages.
#pragma once

#include <string>
#include <vector>

#include "program/lower/chunk_template.h"
#include "program/lower/layers.h"
#include "program/lower/offload.h"

namespace trivium::program {

/// Writes the passes of one chunk template. What it is given must outlive it.
class PassWriter {
 public:
  PassWriter(const Job& job, const ChunkKey& key, const ChunkShape& shape, const ParameterBuffers& parameters,
             LayerSlots& slots, BodyBuilder& builder, ChunkTemplate& chunk, std::vector<Body>& bodies);

  /// Places the frame's buffers, appends the bodies and enters their numbers in the template. `slots`: where layers
  /// are kept that are offloaded.
  void write();
  /// The transfers alone, of buffers that nothing else names.
  void write_transfers_alone();

 private:
  void place_ends();
  void place_inputs();
  void place_modules();
  std::string module_name(int layer) const;
  int write_forward(const char* name);
  int write_backward(const char* name, bool splits);
  void write_backward_weights();
  void write_transfers();

  void keep_layers_of_forward();
  int gradient_at_end();
  int modules_backward();
  int head_gradient();
  void layer_again(int layer);
  void layers_backward(int d);
  void group_again(int last);
  void place_inner_inputs(const char* name);
  int gradient_of_input(int layer, int d);
  void embedding_backward();
  int transfer(OpKind kind, Pass pass, int buffer);
  int gather_received(Pass pass, int buffer);
  int append();

  LayerKept& kept(int layer) { return kept_[static_cast<std::size_t>(layer)]; }
  /// Layers including those of multi-token prediction, which are numbered after them.
  int all_layers() const { return key_.layers + chunk_.mtp; }
  const LayerWriter::ModuleKept& module(int layer) const {
    return modules_[static_cast<std::size_t>(layer - key_.layers)];
  }
  int input_of(int layer) const { return inputs_[static_cast<std::size_t>(layer)]; }
  int output_of(int layer) const {
    return layer + 1 < static_cast<int>(inputs_.size()) ? input_of(layer + 1) : output_;
  }
  /// Whole, from its input.
  bool recomputes(int layer) const {
    return key_.recompute == Recompute::kFull && (key_.again == 0 || layer < key_.again);
  }
  /// Whether layers are made again together; each pass then has its segment.
  bool in_groups() const { return key_.group > 1; }
  bool begins_group(int layer) const { return layer % key_.group == 0; }
  bool ends_group(int layer) const { return layer + 1 == key_.layers || begins_group(layer + 1); }
  int part_back(int layer) const { return chunk_.parts_at_end() + key_.layers - 1 - layer; }
  LayerKept keep_nothing(int layer);
  int input_of_kept(int layer) const { return layer < key_.layers ? input_of(layer) : module(layer).input; }

  const Job& job_;
  const ChunkKey& key_;
  const ChunkShape& shape_;
  BodyBuilder& builder_;
  ChunkTemplate& chunk_;
  std::vector<Body>& bodies_;
  LayerWriter writer_;
  const std::int64_t elements_;  ///< of what passes between layers
  const bool splits_backward_;
  bool splits_this_ = false;  ///< the backward that is being written
  int output_ = kNoBuffer, loss_ = kNoBuffer;
  std::vector<int> inputs_;  ///< of every layer, and of the head; within a group those of the current body
  LayerWriter::HeadKept head_;
  std::vector<LayerWriter::ModuleKept> modules_;
  std::vector<LayerKept> kept_;  ///< by layer, modules' last
};

}  // namespace trivium::program
