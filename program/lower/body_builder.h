// Builds the bodies of a chunk template: ops in issue order, their buffers, workspace offsets and cross-lane
// dependencies.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

class BodyBuilder {
 public:
  /// Buffers go to `kind`; bodies made here name it by `kind_index`.
  BodyBuilder(ChunkTemplate& kind, int kind_index);

  /// Declares a buffer of a persistent or frame space at the next free offset of that space.
  int place(std::string name, Space space, DType dtype, std::int64_t elements);
  /// Declares a buffer of a space at a given byte offset (a view of what already lies there).
  int view(std::string name, Space space, DType dtype, std::int64_t elements, std::int64_t offset);
  /// Declares a buffer that lives inside the body being built only; its offset is assigned by `finish`.
  int temporary(std::string name, DType dtype, std::int64_t elements);

  /// `workspace`: where its temporaries are.
  void begin(const std::string& name, Space workspace = Space::kWorkspace);
  /// Begins a segment, the first of a part of the model.
  void segment(const std::string& name);
  /// Begins a segment of the given part, whose last one it may not be: those of other parts may come between.
  void segment(const std::string& name, int part);
  /// Begins another segment of the same part. No segment of a part is empty but its only one.
  void cut(const std::string& name);
  /// Appends an op; FLOPs and bytes are filled in by `finish`.
  Op& add(OpKind kind, Pass pass, std::initializer_list<int> in, std::initializer_list<int> out);
  /// Ends the body: closes the last segment, counts work, links lanes, places temporaries.
  Body finish();

  const Buffer& buffer(int index) const { return kind_.buffers[static_cast<std::size_t>(index)]; }
  ChunkTemplate& kind() { return kind_; }

 private:
  void close_segment();
  void link_lanes();
  std::vector<int> releases() const;
  void place_temporaries(const std::vector<int>& released);
  void link_reused_memory(const std::vector<int>& released);
  void find_turns();
  bool is_temporary(int buffer_index) const {
    return buffer_index != kNoBuffer && is_workspace(buffer(buffer_index).space);
  }

  ChunkTemplate& kind_;
  int kind_index_;
  Body body_;  // whose ops keep their room from one to the next
  Space workspace_ = Space::kWorkspace;
  std::vector<int> temporaries_;  // of the body being built
};

}  // namespace trivium::program
