// A rank's memory: one allocation (or, offloaded to disk, one file) a space, laid out by the Program's own map.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "program/ir/program.h"
#include "runtime/backend.h"
#include "runtime/executor/disk_arena.h"

namespace trivium::runtime {

/// Memory of one rank, zeroed. Addresses follow from the Program alone, so what is allocated is what was predicted.
class Arenas {
 public:
  /// All spaces, in memory of the backend.
  Arenas(const program::Program& program, const program::Role& role, Backend& backend);
  /// Some spaces; the others have no memory, and their addresses mean nothing.
  Arenas(const program::Program& program, const program::Role& role, Backend& backend,
         std::span<const program::Space> spaces);

  /// Start of a chunk's part of a space; for kFrame and kTokens of its frame `frame`, for kDeferred of `delayed`.
  std::byte* base(int chunk, program::Space space, int frame, int delayed = 0) const;
  /// Address of a buffer of the chunk's kind; null for kNoBuffer.
  std::byte* address(int chunk, int buffer, int frame, int delayed = 0) const;
  /// Of a buffer that a task's body names: in its frames, or what is left in a frame of the chunk before it.
  std::byte* address(const program::Task& task, int buffer) const;
  /// Start of the whole space (kScalar: loss, then the norm pair).
  std::byte* space(program::Space which) const {
    const auto s = static_cast<std::size_t>(which);
    return files_[s] ? files_[s]->begin() : memory_[s].get();
  }
  std::int64_t bytes() const { return bytes_; }  ///< of the device: what is offloaded is not counted

  /// What the spaces hold, in memory of the host. Waits for the backend's lanes.
  Arenas on_host(Backend& backend, std::span<const program::Space> spaces) const;
  /// Takes over what `host` holds, in the order of the compute lane.
  void take(Backend& backend, const Arenas& host, std::span<const program::Space> spaces);

 private:
  const program::Program& program_;
  const program::Role& role_;
  std::array<Memory, program::kSpaces> memory_;
  std::array<std::unique_ptr<DiskArena>, program::kSpaces> files_;  // in place of memory_, where offloaded to disk
  std::int64_t bytes_ = 0;
};

}  // namespace trivium::runtime
