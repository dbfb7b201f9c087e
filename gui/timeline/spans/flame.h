// Where the time of a stretch goes, from phases down to ops: what a flame graph draws.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/timeline/spans/op_totals.h"

namespace trivium::gui {

/// Spans that have their names in common down to a level.
struct FlameNode {
  enum class Level : std::uint8_t { kAll, kPhase, kTask, kSegment, kOp };
  Level level = Level::kAll;
  std::uint8_t category = 0;     ///< that of the most of its time
  std::uint32_t parent = 0;      ///< of the root: itself
  std::uint32_t like = kNoSpan;  ///< the earliest of its spans
  std::int64_t ps = 0;           ///< within the stretch
  std::uint64_t spans = 0;
};

/// All (the root) > phase ("forward") > task ("forward mb3") > segment ("layer 2") > op ("matmul"). Levels that a name
/// lacks are left out. Immutable once made.
class Flame {
 public:
  std::size_t size() const { return nodes_.size(); }
  const FlameNode& node(std::uint32_t n) const { return nodes_[n]; }
  std::span<const std::uint32_t> children(std::uint32_t n) const {  ///< by the start of their first spans
    return std::span(children_).subspan(first_child_[n], first_child_[n + 1] - first_child_[n]);
  }
  std::string name(std::uint32_t n, const SpanStore& store) const;       ///< "mb3", "layer 2"; empty of the root
  std::string full_name(std::uint32_t n, const SpanStore& store) const;  ///< "forward mb3 layer 2 matmul"
  /// Where there were too many of them the finest levels are left out.
  bool is_cut() const { return cut_; }

 private:
  friend class FlameBuilder;
  std::vector<FlameNode> nodes_;
  std::vector<std::uint32_t> children_, first_child_;
  bool cut_ = false;
};

constexpr std::size_t kMostFlameNodes = 500'000;

/// Times of all lanes are added up, waiting apart. Errors: Failure(kInterrupted) where `stop` was requested.
Flame flame_of(const SpanStore& store, const Stretch& stretch, const std::stop_token& stop = {});

}  // namespace trivium::gui
