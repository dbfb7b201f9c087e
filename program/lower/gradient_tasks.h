// Copies that offloaded gradients add around whatever adds to them, sums them over ranks or reads them.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "program/lower/sharding_tasks.h"

namespace trivium::program {

/// Writes the copies and their dependencies. What is stored of a bucket's gradients, the whole or a shard, is
/// fetched to one of its chunk's two slots, buckets in turn, for every task that uses it, unless it is still there,
/// and is stored after every task that changed it. Called while tasks are written: uses of a chunk come in execution
/// order.
class GradientTasks {
 public:
  GradientTasks(const Program& program, Role& role) : program_(program), role_(role) {}

  bool is_offloaded() const { return program_.job.plan.offload.gradients != Storage::kNone; }

  /// What happens to the slot after a use: nothing, a store, or a store after the bucket's next use, which comes before
  /// another bucket's.
  enum class Behind { kUnchanged, kStored, kStoredLater };
  /// Segments [first, last] of `task` use the bucket. Does nothing where gradients stay.
  void use(int task, SegmentRange segments, std::size_t bucket, Behind behind);
  /// The same for a task that uses the bucket throughout.
  void use(int task, std::size_t bucket);

 private:
  struct Slot {
    int bucket = -1;
    int task = -1;  // last use, and up to which segment
    std::int16_t segment = 0;
    int store = -1;  // after that use
  };

  int add(TaskKind kind, int body, int like);
  void wait(int task, int for_task, std::int16_t segment = kWholeTask, std::int16_t before = 0);

  const Program& program_;
  Role& role_;
  std::map<std::pair<int, std::size_t>, Slot> slots_;  // by chunk and slot
  std::map<std::pair<int, std::size_t>, int> stored_;  // by chunk and bucket: the last store
};

}  // namespace trivium::program
