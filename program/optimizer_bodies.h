// The bodies that follow the last backward: reduce gradients, their norm, AdamW, gather parameters.
#pragma once

#include <vector>

#include "program/body_builder.h"

namespace trivium::program {

class OptimizerBodies {
 public:
  /// `segment_of_parameter`: forward segment of every parameter of the kind.
  OptimizerBodies(const Job& job, const Habits& habits, BodyBuilder& builder, std::vector<Body>& bodies,
                  const std::vector<int>& segment_of_parameter)
      : job_(job), habits_(habits), b_(builder), bodies_(bodies), segment_of_parameter_(segment_of_parameter) {}

  /// Appends the bodies and enters them in the builder's kind.
  void add();

 private:
  int reduce(int bucket);
  void reduce_partial_replicas(const Bucket& bucket);
  void reduce_tied(const Bucket& bucket);
  int norm();
  int norm_reduce();
  int optimizer();
  int gather(int bucket);
  int append();
  bool spans(const Bucket& bucket, int segment) const {
    return segment >= bucket.first_segment && segment <= bucket.last_segment;
  }

  const Job& job_;
  const Habits& habits_;
  BodyBuilder& b_;
  std::vector<Body>& bodies_;
  const std::vector<int>& segment_of_parameter_;
};

}  // namespace trivium::program
