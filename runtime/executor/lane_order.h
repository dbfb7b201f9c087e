// Order between the lanes of a rank: which work leaves a mark, and what waits for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/ir/program.h"

namespace trivium::runtime {

/// The dependencies of a role, between ops of one body (Op::after) and between segments of tasks (Task::after), as
/// marks that lanes leave and wait for. Lanes are in-order, so only what joins two of them is kept.
class LaneOrder {
 public:
  LaneOrder(const program::Program& program, const program::Role& role);

  struct Wait {
    std::int32_t mark = 0;
    program::Lane lane{};  ///< that waits
    bool operator==(const Wait&) const = default;
  };
  /// What lanes wait for before a segment begins.
  std::span<const Wait> before(std::int32_t task, int segment) const {
    return waits_[static_cast<std::size_t>(first_segment_[static_cast<std::size_t>(task)] + segment)];
  }
  /// The mark of an op; whether anything waits for it.
  std::int32_t mark_of(std::int32_t task, int op) const { return first_mark_[static_cast<std::size_t>(task)] + op; }
  bool is_awaited(std::int32_t task, int op) const { return awaited_[static_cast<std::size_t>(mark_of(task, op))]; }

  /// Lanes whose ops belong to bodies of the compute lane (tensor, context), where the role uses them. They use the
  /// bodies' workspace, which the next body uses again: both sides wait for each other before a pass begins. The lane
  /// of exchanges with experts is none of them: the compute lane waits for each exchange within its own body.
  std::span<const program::Lane> side_lanes() const { return side_lanes_; }
  /// Two marks for that, by side lane: of the lane itself, and of the compute lane.
  std::int32_t side_mark(std::size_t lane, int which) const {
    return static_cast<std::int32_t>(awaited_.size()) + 2 * static_cast<std::int32_t>(lane) + which;
  }

 private:
  std::vector<std::int32_t> first_mark_, first_segment_;  // by task
  std::vector<bool> awaited_;                             // by mark
  std::vector<std::vector<Wait>> waits_;
  std::vector<program::Lane> side_lanes_;
};

}  // namespace trivium::runtime
