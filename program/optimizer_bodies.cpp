#include "program/optimizer_bodies.h"

#include <fmt/format.h>

#include "program/chunk_shape.h"

namespace trivium::program {
namespace {

// Element type of the gradient space of a kind: that of its first gradient buffer.
DType gradient_type(const ChunkKind& kind) {
  for (const Buffer& buffer : kind.buffers) {
    if (buffer.space == Space::kGradient) return buffer.dtype;
  }
  return DType::kFp32;
}

int find_buffer(const ChunkKind& kind, const std::string& name) {
  for (std::size_t i = 0; i < kind.buffers.size(); ++i) {
    if (kind.buffers[i].name == name) return static_cast<int>(i);
  }
  return kNoBuffer;
}

}  // namespace

void OptimizerBodies::add() {
  ChunkKind& kind = b_.kind();
  for (std::size_t i = 0; i < kind.buckets.size(); ++i) {
    kind.reduce.push_back(reduce(static_cast<int>(i)));
    kind.gather.push_back(gather(static_cast<int>(i)));
  }
  kind.norm = norm();
  kind.norm_reduce = norm_reduce();
  kind.optimizer = optimizer();
}

int OptimizerBodies::append() {
  Body body = b_.finish();
  if (body.ops.empty()) return -1;
  bodies_.push_back(std::move(body));
  return static_cast<int>(bodies_.size()) - 1;
}

// With sequence parallel every tensor rank saw its own tokens only: gradients of replicated parameters are partial
// sums. They come first in each segment, so one contiguous range a segment is reduced.
void OptimizerBodies::reduce_partial_replicas(const Bucket& bucket) {
  if (!job_.plan.sequence_parallel) return;
  ChunkKind& kind = b_.kind();
  const DType type = gradient_type(kind);
  for (int segment = bucket.first_segment; segment <= bucket.last_segment; ++segment) {
    std::int64_t begin = -1, end = -1;
    for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
      const Parameter& p = kind.parameters[i];
      if (segment_of_parameter_[i] != segment || p.split != Split::kReplicated) continue;
      if (begin < 0) begin = p.offset;
      end = p.offset + p.local_rows * p.local_columns;
    }
    if (begin < 0) continue;
    b_.segment(fmt::format("replicas {}", segment));
    const int range = b_.view(fmt::format("gradients of replicas, segment {}", segment), Space::kGradient, type,
                              end - begin, begin * size_of(type));
    Op& op = b_.add(OpKind::kAllReduce, Pass::kBackward, {range}, {range});
    op.lane = Lane::kData;
    op.group = Group::kTensor;
    op.dtype = type;
    op.elements = end - begin;
  }
}

// The two uses of a tied embedding accumulate apart and are added once: here where one chunk holds both, else between
// the first and the last stage.
void OptimizerBodies::reduce_tied(const Bucket& bucket) {
  ChunkKind& kind = b_.kind();
  if (!job_.model.tied_embeddings) return;
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    if (kind.parameters[i].name != "wte.weight" || !spans(bucket, segment_of_parameter_[i])) continue;
    const int gradient = find_buffer(kind, "gradient of wte.weight");
    if (kind.embedding && kind.head) {
      const int as_head = find_buffer(kind, "gradient of wte.weight as head");
      if (as_head == kNoBuffer) continue;
      b_.segment("tied");
      Op& op = b_.add(OpKind::kAdd, Pass::kBackward, {as_head}, {gradient});
      op.dtype = b_.buffer(gradient).dtype;
      op.elements = b_.buffer(gradient).elements;
      op.m = op.elements;
      op.n = 1;
    } else {
      b_.segment("tied");
      Op& op = b_.add(OpKind::kAllReduce, Pass::kBackward, {gradient}, {gradient});
      op.lane = Lane::kData;
      op.group = Group::kEmbedding;
      op.dtype = b_.buffer(gradient).dtype;
      op.elements = b_.buffer(gradient).elements;
    }
  }
}

