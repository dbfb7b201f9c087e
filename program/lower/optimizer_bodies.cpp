#include "program/lower/optimizer_bodies.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/ir/fp8_layout.h"
#include "program/lower/parameter_gather.h"

namespace trivium::program {
namespace {

int find_buffer(const ChunkTemplate& kind, const std::string& name) {
  for (std::size_t i = 0; i < kind.buffers.size(); ++i) {
    if (kind.buffers[i].name == name) return static_cast<int>(i);
  }
  return kNoBuffer;
}

}  // namespace

void OptimizerBodies::add() {
  ChunkTemplate& kind = b_.kind();
  if (sharding_.gradients && sharding_.accumulates) {  // reductions follow each other on one lane: one place for all
    std::int64_t widest = 0;
    for (const Bucket& bucket : kind.buckets) widest = std::max(widest, bucket.frozen ? 0 : bucket.shard);
    summed_ = b_.buffer(b_.place("summed part", Space::kGathered, gradient_, widest)).offset;
  }
  place_momenta();
  place_keys();
  place_wires();
  for (std::size_t i = 0; i < kind.buckets.size(); ++i) {
    kind.reduce.push_back(reduce(static_cast<int>(i)));
    kind.reduce_replicas.push_back(reduce_replicas(static_cast<int>(i)));
    kind.gather.push_back(gather(static_cast<int>(i)));
    if (!sharding_.away) continue;
    kind.fetch_parameter.push_back(copy_of_parameters(static_cast<int>(i), OpKind::kFetch));
    kind.store_parameter.push_back(copy_of_parameters(static_cast<int>(i), OpKind::kStore));
  }
  kind.tie = tie();
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
// sums. They come first in each segment, followed by those that always are partial, so one contiguous range a segment
// is reduced. A router's always are: every tensor rank has some of the rows.
void OptimizerBodies::reduce_partial_replicas(const Bucket& bucket) {
  if (job_.plan.tensor == 1) return;
  ChunkTemplate& kind = b_.kind();
  const DType type = gradient_;
  for (int segment = bucket.first_segment; segment <= bucket.last_segment; ++segment) {
    std::int64_t begin = -1, end = -1;
    for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
      const Parameter& p = kind.parameters[i];
      if (!holds(bucket, p) || segment_of_parameter_[i] != segment || p.split != Split::kReplicated) continue;
      if (!job_.plan.sequence_parallel && !p.partial_over_tensor) continue;
      if (begin < 0) begin = p.offset;
      end = p.offset + p.local_rows * p.local_columns;
    }
    if (begin < 0) continue;
    b_.segment(fmt::format("replicas {}", segment));
    const bool sharded = bucket.gradient_slot >= 0;
    const std::string name = fmt::format("gradients of replicas, segment {}", segment);
    const int range = sharded ? b_.view(name, Space::kGathered, type, end - begin,
                                        bucket.gradient_slot + (begin - bucket.begin) * size_of(type))
                              : kept_gradients(bucket, name, begin - bucket.begin, end - begin);
    Op& op = b_.add(OpKind::kAllReduce, Pass::kBackward, {range}, {range});
    op.lane = Lane::kData;
    op.group = bucket.expert ? group_splitting_experts(job_.plan) : Group::kTensor;
    op.dtype = type;
    op.elements = end - begin;
  }
}

// The uses of an embedding at both ends accumulate apart and are added once: here where one chunk holds both, by tie()
// where one stage does, else between the first and the last stage.
void OptimizerBodies::reduce_tied(const Bucket& bucket) {
  ChunkTemplate& kind = b_.kind();
  if (!job_.model.embeds_at_end() || bucket.expert || job_.training.lora.used()) return;
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    if (kind.parameters[i].name != "wte.weight" || !holds(bucket, kind.parameters[i])) continue;
    const int gradient = find_buffer(kind, "gradient of wte.weight");
    if (kind.embedding && kind.head) {
      const int at_end = find_buffer(kind, "gradient of wte.weight at the end");
      if (at_end == kNoBuffer) continue;
      b_.segment("tied");
      pointwise(OpKind::kAdd, {at_end}, gradient, b_.buffer(gradient).elements).lane = sharded_lane(bucket);
      if (bucket.gradient_slot < 0) continue;
      pointwise(OpKind::kZeroGradients, {}, at_end, b_.buffer(at_end).elements).lane = sharded_lane(bucket);
    } else if (!traits_of(job_.plan.schedule).folds) {
      b_.segment("tied");
      Op& op = b_.add(OpKind::kAllReduce, Pass::kBackward, {gradient}, {gradient});
      op.lane = Lane::kData;
      op.group = Group::kEmbedding;
      op.dtype = b_.buffer(gradient).dtype;
      op.elements = b_.buffer(gradient).elements;
    }
  }
}

