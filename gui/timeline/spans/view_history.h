// Where one has been in a timeline: the way back and forth between zooms and filters.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline/spans/row_layout.h"

namespace trivium::gui {

/// What is seen: a stretch of time, and of the rows all or those below one.
struct SeenPart {
  std::int64_t begin_ps = 0, end_ps = 1;
  std::optional<RowId> only;
  bool operator==(const SeenPart&) const = default;
};

/// A stack with two ends, as browsers have one. Zooming by wheel and panning are not steps of their own: a jump first
/// notes where they led, so that the way back returns there.
class ViewHistory {
 public:
  void clear();
  /// A jump; what was ahead is forgotten.
  void jump(const SeenPart& from, const SeenPart& to);
  bool can_go_back(const SeenPart& now) const;
  bool can_go_forward() const { return at_ + 1 < parts_.size(); }
  /// The part to show; `now` is noted, so that forward leads to it. Precondition: can_go_back(now).
  SeenPart back(const SeenPart& now);
  SeenPart forward();  ///< Precondition: can_go_forward()

 private:
  void note(const SeenPart& now);
  std::vector<SeenPart> parts_;
  std::size_t at_ = 0;
};

}  // namespace trivium::gui
