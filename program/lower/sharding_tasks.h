// Tasks that sharded parameters and gradients add around the passes of a stage.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "program/lower/sharding.h"

namespace trivium::program {

/// Writes the gathers a pass waits for and the reductions that follow it, with what they wait for themselves: slots
/// come free, and no bucket is gathered earlier than the plan's prefetch allows. Used while tasks are written, in the
/// order of the passes.
class ShardedTasks {
 public:
  ShardedTasks(const Program& program, Role& role);

  /// ZeRO 1 and 2 that gather during the forward: all buckets, before the first pass.
  void gather_first();
  /// Gathers and reductions of the pass `task` (forward or backward), which was added last.
  void around_pass(int task);
  /// The task after which the shard of a bucket's gradients is complete: its last reduction, or with hybrid sharding
  /// the sum over shard groups, which is added here. Called after the last backward.
  int finish_reduction(int chunk, int bucket);

  /// The last reduction of a bucket's gradients to its shard that was added.
  int last_reduction(int chunk, std::size_t bucket) const { return reduced_.at({chunk, bucket}); }

  /// The last gather that used one of a chunk's two staging slots of offloaded parameters; -1: none did.
  int last_staged(int chunk, std::size_t slot) const {
    const auto found = last_staged_.find({chunk, slot});
    return found == last_staged_.end() ? -1 : found->second.task;
  }

  bool gathers_in_passes() const { return sharding_.parameters || sharding_.gathers_first; }

 private:
  /// When a pass reaches a bucket: after `segment` of `task` (-1: at once).
  struct Moment {
    int task = -1;
    std::int16_t segment = kWholeTask;
  };
  using Slot = std::pair<int, std::int64_t>;     // chunk template and offset within its gathered space
  using BucketOf = std::pair<int, std::size_t>;  // chunk and bucket

  int add(TaskKind kind, int body, const Task& pass);
  void wait(int task, const Moment& moment, std::int16_t before = 0);
  void gather(int pass);
  void reduce(int pass);
  int kind_index(const Task& task) const;
  const ChunkTemplate& kind_of(const Task& task) const;
  const std::vector<BucketUse>& readers(int body);
  const std::vector<SegmentRange>& writers(int body);

  const Program& program_;
  Role& role_;
  Sharding sharding_;
  std::map<int, std::vector<BucketUse>> readers_;     // by body
  std::map<int, std::vector<SegmentRange>> writers_;  // likewise
  std::vector<Moment> reached_;                       // every use of a bucket so far, in order
  std::map<Slot, Moment> last_reader_;                // of a parameter slot
  std::map<BucketOf, Moment> last_staged_;            // by chunk and staging slot of parameters
  std::map<Slot, int> last_reduction_;                // of a gradient slot
  std::map<BucketOf, int> reduced_;                   // the last reduction of a bucket
  std::map<BucketOf, int> gathered_first_;            // until its first forward waited for it
  int last_pass_ = -1;
  std::vector<int> serial_;  // reductions that the next pass waits for, where they do not overlap
};

}  // namespace trivium::program
