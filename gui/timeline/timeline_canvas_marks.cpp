// Places that the user marked, and how far they lie apart.
#include <QPainter>
#include <algorithm>

#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {
namespace {

constexpr int kFlag = 7;     // pixels of a mark's flag on the ruler
constexpr int kRoom = 6;     // pixels on either side of a distance that is written between two marks
constexpr double kNear = 3;  // pixels within which a mark is taken for the place that is meant

}  // namespace

void TimelineCanvas::toggle_mark(std::int64_t ps) {
  const auto per_pixel = static_cast<double>(end_ - begin_) / time_area().width();
  const auto near = std::find_if(marks_.begin(), marks_.end(), [&](std::int64_t mark) {
    return std::abs(static_cast<double>(mark - ps)) <= kNear * per_pixel;
  });
  if (near != marks_.end()) {
    marks_.erase(near);
  } else {
    marks_.insert(std::upper_bound(marks_.begin(), marks_.end(), ps), ps);
  }
  viewport()->update();
}

// A range has two ends; they come and go together.
void TimelineCanvas::mark(std::int64_t pointer_ps) {
  if (scene_.timelines.empty()) return;
  if (range_ && range_->end_ps > range_->begin_ps) {
    toggle_mark(range_->begin_ps);
    toggle_mark(range_->end_ps);
  } else if (selected_) {
    toggle_mark(scene_.timelines[static_cast<std::size_t>(selected_->timeline)].spans->start_of(selected_->span));
  } else {
    toggle_mark(std::clamp(pointer_ps, first_ps(), last_ps()));
  }
}

void TimelineCanvas::set_marks(std::vector<std::int64_t> marks) {
  marks_ = std::move(marks);
  std::sort(marks_.begin(), marks_.end());
  drop_far_marks();
  viewport()->update();
}

void TimelineCanvas::clear_marks() {
  marks_.clear();
  viewport()->update();
}

// The mark comes into the middle; from there on to the next.
void TimelineCanvas::step_mark(int direction) {
  const std::int64_t middle = begin_ + (end_ - begin_) / 2, half = (end_ - begin_) / 2;
  const std::int64_t slack = std::max<std::int64_t>(1, (end_ - begin_) / time_area().width());
  std::optional<std::int64_t> to;
  for (const std::int64_t mark : marks_) {
    if (direction > 0 && mark > middle + slack && !to) to = mark;
    if (direction < 0 && mark < middle - slack) to = mark;
  }
  if (to) jump(*to - half, *to - half + (end_ - begin_), layout_.only());
}

// Marks that a new timeline does not reach are of another one.
void TimelineCanvas::drop_far_marks() {
  std::erase_if(marks_, [this](std::int64_t mark) { return mark < first_ps() || mark > last_ps(); });
}

void TimelineCanvas::draw_marks(QPainter& painter, const TimelineColours& colours) const {
  if (marks_.empty()) return;
  const QRect area = time_area();
  painter.save();
  painter.setClipRect(QRect(area.left(), 0, area.width(), viewport()->height()));
  painter.setPen(QPen(colours.text, 1, Qt::DotLine));
  for (const std::int64_t mark : marks_) painter.drawLine(x_of(mark), kRuler, x_of(mark), area.bottom());
  painter.setPen(colours.text);
  for (std::size_t m = 1; m < marks_.size(); ++m) {
    const int left = std::max(x_of(marks_[m - 1]), area.left()), right = std::min(x_of(marks_[m]), area.right());
    const QString words = QString::fromStdString(time_text(marks_[m] - marks_[m - 1]));
    const int wide = painter.fontMetrics().horizontalAdvance(words);
    if (right - left < wide + 2 * kRoom + kFlag) continue;
    painter.fillRect(QRect(left + 1, 0, right - left - 1, kRuler - 6), colours.ground);  // over the ruler's figures
    const QRect box((left + right - wide) / 2 - kRoom, 1, wide + 2 * kRoom, kRuler - 3);
    painter.drawLine(left + kFlag, box.center().y(), box.left(), box.center().y());
    painter.drawLine(box.right(), box.center().y(), right, box.center().y());
    painter.drawText(box, Qt::AlignCenter, words);
  }
  painter.setBrush(colours.text);
  for (const std::int64_t mark : marks_) {
    const int x = x_of(mark);
    painter.drawLine(x, 0, x, kRuler);
    painter.drawPolygon(QPolygon({QPoint(x, 0), QPoint(x + kFlag, kFlag / 2), QPoint(x, kFlag)}));
  }
  painter.restore();
}

}  // namespace trivium::gui
