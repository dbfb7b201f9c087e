// The bodies around the passes: gather parameters, reduce gradients, their norm, AdamW.
#pragma once

#include <string>
#include <vector>

#include "program/lower/body_builder.h"
#include "program/lower/chunk_shape.h"
#include "program/lower/sharding.h"

namespace trivium::program {

/// Bytes of one gradient that compression top_k sends: its value and its number in the bucket.
constexpr std::int64_t sent_bytes(DType gradient) { return size_of(gradient) + size_of(DType::kInt32); }

/// The buffer of what a rank has not sent yet of a parameter's gradient.
inline std::string residual_name(const Parameter& p) {
  return "residual of " + p.name + " in layer " + std::to_string(p.layer);
}

class OptimizerBodies {
 public:
  /// `segment_of_parameter`: forward segment of every parameter of the kind.
  OptimizerBodies(const Job& job, const StackTraits& stack, BodyBuilder& builder, std::vector<Body>& bodies,
                  const std::vector<int>& segment_of_parameter)
      : job_(job),
        sharding_(job, stack),
        gradient_(ChunkShape(job).gradient),
        b_(builder),
        bodies_(bodies),
        segment_of_parameter_(segment_of_parameter) {}

  /// Appends the bodies and enters them in the builder's kind.
  void add();

 private:
  int reduce(int bucket);
  void reduce_partial_replicas(const Bucket& bucket);
  void place_keys();
  void reduce_keys(const Bucket& bucket);
  void reduce_tied(const Bucket& bucket);
  int tie();
  void reduce_whole(int bucket);
  void place_wires();
  void reduce_compressed(int bucket);
  void reduce_largest(int bucket);
  void reduce_to_shard(int bucket);
  int part_of(int buffer, int part, int parts);
  void in_parts(OpKind kind, Pass pass, int bucket, int from, int to, DType on_wire);
  int reduce_replicas(int bucket);
  int kept_gradients(const Bucket& bucket, const std::string& name, std::int64_t begin, std::int64_t elements);
  Group group_of(const Bucket& bucket) const;  // ranks that share the bucket's optimizer state, or reduce it
  int norm();
  void record_largest();
  int norm_reduce();
  int optimizer();
  void step_by_adamw(int bucket, int pair);
  void orthogonalise(int bucket, int pair);
  void place_momenta();
  int gather_momenta(const Bucket& bucket, int index, int pair);
  Op& step_matrix(const Parameter& p, std::size_t section, int index, int pair, int momentum);
  void step_matrices(const Parameter& p, const Bucket& bucket, int index, int pair);
  void step_shared_matrices(std::size_t parameter, const Bucket& bucket, int index, int pair, double share);
  int whole_momentum(const Parameter& p, int momentum);
  int gather(int bucket);
  void copy_parameters(int bucket, OpKind kind, int here, Pass pass);
  int copy_of_parameters(int bucket, OpKind kind);
  int append();
  Lane sharded_lane(const Bucket& bucket) const;
  Op& pointwise(OpKind kind, std::initializer_list<int> in, int out, std::int64_t elements);
  static bool holds(const Bucket& bucket, const Parameter& p) {
    return p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
  }

  const Job& job_;
  Sharding sharding_;
  DType gradient_;
  std::int64_t summed_ = 0;   // bytes within kGathered: a micro-batch's part before it is added to the shard
  std::int64_t momenta_ = 0;  // bytes within kGathered: the momenta of a bucket that Muon steps, of all ranks
  int keys_ = kNoBuffer;      // gradients of a parameter's key columns that other tensor ranks hold too
  int wire_ = kNoBuffer;      // gradients of a bucket in 16 bits or the largest of them, where they are compressed
  int arrived_ = kNoBuffer;   // the largest of all replicas
  BodyBuilder& b_;
  std::vector<Body>& bodies_;
  const std::vector<int>& segment_of_parameter_;
};

}  // namespace trivium::program