// Both copies of a tied weight on one stage: each has the sum of both gradients before it is reduced, as it has where
// two stages exchange them. Where the last chunk's gradient lies is known when the stage is laid out.
int OptimizerBodies::tie() {
  ChunkTemplate& kind = b_.kind();
  const bool apart = kind.embedding && !kind.head && job_.model.embeds_at_end() && !job_.training.lora.used();
  if (!apart || !traits_of(job_.plan.schedule).folds) return -1;
  const int here = find_buffer(kind, "gradient of wte.weight");
  const std::int64_t elements = b_.buffer(here).elements;
  kind.tied_elsewhere = b_.view("gradient of wte.weight of the last chunk", Space::kGradient, gradient_, elements, 0);
  b_.begin("tie");
  b_.segment("tied");
  pointwise(OpKind::kAdd, {kind.tied_elsewhere}, here, elements);
  pointwise(OpKind::kZeroGradients, {}, kind.tied_elsewhere, elements);
  pointwise(OpKind::kAdd, {here}, kind.tied_elsewhere, elements);
  return append();
}

// A bucket's reduction kernels overlap with the passes where the reduction does.
Lane OptimizerBodies::sharded_lane(const Bucket& bucket) const {
  return bucket.gradient_slot >= 0 ? Lane::kData : Lane::kCompute;
}

Op& OptimizerBodies::pointwise(OpKind kind, std::initializer_list<int> in, int out, std::int64_t elements) {
  Op& op = b_.add(kind, Pass::kBackward, in, {out});
  op.dtype = gradient_;
  op.elements = op.m = elements;
  op.n = 1;
  return op;
}

int OptimizerBodies::reduce(int index) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  if (bucket.frozen) return -1;
  // Segments of their own, so that the collective that joins stages has a place of its own in the total order.
  b_.begin(fmt::format("reduce bucket {}", index));
  reduce_partial_replicas(bucket);
  reduce_keys(bucket);
  reduce_tied(bucket);
  if (bucket.gradient_slot >= 0) {
    reduce_to_shard(index);
  } else if (wire_ != kNoBuffer && !bucket.expert) {
    job_.plan.compression == Compression::kTopK ? reduce_largest(index) : reduce_compressed(index);
  } else if (Mesh(job_.plan).group_size(bucket.expert ? Group::kExpertData : Group::kData) > 1) {
    reduce_whole(index);
  }
  return append();
}

Group OptimizerBodies::group_of(const Bucket& bucket) const {
  return bucket.expert ? Group::kExpertData : sharding_.group;
}

// Replicas end with the whole sum, or with a sharded optimizer with their own part of it.
void OptimizerBodies::reduce_whole(int index) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  b_.segment("bucket");
  const int whole = kept_gradients(bucket, fmt::format("bucket {}", index), 0, bucket.elements);
  const bool sharded = bucket.shard < bucket.elements;
  for (int part = 0; part < bucket.parts; ++part) {
    const int buffer = part_of(whole, part, bucket.parts);
    const auto add = [&](OpKind kind, Group group, std::int64_t elements) {
      Op& op = b_.add(kind, Pass::kBackward, {buffer}, {buffer});
      op.lane = Lane::kData;
      op.group = group;
      op.dtype = is_half(job_.plan.precision) ? job_.plan.reduce_dtype : gradient_;
      op.elements = elements;
      op.bucket = static_cast<std::int16_t>(index);
    };
    add(sharded ? OpKind::kReduceScatter : OpKind::kAllReduce, group_of(bucket), bucket.elements / bucket.parts);
    if (sharding_.hybrid) add(OpKind::kAllReduce, Group::kReplica, bucket.own_run());
  }
}

// A part of what is kept of a bucket's gradients, from element `begin` of that on: where it lies on the device.
int OptimizerBodies::kept_gradients(const Bucket& bucket, const std::string& name, std::int64_t begin,
                                    std::int64_t elements) {
  const bool away = bucket.staged_gradient != kNoBuffer;
  const std::int64_t kept =
      away ? b_.buffer(bucket.staged_gradient).offset : bucket.kept_gradients() * size_of(gradient_);
  return b_.view(name, away ? Space::kStaging : Space::kGradient, gradient_, elements,
                 kept + begin * size_of(gradient_));
}

