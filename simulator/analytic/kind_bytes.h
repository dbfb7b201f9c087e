// Bytes of chunk kinds, worked out once for all plans of a search.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "program/chunk_kind.h"

namespace trivium::simulator {

/// What a kind takes depends on few of the fields that a search opens: not on the pipeline, the placement or, without
/// sharding, on the replicas. Serves plans of one job that differ in fields of planner/space.h alone. Thread-safe.
class KindBytes {
 public:
  using Bytes = std::array<std::int64_t, program::kSpaces>;

  /// Bytes of the kind `key` under a plan; lowered where no plan needed them before.
  Bytes of(const program::Job& job, const program::Habits& habits, const program::ChunkKey& key);

 private:
  using Fields = std::tuple<int, bool, int, int, int, int, int, int, bool, bool, bool, bool, program::Storage,
                            program::Storage, int, bool, bool, program::Recompute>;
  static Fields fields_of(const program::Plan& plan, const program::ChunkKey& key);

  std::mutex mutex_;
  std::map<Fields, Bytes> known_;
};

}  // namespace trivium::simulator
