// A chunk kind: parameters, buckets, buffers and every body that tasks of such a chunk run.
#pragma once

#include <vector>

#include "program/program.h"

namespace trivium::program {

/// What tells chunk kinds apart.
struct ChunkKey {
  int layers = 0;
  bool embedding = false, head = false;
  Recompute recompute = Recompute::kNone;
  bool operator==(const ChunkKey&) const = default;
};

/// Builds the kind and appends its bodies to `bodies`. `kind_index`: where the caller will put it.
ChunkKind make_chunk_kind(const Job& job, const Habits& habits, const ChunkKey& key, int kind_index,
                          std::vector<Body>& bodies);

}  // namespace trivium::program