// A micro-batch's gradients: summed over the shard group, added to the shard, and cleared for the next.
void OptimizerBodies::reduce_to_shard(int index) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  b_.segment("bucket");
  const int whole =
      b_.view(fmt::format("bucket {}", index), Space::kGathered, gradient_, bucket.elements, bucket.gradient_slot);
  const int shard = kept_gradients(bucket, fmt::format("gradient shard of bucket {}", index), 0, bucket.shard);
  int part = shard;
  if (sharding_.accumulates) {
    part = b_.view(fmt::format("summed part of bucket {}", index), Space::kGathered, gradient_, bucket.shard, summed_);
  }
  in_parts(OpKind::kReduceScatter, Pass::kBackward, index, whole, part,
           is_half(job_.plan.precision) ? job_.plan.reduce_dtype : gradient_);
  if (part != shard) pointwise(OpKind::kAdd, {part}, shard, bucket.shard).lane = Lane::kData;
  pointwise(OpKind::kZeroGradients, {}, whole, bucket.elements).lane = Lane::kData;
}

int OptimizerBodies::part_of(int buffer, int part, int parts) {
  if (parts == 1) return buffer;
  const Buffer whole = b_.buffer(buffer);
  const std::int64_t elements = whole.elements / parts;
  return b_.view(fmt::format("{}, part {}", whole.name, part), whole.space, whole.dtype, elements,
                 whole.offset + part * elements * size_of(whole.dtype));
}

// One collective over a bucket, or one for each part that the stack moves by itself.
void OptimizerBodies::in_parts(OpKind kind, Pass pass, int index, int from, int to, DType on_wire) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  for (int part = 0; part < bucket.parts; ++part) {
    const int in = part_of(from, part, bucket.parts), out = from == to ? in : part_of(to, part, bucket.parts);
    Op& op = b_.add(kind, pass, {in}, {out});
    op.lane = Lane::kData;
    op.group = group_of(bucket);
    op.dtype = on_wire;
    op.elements = std::max(b_.buffer(in).elements, b_.buffer(out).elements);
    op.bucket = static_cast<std::int16_t>(index);
    if (kind == OpKind::kAllGather && job_.plan.fp8 != Fp8::kNone)
      op.k = cast_numbers(b_.kind(), bucket) / bucket.parts;
  }
}

// Hybrid sharding: shard groups add their sums once, after the last micro-batch.
int OptimizerBodies::reduce_replicas(int index) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  if (!sharding_.hybrid || bucket.gradient_slot < 0) return -1;
  b_.begin(fmt::format("reduce replicas of bucket {}", index));
  b_.segment("bucket");
  const int shard = find_buffer(b_.kind(), fmt::format("gradient shard of bucket {}", index));
  Op& op = b_.add(OpKind::kAllReduce, Pass::kBackward, {shard}, {shard});
  op.lane = Lane::kData;
  op.group = Group::kReplica;
  op.dtype = is_half(job_.plan.precision) ? job_.plan.reduce_dtype : gradient_;
  op.elements = bucket.shard;
  op.bucket = static_cast<std::int16_t>(index);
  return append();
}

int OptimizerBodies::norm() {
  ChunkTemplate& kind = b_.kind();
  const int pair = b_.view("gradient norm", Space::kScalar, DType::kFp64, 2, size_of(DType::kFp64));
  b_.begin("gradient norm");
  const bool away = job_.plan.offload.gradients != Storage::kNone;  // they come one bucket after the other
  if (!away) b_.segment("norm");
  for (std::size_t i = 0; i < kind.buckets.size() && !kind.buckets[i].frozen; ++i) {
    if (away) b_.segment(fmt::format("bucket {}", i));
    Op& op = b_.add(OpKind::kGradientNorm, Pass::kOptimizer, {}, {pair});
    op.dtype = gradient_;
    op.bucket = static_cast<std::int16_t>(i);
    op.elements = op.m = kind.buckets[i].shard;
    op.n = 1;
  }
  record_largest();
  return append();
}

// All ranks of a stage hold parts of its tensors, or cast parts of what goes through them: with the largest number of
// the whole they scale as one rank would.
void OptimizerBodies::record_largest() {
  const ChunkTemplate& kind = b_.kind();
  if (kind.history == kNoBuffer) return;
  b_.segment("largest numbers");
  const std::int64_t sites = kind.sites;
  const int step = b_.view("largest numbers of this step", Space::kOptimizer, DType::kFp32, sites,
                           b_.buffer(kind.history).offset + AmaxHistory::kThisStep * sites * size_of(DType::kFp32));
  for (const Group group : {Group::kTensor, Group::kData}) {
    if (Mesh(job_.plan).group_size(group) == 1) continue;
    Op& op = b_.add(OpKind::kAllReduce, Pass::kOptimizer, {step}, {step});
    op.lane = Lane::kCompute;
    op.group = group;
    op.reduction = Reduction::kMax;
    op.dtype = DType::kFp32;
    op.elements = sites;
  }
  Op& op = b_.add(OpKind::kRecordLargest, Pass::kOptimizer, {}, {kind.history});
  op.dtype = DType::kFp32;
  op.m = sites, op.n = 1, op.k = kAmaxHistory;
}

