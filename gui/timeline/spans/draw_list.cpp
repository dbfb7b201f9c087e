#include "gui/timeline/spans/draw_list.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "gui/timeline/spans/on_cores.h"

namespace trivium::gui {
namespace {

constexpr float kMarkHeight = 3;
constexpr int kPixelsPerArrow = 4;

class Builder {
 public:
  Builder(const Scene& scene, const Viewport& view, DrawList& list)
      : scene_(scene), view_(view), list_(list), scale_{view.begin_ps, view.end_ps, view.width}, columns_(scale_) {
    if (view.columns > 0) columns_.columns = view.columns;
    list_.columns = columns_.columns;
  }

  void build() {
    const auto [first, last] = scene_.layout->rows_between(view_.top, view_.top + view_.height);
    for (std::size_t r = first; r < last; ++r) add_row(scene_.layout->rows()[r]);
    fill_strips();
    for (std::size_t t = 0; t < scene_.timelines.size(); ++t) {
      add_path(static_cast<int>(t));
      if (scene_.arrows) add_arrows(static_cast<int>(t));
    }
  }

 private:
  const SceneTimeline& timeline(int t) const { return scene_.timelines[static_cast<std::size_t>(t)]; }
  const SpanStore& store(int t) const { return *timeline(t).spans; }
  float x_of(std::int64_t ps) const {
    return static_cast<float>(std::clamp(scale_.x_of(ps), -1.0, static_cast<double>(view_.width) + 1));
  }

  void add_row(const PlacedRow& placed) {
    const int t = placed.id.timeline;
    const Row& row = store(t).rows()[static_cast<std::size_t>(placed.id.row)];
    const auto y = static_cast<float>(placed.y - view_.top);
    if (placed.bare) return;
    if (!placed.lane) {
      add_strip(t, y, static_cast<float>(placed.height), true, static_cast<std::uint32_t>(placed.id.row));
      if (placed.folded && timeline(t).matches) {
        for (std::int32_t r = placed.id.row; r < row.end; ++r) {
          add_matches(t, store(t).rows()[static_cast<std::size_t>(r)], y, static_cast<float>(placed.height));
        }
      }
      return;
    }
    const float height = static_cast<float>(placed.height) / static_cast<float>(std::max<std::uint32_t>(1, row.tracks));
    for (std::uint32_t i = 0; i < row.tracks; ++i) {
      const float at = y + height * static_cast<float>(i);
      add_strip(t, at, height, false, row.first_track + i);
      add_frames(t, row.first_track + i, at, height);
    }
    if (timeline(t).matches) add_matches(t, row, y, static_cast<float>(placed.height));
  }

  std::size_t cells_of(int t) const {
    return static_cast<std::size_t>(columns_.columns) * store(t).categories().size();
  }

  /// `source`: the row of a stacked strip, the track of another.
  void add_strip(int t, float y, float height, bool stacked, std::uint32_t source) {
    list_.strips.push_back({t, y, height, stacked, cells_});
    sources_.push_back(source);
    cells_ += cells_of(t);
  }

  std::span<float> shares_of(std::size_t s) {
    return std::span<float>(list_.shares).subspan(list_.strips[s].first, cells_of(list_.strips[s].timeline));
  }

  void fill_strip(std::size_t s) {
    const int t = list_.strips[s].timeline;
    if (!list_.strips[s].stacked) return add_coverage(store(t), sources_[s], columns_, 1, shares_of(s));
    add_row_coverage(store(t), static_cast<std::int32_t>(sources_[s]), columns_, shares_of(s),
                     [&](std::uint32_t track) -> std::span<const float> {
                       const auto lane = lanes_.find({t, track});
                       return lane == lanes_.end() ? std::span<const float>() : shares_of(lane->second);
                     });
  }

  // Lanes know nothing of each other: who fills which does not matter. Groups are made of lanes.
  void fill_strips() {
    list_.shares.assign(cells_, 0);
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      if (!list_.strips[s].stacked) lanes_.emplace(std::pair(list_.strips[s].timeline, sources_[s]), s);
    }
    for (const bool stacked : {false, true}) {
      on_cores(sources_.size(), cells_, [&](std::size_t s) {
        if (list_.strips[s].stacked == stacked) fill_strip(s);
      });
    }
  }

  // Blocks without a wide span are jumped over.
  void add_frames(int t, std::uint32_t track, float y, float height) {
    constexpr std::uint32_t kBlock = SpanStore::kBlock;
    const SpanStore& spans = store(t);
    const Track& placed = spans.tracks()[track];
    const auto least = static_cast<std::int64_t>(std::ceil(scale_.column_ps() * kLeastFrame));
    const std::uint32_t end = spans.first_starting_at(track, view_.end_ps);
    for (std::uint32_t s = spans.first_ending_after(track, view_.begin_ps); s < end;) {
      const std::uint32_t block = (s - placed.first) / kBlock;
      const std::uint32_t stop = std::min(end, placed.first + (block + 1) * kBlock);
      if (spans.block_longest()[placed.first_block + block] < least) {
        s = stop;
        continue;
      }
      for (; s < stop; ++s) {
        if (spans.end_of(s) - spans.start_of(s) < least) continue;
        const float x = x_of(spans.start_of(s)), width = x_of(spans.end_of(s)) - x;
        list_.frames.push_back({t, s, x, y, width, height, width >= kLeastLabel});
      }
    }
  }

