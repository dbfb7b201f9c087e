// Which segments of passes are the same work every time, so that a backend may record them once and replay them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/ir/program.h"

namespace trivium::runtime {

/// Segments of the passes (forward, backward and its second half) of a role.
class Replays {
 public:
  Replays(const program::Program& program, const program::Role& role);

  /// Whether the segment's ops are kernels of the compute lane alone that neither wait for another lane nor read values
  /// that change from step to step. Between its recordings the loss's weight and scale must not change.
  bool possible(const program::Task& task, int segment) const {
    const auto& segments = possible_[static_cast<std::size_t>(task.body)];
    return !segments.empty() && segments[static_cast<std::size_t>(segment)];
  }
  int segments() const { return segments_; }  ///< of the passes' bodies, each body counted once
  int left_out() const;
  /// "24 of 26 segments of the passes; the others hold all_reduce (24)"
  std::string summary() const;

 private:
  std::vector<std::vector<bool>> possible_;  // by body; empty: no pass of this role
  std::map<std::string, int> reasons_;
  int segments_ = 0;
};

}  // namespace trivium::runtime
