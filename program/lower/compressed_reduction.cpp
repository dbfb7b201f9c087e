// Gradients that are made smaller on their way between replicas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/lower/optimizer_bodies.h"

namespace trivium::program {
namespace {

/// How many elements of a parameter are sent: a share, at least one.
std::int64_t sent_of(const Parameter& p, const Plan& plan) {
  const std::int64_t count = p.local_rows * p.local_columns;
  const double share = std::ceil(plan.top_k_share * static_cast<double>(count));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(share), 1, count);
}

bool lies_in(const Parameter& p, const Bucket& bucket) {
  return p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
}

std::int64_t sent_of(const ChunkTemplate& kind, const Bucket& bucket, const Plan& plan) {
  std::int64_t sum = 0;
  for (const Parameter& p : kind.parameters) sum += lies_in(p, bucket) ? sent_of(p, plan) : 0;
  return sum;
}

}  // namespace

// Reductions follow each other on one lane: one place for all. What is not sent stays, so every bucket has its own.
void OptimizerBodies::place_wires() {
  ChunkTemplate& kind = b_.kind();
  const Compression how = job_.plan.compression;
  const int replicas = job_.plan.data * job_.plan.context;
  if (how == Compression::kNone || replicas == 1) return;
  std::int64_t widest = 0;
  for (const Bucket& bucket : kind.buckets) {
    if (bucket.expert) continue;
    widest = std::max(widest, how == Compression::kTopK ? sent_of(kind, bucket, job_.plan) : bucket.elements);
  }
  if (how == Compression::kFp16) {
    wire_ = b_.place("gradients on the wire", Space::kGathered, DType::kFp16, widest);
    return;
  }
  const std::int64_t bytes = widest * sent_bytes(gradient_);
  wire_ = b_.place("largest gradients", Space::kGathered, DType::kUint8, bytes);
  arrived_ = b_.place("largest gradients of all", Space::kGathered, DType::kUint8, bytes * replicas);
}

// Each replica rounds its gradients to 16 bits; the sum is rounded once more (Micikevicius et al. 2018, arXiv
// 1710.03740, keep such gradients in range by the loss's scale; with precision fp16 ours carry it, else they are means
// over the batch and are sent as they are).
void OptimizerBodies::reduce_compressed(int index) {
  const Bucket bucket = b_.kind().buckets[static_cast<std::size_t>(index)];
  b_.segment("bucket");
  const int whole = kept_gradients(bucket, fmt::format("bucket {}", index), 0, bucket.elements);
  const int wire = b_.view(fmt::format("bucket {} on the wire", index), Space::kGathered, DType::kFp16, bucket.elements,
                           b_.buffer(wire_).offset);
  pointwise(OpKind::kCompress, {whole}, wire, bucket.elements).lane = Lane::kData;
  Op& op = b_.add(OpKind::kAllReduce, Pass::kBackward, {wire}, {wire});
  op.lane = Lane::kData;
  op.group = sharding_.group;
  op.dtype = DType::kFp16;
  op.elements = bucket.elements;
  op.bucket = static_cast<std::int16_t>(index);
  pointwise(OpKind::kDecompress, {wire}, whole, bucket.elements).lane = Lane::kData;
}

// Each replica sends the largest of what it computed and of what it did not send before (Stich et al. 2018, arXiv
// 1809.07599, algorithm 1; Lin et al. 2018, arXiv 1712.01887, section 3). Chosen parameter by parameter, as in both, so
// that ranks which hold the same parameter with different others choose the same.
void OptimizerBodies::reduce_largest(int index) {
  const ChunkTemplate& kind = b_.kind();
  const Bucket bucket = kind.buckets[static_cast<std::size_t>(index)];
  b_.segment("bucket");
  const int replicas = job_.plan.data * job_.plan.context;
  const std::int64_t all = sent_of(kind, bucket, job_.plan), each = sent_bytes(gradient_);
  std::int64_t sent = 0;
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    const Parameter p = kind.parameters[i];
    if (!lies_in(p, bucket)) continue;
    const std::int64_t count = p.local_rows * p.local_columns, largest = sent_of(p, job_.plan);
    const int residual = b_.place(residual_name(p), Space::kOptimizer, gradient_, count);
    const int wire = b_.view("largest gradients of " + p.name, Space::kGathered, DType::kUint8, largest * each,
                             b_.buffer(wire_).offset + sent * each);
    Op& op = pointwise(OpKind::kCompress, {p.gradient, residual}, wire, count);
    op.out[1] = residual;
    op.lane = Lane::kData;
    op.k = largest;
    op.n = p.offset - bucket.begin;
    sent += largest;
  }
  const auto part = [&](int of, const char* name, int members) {
    return b_.view(fmt::format("{} in bucket {}", name, index), Space::kGathered, DType::kUint8, all * each * members,
                   b_.buffer(of).offset);
  };
  const int own = part(wire_, "largest", 1), arrived = part(arrived_, "largest of all", replicas);
  Op& gather = b_.add(OpKind::kAllGather, Pass::kBackward, {own}, {arrived});
  gather.lane = Lane::kData;
  gather.group = sharding_.group;
  gather.dtype = DType::kUint8;
  gather.elements = all * each * replicas;
  gather.bucket = static_cast<std::int16_t>(index);
  const int whole = kept_gradients(bucket, fmt::format("bucket {}", index), 0, bucket.elements);
  Op& sum = pointwise(OpKind::kDecompress, {arrived}, whole, bucket.elements);
  sum.lane = Lane::kData;
  sum.k = all;
  sum.parts = replicas;
}

}  // namespace trivium::program
