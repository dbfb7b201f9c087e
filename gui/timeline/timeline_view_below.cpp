// What stands below a timeline: the ops of what is selected, as a table or as flames, and how much room they get.
#include <algorithm>

#include "base/error.h"
#include "gui/timeline/spans/span_table.h"
#include "gui/timeline/timeline_view.h"

namespace trivium::gui {
namespace {

constexpr double kMostOfRows = 0.65;      // of the height, as long as rows are as low as they can be
constexpr double kMostOfGrownRows = 0.5;  // the same where they are twice as high
constexpr int kLeastBelow = 150;          // pixels

}  // namespace

// Ops have the room that rows do not need, and the rows, which grow, what ops leave.
void TimelineView::set_up_halves() {
  halves_->set_share([this](int height) {
    if (below_->isHidden()) return height;
    const int around =
        minimap_->sizeHint().height() + 2 + TimelineCanvas::kRuler + canvas_->pins_height() + 2 * canvas_->frameWidth();
    const int rows = canvas_->layout_of_rows().usual_height();
    const auto at_most = [height](int pixels, double share) {
      return std::min(pixels, static_cast<int>(share * height));
    };
    const int below = std::max(kLeastBelow, wanted_below_);
    return std::max(
        {height - below, at_most(around + rows, kMostOfRows), at_most(around + 2 * rows, kMostOfGrownRows)});
  });
  const auto follow = [this](int wanted) {
    if (canvas_->range()) return;  // what is selected comes and goes
    wanted_below_ = below_->tabBar()->sizeHint().height() + wanted;
    halves_->fit();
  };
  connect(canvas_, &TimelineCanvas::timelines_changed, halves_, [this] { halves_->fit(); });
  ops_->on_shown = [this, follow] { follow(ops_->whole_height()); };
  flame_->on_shown = [this, follow] { follow(flame_->whole_height()); };
}

// Only the one that is seen adds anything up.
void TimelineView::update_below(int timeline, const QString& what) {
  if (below_->isHidden()) return;
  const auto& spans = canvas_->timelines()[static_cast<std::size_t>(timeline)].spans;
  const Stretch stretch = canvas_->stretch(timeline);
  if (listed_ == spans && listed_stretch_ == stretch && listed_by_ == below_->currentWidget()) return;
  listed_ = spans;
  listed_stretch_ = stretch;
  listed_timeline_ = timeline;
  listed_by_ = below_->currentWidget();
  const auto at = static_cast<std::size_t>(timeline);
  const OpTable::Request request{spans, stretch, at < works_.size() ? works_[at] : WorkOf{}, what};
  if (listed_by_ == ops_) {
    flame_->clear();
    ops_->show_stretch(request);
  } else {
    flame_->show_stretch(request);
  }
}

std::string TimelineView::selection_csv() const {
  const auto& timelines = canvas_->timelines();
  if (timelines.empty()) throw base::Failure(base::ErrorKind::kUsage, "There is no timeline to save a part of.");
  const int t = canvas_->range() ? canvas_->range()->timeline() : 0;
  return spans_csv(*timelines[static_cast<std::size_t>(t)].spans, canvas_->stretch(t));
}

// While it is hidden what stands below may be of a timeline that is shown no more.
bool TimelineView::lists(std::uint32_t span) const {
  const auto& timelines = canvas_->timelines();
  const auto at = static_cast<std::size_t>(listed_timeline_);
  return listed_ && at < timelines.size() && timelines[at].spans == listed_ && span < listed_->size();
}

void TimelineView::go_to_next(std::uint32_t like) {
  if (!lists(like) || !listed_stretch_) return;
  const auto selected = canvas_->selected();
  const OpNames names(*listed_);
  const bool on_it = selected && selected->timeline == listed_timeline_ && names.of(selected->span) == names.of(like);
  const std::uint32_t next =
      next_of_op(*listed_, *listed_stretch_, like, on_it ? std::optional(selected->span) : std::nullopt);
  if (next != kNoSpan) canvas_->select(SpanId{listed_timeline_, next}, true);
}

}  // namespace trivium::gui