int OptimizerBodies::norm_reduce() {
  const bool sharded = sharding_.shards > 1;
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

void OptimizerBodies::step_by_adamw(int index, int pair) {
  const Bucket& bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  Op& step = b_.add(OpKind::kAdamW, Pass::kOptimizer, {pair, bucket.staged_state}, {});
  step.dtype = job_.plan.precision;
  step.moments = job_.plan.moment_dtype;
  step.bucket = static_cast<std::int16_t>(index);
  step.elements = step.m = bucket.shard;
  step.n = 1;
}

int OptimizerBodies::optimizer() {
  ChunkTemplate& kind = b_.kind();
  const int pair = find_buffer(kind, "gradient norm");
  b_.begin("optimizer");
  for (std::size_t i = 0; i < kind.buckets.size() && !kind.buckets[i].frozen; ++i) {
    b_.segment(fmt::format("bucket {}", i));
    kind.buckets[i].muon ? orthogonalise(static_cast<int>(i), pair) : step_by_adamw(static_cast<int>(i), pair);
    Op& zero = b_.add(OpKind::kZeroGradients, Pass::kOptimizer, {}, {});
    zero.dtype = gradient_;
    zero.bucket = static_cast<std::int16_t>(i);
    zero.elements = zero.m = kind.buckets[i].gradient_shard >= 0 ? kind.buckets[i].shard : kind.buckets[i].elements;
    zero.n = 1;
  }
  const int at_end = find_buffer(kind, "gradient of wte.weight at the end");
  if (at_end != kNoBuffer && kind.buckets.front().gradient_slot < 0) {
    Op& zero = b_.add(OpKind::kZeroGradients, Pass::kOptimizer, {}, {at_end});
    zero.dtype = gradient_;
    zero.elements = zero.m = b_.buffer(at_end).elements;
    zero.n = 1;
  }
  return append();
}

// Copies what is offloaded of a bucket's parameters, between there and `here` on the device.
void OptimizerBodies::copy_parameters(int index, OpKind kind, int here, Pass pass) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  const DType type = job_.plan.precision;
  const int away = b_.view(fmt::format("kept parameters of bucket {}", index), Space::kOffloadedParameter, type,
                           bucket.shard, bucket.parameter_shard * size_of(type));
  const bool fetches = kind == OpKind::kFetch;
  b_.segment(fetches ? "fetch" : "store");
  Op& op = b_.add(kind, pass, {fetches ? away : here}, {fetches ? here : away});
  op.lane = Lane::kCopy;
  op.dtype = DType::kUint8;
  op.elements = b_.buffer(away).bytes();
  op.bucket = static_cast<std::int16_t>(index);
  op.disk = job_.plan.offload.parameters == Storage::kDisk;
}

int OptimizerBodies::copy_of_parameters(int index, OpKind kind) {
  b_.begin(fmt::format("{} parameters of bucket {}", name_of(kind), index));
  copy_parameters(index, kind, b_.kind().buckets[static_cast<std::size_t>(index)].staged_parameter, Pass::kOptimizer);
  return append();
}

int OptimizerBodies::gather(int index) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  const DType type = job_.plan.precision;
  b_.begin(fmt::format("gather bucket {}", index));
  const std::string name = fmt::format("parameters of bucket {}", index);
  if (bucket.parameter_slot >= 0) {
    const bool whole_here = bucket.shard == bucket.elements;
    const int whole = b_.view(name, Space::kGathered, type, bucket.elements, bucket.parameter_slot);
    int shard = whole_here ? whole : bucket.staged_parameter;
    if (sharding_.away) {
      copy_parameters(index, OpKind::kFetch, shard, Pass::kForward);
    } else {
      shard = b_.view(fmt::format("parameter shard of bucket {}", index), Space::kParameter, type, bucket.shard,
                      bucket.parameter_shard * size_of(type));
    }
    if (whole_here) return append();
    b_.segment("bucket");
    in_parts(OpKind::kAllGather, Pass::kForward, index, shard, whole, type);
  } else if (bucket.shard < bucket.elements) {
    b_.segment("bucket");
    const int whole = b_.view(name, Space::kParameter, type, bucket.elements, bucket.begin * size_of(type));
    in_parts(OpKind::kAllGather, Pass::kOptimizer, index, whole, whole, type);
  }
  return append();
}

}  // namespace trivium::program
