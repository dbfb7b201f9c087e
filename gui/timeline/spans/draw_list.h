// What a timeline draws, before any widget: a list of strips, frames, labels, marks and arrows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gui/timeline/spans/coverage.h"
#include "gui/timeline/spans/critical_path.h"
#include "gui/timeline/spans/row_layout.h"

namespace trivium::gui {

/// One of the timelines that are drawn.
struct SceneTimeline {
  std::shared_ptr<const SpanStore> spans;
  std::shared_ptr<const CriticalPath> path;                   ///< null: not shown
  std::shared_ptr<const std::vector<std::uint32_t>> matches;  ///< of a search, ascending; null: no search
};

struct Scene {
  std::vector<SceneTimeline> timelines;
  const RowLayout* layout = nullptr;  ///< of the same stores
  bool arrows = true;
};

/// What part of the page is seen: pixels.
struct Viewport {
  std::int64_t begin_ps = 0, end_ps = 1;
  int width = 1;            ///< of the time axis
  int top = 0, height = 1;  ///< of the page
  int columns = 0;          ///< 0: `width`; more on screens of high density
};

/// A band of colour: for every column the shares of the categories. Bands of lanes mix them into one colour, bands of
/// groups stack them from the bottom; what is not covered shows the ground.
struct Strip {
  int timeline = 0;
  float y = 0, height = 0;
  bool stacked = false;
  std::size_t first = 0;  ///< into DrawList::shares: columns x categories of the timeline's store
};

/// A span wide enough to have an outline.
struct Frame {
  int timeline = 0;
  std::uint32_t span = kNoSpan;
  float x = 0, y = 0, width = 0, height = 0;
  bool labelled = false;  ///< wide enough for a name
};

/// A run of pixels along a row: of the critical path, or of what was searched for.
struct Mark {
  float x = 0, y = 0, width = 0, height = 0;
  bool path = false;
};

struct Arrow {
  float from_x = 0, from_y = 0, to_x = 0, to_y = 0;
};

struct DrawList {
  int columns = 0;
  std::vector<float> shares;
  std::vector<Strip> strips;
  std::vector<Frame> frames;
  std::vector<Mark> marks;
  std::vector<Arrow> arrows;
  bool arrows_hidden = false;  ///< there are too many to distinguish
  void clear();
};

constexpr float kLeastFrame = 3;   ///< pixels
constexpr float kLeastLabel = 36;  ///< pixels

/// Fills `list`, whose memory is used again. Positions are relative to the viewport. Work grows with the visible rows
/// times the width; of the spans only their blocks are looked through.
void build_draw_list(const Scene& scene, const Viewport& view, DrawList& list);

}  // namespace trivium::gui
