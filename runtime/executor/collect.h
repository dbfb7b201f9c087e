// Bringing the pieces that ranks hold back to whole tensors, by global name.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "runtime/executor/arenas.h"

namespace trivium::runtime {

/// What of a parameter is looked at.
enum class Quantity { kValue, kGradient, kFirstMoment, kSecondMoment };

/// Whole tensors filled in by ranks, each with what it owns. Thread-safe.
class Collection {
 public:
  /// Adds this rank's pieces, which lie in host memory. Gradients: valid after reduction, where this rank owns them.
  void add(const program::Program& program, int rank, const Arenas& arenas, Quantity quantity);

  /// Row-major values by global name. Elements nobody added are NaN.
  const std::map<std::string, std::vector<double>>& tensors() const { return tensors_; }
  /// Bounds of the contributions to one element seen so far agree bitwise (replicas are equal).
  bool replicas_agree() const { return replicas_agree_; }

 private:
  void put(const program::Parameter& p, const std::string& name, std::int64_t row, std::int64_t column, double value);

  std::mutex mutex_;
  std::map<std::string, std::vector<double>> tensors_;
  bool replicas_agree_ = true;
};

}  // namespace trivium::runtime