int OptimizerBodies::reduce(int index) {
  ChunkKind& kind = b_.kind();
  const Bucket bucket = kind.buckets[static_cast<std::size_t>(index)];
  const DType type = gradient_type(kind);
  // Segments of their own, so that the collective that joins stages has a place of its own in the total order.
  b_.begin(fmt::format("reduce bucket {}", index));
  reduce_partial_replicas(bucket);
  reduce_tied(bucket);
  if (job_.plan.data * job_.plan.context > 1) {
    b_.segment("bucket");
    const int whole =
        b_.view(fmt::format("bucket {}", index), Space::kGradient, type, bucket.elements, bucket.begin * size_of(type));
    const bool sharded = job_.plan.zero_stage > 0;
    Op& op = b_.add(sharded ? OpKind::kReduceScatter : OpKind::kAllReduce, Pass::kBackward, {whole}, {whole});
    op.lane = Lane::kData;
    op.group = Group::kData;
    op.dtype = is_half(job_.plan.precision) ? job_.plan.reduce_dtype : type;
    op.elements = bucket.elements;
    op.bucket = static_cast<std::int16_t>(index);
  }
  return append();
}

int OptimizerBodies::norm() {
  ChunkKind& kind = b_.kind();
  const int pair = b_.view("gradient norm", Space::kScalar, DType::kFp64, 2, size_of(DType::kFp64));
  b_.begin("gradient norm");
  b_.segment("norm");
  for (std::size_t i = 0; i < kind.buckets.size(); ++i) {
    Op& op = b_.add(OpKind::kGradientNorm, Pass::kOptimizer, {}, {pair});
    op.dtype = gradient_type(kind);
    op.bucket = static_cast<std::int16_t>(i);
    op.elements = op.m = kind.buckets[i].shard;
    op.n = 1;
  }
  return append();
}

int OptimizerBodies::norm_reduce() {
  const bool sharded = job_.plan.zero_stage > 0;
  const Group group = sharded ? Group::kWorld : Group::kModel;
  b_.begin("norm reduce");
  b_.segment("norm");
  if (Mesh(job_.plan).group_size(group) > 1) {
    const int pair = find_buffer(b_.kind(), "gradient norm");
    Op& op = b_.add(OpKind::kAllReduce, Pass::kOptimizer, {pair}, {pair});
    op.lane = Lane::kCompute;
    op.group = group;
    op.reduction = Reduction::kPairSum;
    op.dtype = DType::kFp64;
    op.elements = 2;
  }
  return append();
}

int OptimizerBodies::optimizer() {
  ChunkKind& kind = b_.kind();
  const int pair = find_buffer(kind, "gradient norm");
  b_.begin("optimizer");
  for (std::size_t i = 0; i < kind.buckets.size(); ++i) {
    b_.segment(fmt::format("bucket {}", i));
    Op& step = b_.add(OpKind::kAdamW, Pass::kOptimizer, {pair}, {});
    step.dtype = job_.plan.precision;
    step.bucket = static_cast<std::int16_t>(i);
    step.elements = step.m = kind.buckets[i].shard;
    step.n = 1;
    Op& zero = b_.add(OpKind::kZeroGradients, Pass::kOptimizer, {}, {});
    zero.dtype = gradient_type(kind);
    zero.bucket = static_cast<std::int16_t>(i);
    zero.elements = zero.m = kind.buckets[i].elements;
    zero.n = 1;
  }
  const int as_head = find_buffer(kind, "gradient of wte.weight as head");
  if (as_head != kNoBuffer) {
    Op& zero = b_.add(OpKind::kZeroGradients, Pass::kOptimizer, {}, {as_head});
    zero.dtype = gradient_type(kind);
    zero.elements = zero.m = b_.buffer(as_head).elements;
    zero.n = 1;
  }
  return append();
}

int OptimizerBodies::gather(int index) {
  const bool sharded = job_.plan.zero_stage > 0 && job_.plan.data * job_.plan.context > 1;
  ChunkKind& kind = b_.kind();
  const Bucket bucket = kind.buckets[static_cast<std::size_t>(index)];
  const DType type = job_.plan.precision;
  b_.begin(fmt::format("gather bucket {}", index));
  b_.segment("bucket");
  if (sharded) {
    const int whole = b_.view(fmt::format("parameters of bucket {}", index), Space::kParameter, type, bucket.elements,
                              bucket.begin * size_of(type));
    Op& op = b_.add(OpKind::kAllGather, Pass::kOptimizer, {whole}, {whole});
    op.lane = Lane::kData;
    op.group = Group::kData;
    op.dtype = type;
    op.elements = bucket.elements;
    op.bucket = static_cast<std::int16_t>(index);
  }
  return append();
}

}  // namespace trivium::program