  void add_matches(int t, const Row& row, float y, float height) {
    const SpanStore& spans = store(t);
    const auto& matches = *timeline(t).matches;
    for (std::uint32_t i = 0; i < row.tracks; ++i) {
      const std::uint32_t track = row.first_track + i;
      const std::uint32_t first = spans.first_ending_after(track, view_.begin_ps);
      const std::uint32_t last = spans.first_starting_at(track, view_.end_ps);
      auto at = std::lower_bound(matches.begin(), matches.end(), first);
      const auto end = std::lower_bound(at, matches.end(), last);
      while (at != end) {  // one mark a pixel at most
        const float x = x_of(spans.start_of(*at));
        float right = std::max(x + 1, x_of(spans.end_of(*at)));
        const std::uint32_t beyond = spans.first_ending_after(track, columns_time(right));
        at = std::lower_bound(std::next(at), end, beyond);
        list_.marks.push_back({x, y + height - kMarkHeight, right - x, kMarkHeight, false});
      }
    }
  }

  std::int64_t columns_time(float x) const { return scale_.time_at(static_cast<double>(x)); }

  /// How much of a column of pixels the path has on a row.
  struct Sliver {
    float column = -2, covered = 0;
  };

  // A lane that has a thousandth of the path is not drawn as if it had all of it.
  static bool is_seen(Sliver& sliver, float x, float end) {
    constexpr float kLeast = 0.05F;
    if (std::floor(x) != sliver.column) sliver = {std::floor(x), 0};
    sliver.covered += end - x;
    return sliver.covered >= kLeast;
  }

  void add_path(int t) {
    if (!timeline(t).path) return;
    const SpanStore& spans = store(t);
    const auto& path = timeline(t).path->spans;
    auto at = std::partition_point(path.begin(), path.end(),
                                   [&](std::uint32_t s) { return spans.end_of(s) <= view_.begin_ps; });
    const PlacedRow* row = nullptr;
    std::uint32_t track = kNoSpan;
    std::unordered_map<const PlacedRow*, std::size_t> last_mark;  // the path hops between rows: one run of each
    std::unordered_map<const PlacedRow*, Sliver> slivers;
    for (; at != path.end() && spans.start_of(*at) < view_.end_ps; ++at) {
      const std::uint32_t span = *at;
      if (track == kNoSpan || span - spans.tracks()[track].first >= spans.tracks()[track].count) {
        track = spans.track_of(span);
        row = scene_.layout->visible_row_of({t, spans.tracks()[track].row});
      }
      if (row == nullptr || row->y + row->height < view_.top || row->y > view_.top + view_.height) continue;
      const float x = x_of(spans.start_of(span)), end = x_of(spans.end_of(span)), right = std::max(x + 1, end);
      if (end - x < 1 && !is_seen(slivers[row], x, end)) continue;
      const auto [last, fresh] = last_mark.try_emplace(row, list_.marks.size());
      if (!fresh) {
        Mark& mark = list_.marks[last->second];
        if (x < mark.x + mark.width + 1) {
          mark.width = std::max(mark.width, right - mark.x);
          continue;
        }
        last->second = list_.marks.size();
      }
      list_.marks.push_back({x, static_cast<float>(row->y - view_.top), right - x, kMarkHeight, true});
    }
  }

  void add_arrows(int t) {
    const SpanStore& spans = store(t);
    const auto& flows = spans.flows();
    // Long transfers may begin before the view: look back as far as the view is long.
    const std::int64_t early = view_.begin_ps - (view_.end_ps - view_.begin_ps);
    const auto from = std::partition_point(flows.begin(), flows.end(),
                                           [&](const Flow& flow) { return spans.start_of(flow.from) < early; });
    const auto to = std::partition_point(from, flows.end(),
                                         [&](const Flow& flow) { return spans.start_of(flow.from) < view_.end_ps; });
    if (to - from > 2 * view_.width / kPixelsPerArrow) {
      list_.arrows_hidden = true;
      return;
    }
    for (auto flow = from; flow != to; ++flow) {
      if (!flow->transfer) continue;
      const PlacedRow* sender = scene_.layout->visible_row_of({t, spans.tracks()[spans.track_of(flow->from)].row});
      const PlacedRow* receiver = scene_.layout->visible_row_of({t, spans.tracks()[spans.track_of(flow->to)].row});
      if (sender == nullptr || receiver == nullptr || sender == receiver) continue;
      if (spans.end_of(flow->to) <= view_.begin_ps) continue;
      const auto middle = [&](const PlacedRow& row) {
        return static_cast<float>(row.y - view_.top) + static_cast<float>(row.height) / 2;
      };
      const float a = middle(*sender), b = middle(*receiver);
      if (std::max(a, b) < 0 || std::min(a, b) > static_cast<float>(view_.height)) continue;
      list_.arrows.push_back({x_of(spans.start_of(flow->from)), a, x_of(spans.end_of(flow->to)), b});
    }
  }

  const Scene& scene_;
  const Viewport& view_;
  DrawList& list_;
  TimeScale scale_, columns_;
  std::size_t cells_ = 0;                                       // of all strips so far
  std::vector<std::uint32_t> sources_;                          // of every strip: what it shows
  std::map<std::pair<int, std::uint32_t>, std::size_t> lanes_;  // strip of every track that has one, by timeline
};

}  // namespace

void DrawList::clear() {
  columns = 0;
  shares.clear();
  strips.clear();
  frames.clear();
  marks.clear();
  arrows.clear();
  arrows_hidden = false;
}

void build_draw_list(const Scene& scene, const Viewport& view, DrawList& list) {
  list.clear();
  Builder(scene, view, list).build();
}

}  // namespace trivium::gui
