// Gradients of key heads that several tensor ranks hold.
#include <fmt/format.h>

#include <algorithm>

#include "program/lower/optimizer_bodies.h"

namespace trivium::program {

// Reductions follow each other on one lane: one place for all.
void OptimizerBodies::place_keys() {
  std::int64_t widest = 0;
  for (const Parameter& p : b_.kind().parameters) {
    if (!p.frozen) widest = std::max(widest, p.local_rows * p.key_columns);
  }
  if (widest > 0) keys_ = b_.place("gradients of shared key heads", Space::kGathered, gradient_, widest);
}

// With fewer key heads than tensor ranks each rank has the gradient of its own query heads' keys and values: it is
// summed over the ranks that hold the same ones.
void OptimizerBodies::reduce_keys(const Bucket& bucket) {
  if (keys_ == kNoBuffer || bucket.expert) return;
  const ChunkShape shape(job_);
  ChunkTemplate& kind = b_.kind();
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    const Parameter p = kind.parameters[i];
    if (p.key_columns == 0 || p.frozen || !holds(bucket, p)) continue;
    b_.segment(fmt::format("keys {}", i));
    const std::string name = fmt::format("key columns of parameter {}", i);
    const int keys = b_.view(name, Space::kGathered, gradient_, p.local_rows * p.key_columns, b_.buffer(keys_).offset);
    const auto move = [&](OpKind what, int from, int to) {
      Op& op = b_.add(what, Pass::kBackward, {from}, {to});
      op.lane = Lane::kData;
      op.dtype = gradient_;
      op.m = p.local_rows, op.n = p.key_columns;
      op.heads = shape.heads, op.kv_heads = shape.kv_heads, op.head_dim = shape.head_dim;
    };
    move(OpKind::kSplitKv, p.gradient, keys);
    Op& sum = b_.add(OpKind::kAllReduce, Pass::kBackward, {keys}, {keys});
    sum.lane = Lane::kData;
    sum.group = Group::kKeys;
    sum.dtype = gradient_;
    sum.elements = p.local_rows * p.key_columns;
    move(OpKind::kJoinKv, keys, p.gradient);
  }
}

}  // namespace trivium::program
