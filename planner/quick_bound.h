// Bounds on time and memory that need no sketch of the plan: from what one layer of the model costs.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "hardware_profiles/hardware.h"
#include "program/lower.h"

namespace trivium::planner {

/// One layer on the fastest device of the cluster.
struct LayerFacts {
  std::int64_t passes_ps = 0;                                 ///< compute lane of a micro-batch's forward and backward
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;  ///< bytes, nothing shared between replicas
  std::int64_t frame = 0;                                     ///< bytes a micro-batch keeps until its backward
};

/// Answers for all plans of one job; safe to share between threads. The job and the cluster must outlive it.
class QuickBound {
 public:
  QuickBound(const program::Job& job, const hardware::Cluster& cluster);

  /// No iteration of the plan is shorter (ps): some stage runs ceil(layers / pipeline) layers for every micro-batch.
  /// Precondition of all: the plan passes program::check and simulator::unsupported_by.
  std::int64_t time_ps(const program::Plan& plan);

  /// Some stage needs at least so many bytes besides what the device reserves: parameters, gradients, optimizer state
  /// and, in 1F1B, the frames of the first stage. Embedding, head and workspace are left out, and so is whatever is
  /// offloaded.
  std::int64_t memory_bytes(const program::Plan& plan);
  /// Bytes of the roomiest device that a plan may use.
  std::int64_t usable_bytes() const { return usable_; }

 private:
  using Key = std::tuple<int, int, program::ContextMethod, int, program::Recompute, bool, bool>;

  const LayerFacts& facts(const program::Plan& plan);
  LayerFacts work_out(const program::Plan& plan) const;

  const program::Job& job_;
  const hardware::Cluster& cluster_;
  std::int64_t usable_ = 0;
  std::mutex mutex_;
  std::map<Key, LayerFacts> known_;
};

}  // namespace trivium::planner
