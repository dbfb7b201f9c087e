// A chunk template: parameters, buckets, buffers and every body that tasks of such a chunk run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program/ir/program.h"

namespace trivium::program {

/// What tells chunk templates apart.
struct ChunkKey {
  int layers = 0;
  bool embedding = false, head = false;
  Recompute recompute = Recompute::kNone;
  ModuleSet modules{};  ///< that are dropped; empty unless `recompute` is selective
  int again = 0;        ///< first layers that are recomputed whole, fewer than all; 0: all, where `recompute` is full
  int phase = 0;        ///< the first layer of the model from which on as many are of the same kinds
  int group = 1;        ///< layers made again together, from the input of the first of them
  bool operator==(const ChunkKey&) const = default;
};

/// How the chunk at `position` in the model recomputes, with what it drops.
ChunkKey with_recompute(ChunkKey key, const Plan& plan, int position);

/// The phase of a chunk that begins with the given layer of the model; 0 where all layers are alike.
int phase_of(const models::Model& model, int first_layer, int layers);

/// Builds the kind and appends its bodies to `bodies`. `kind_index`: where the caller will put it.
ChunkTemplate make_chunk_template(const Job& job, const StackTraits& stack, const ChunkKey& key, int kind_index,
                                  std::vector<Body>& bodies);

/// What of a kind is built where its passes are not wanted.
struct KindParts {
  bool state = false;      ///< reductions, gathers, norm, optimizer, copies of what is offloaded of buckets
  bool transfers = false;  ///< between stages
};
/// The kind without passes: its frames and workspace say nothing.
ChunkTemplate make_parts(const Job& job, const StackTraits& stack, const ChunkKey& key, KindParts parts,
                         std::vector<Body>& bodies);

/// Bytes of the kind, by space, without what its passes keep and stage: all that depends on how replicas share it.
ChunkBytes bytes_without_passes(const Job& job, const StackTraits& stack, const ChunkKey& key);

}  // namespace trivium::program
