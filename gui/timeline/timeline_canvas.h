// The drawing of a timeline and the hands on it: keys, wheel, drags.
#pragma once

#include <QAbstractScrollArea>
#include <QImage>
#include <optional>

#include "gui/timeline/spans/draw_list.h"
#include "gui/timeline/spans/op_totals.h"
#include "gui/timeline/spans/selection.h"
#include "gui/timeline/spans/view_history.h"
#include "gui/timeline/timeline_painter.h"

namespace trivium::gui {

/// A span of one of the timelines.
struct SpanId {
  int timeline = 0;
  std::uint32_t span = kNoSpan;
  bool operator==(const SpanId&) const = default;
};

/// A range of time that was dragged over, of one row, of several of one timeline, or of all.
struct TimeRange {
  std::int64_t begin_ps = 0, end_ps = 0;
  std::optional<RowId> row;
  std::vector<RowId> rows{};  ///< instead of `row`: none of them below another
  bool has_all_rows() const { return !row && rows.empty(); }
  int timeline() const { return row ? row->timeline : rows.empty() ? 0 : rows.front().timeline; }
};

/// Rows of all timelines below one another on one scale of time. Keys: W and S (or + and -) zoom, A and D pan, F fits
/// the selection or else everything, Escape lets go, the arrows step from span to span and from row to row. Wheel:
/// scrolls; with Ctrl it zooms at the pointer, with Shift it pans. Dragging selects a range of the rows dragged over,
/// on the ruler of all; with Shift or the middle button it pans. Pinned rows stay on top while the others scroll. M
/// marks what is selected or the pointer's place, with Shift it clears all marks; comma and full stop step from mark to
/// mark. Backspace goes back to what was seen before a jump, Shift+Backspace forth; the menu of the right button shows
/// one row alone. Lives on the GUI thread.
class TimelineCanvas : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  /// Stores must outlive neither call: they are shared. The seen time is kept where it still fits,
  /// a range of one row where that row is still there.
  void set_timelines(std::vector<SceneTimeline> timelines, std::vector<QString> names);
  void set_matches(std::vector<std::shared_ptr<const std::vector<std::uint32_t>>> matches);
  void set_path_shown(bool shown);
  void set_arrows_shown(bool shown);
  /// Whether rows are folded, when they come, until all timelines have room without scrolling.
  void set_folds_to_fit(bool folds) { folds_to_fit_ = folds; }
  void set_hint(const QString& hint);  ///< said where there is nothing to draw
  const QString& hint() const { return hint_; }

  const std::vector<SceneTimeline>& timelines() const { return scene_.timelines; }
  RowLayout& layout_of_rows() { return layout_; }
  std::int64_t begin_ps() const { return begin_; }
  std::int64_t end_ps() const { return end_; }
  const std::optional<TimeRange>& range() const { return range_; }
  std::optional<SpanId> selected() const { return selected_; }
  bool arrows_hidden() const { return list_.arrows_hidden; }

  void show_time(std::int64_t begin_ps, std::int64_t end_ps);
  void zoom(double factor, double x);  ///< x: pixel of the time axis that stays in place
  void pan(double share);              ///< of the seen time; positive: later
  void fit();
  void back();     ///< to what was seen before the last jump
  void forward();  ///< and forth again
  bool can_go_back() const { return history_.can_go_back(seen()); }
  bool can_go_forward() const { return history_.can_go_forward(); }
  void show_only(std::optional<RowId> row);  ///< what lies below it; none: all rows
  void filter_rows(const QString& words);    ///< as RowLayout::set_filter
  void set_pinned(const RowId& row, bool pinned);
  void unpin_all();
  bool is_pinned(const RowId& row) const;
  const RowLayout& pins() const { return pins_; }
  int pins_height() const;  ///< in the viewport, below the ruler
  /// Marks both ends of the range, the start of the selected span, or else a time; where a mark is, it goes.
  void mark(std::int64_t pointer_ps);
  void clear_marks();
  void set_marks(std::vector<std::int64_t> marks);  ///< those that lie on the timelines
  bool shows_all() const { return begin_ <= first_ps() && end_ >= last_ps(); }
  void step_mark(int direction);  ///< to the next one, or the one before
  const std::vector<std::int64_t>& marks() const { return marks_; }
  void select(std::optional<SpanId> span, bool bring_into_view);
  void select_range(std::optional<TimeRange> range);
  /// What is selected, of one timeline; its whole where nothing is.
  Stretch stretch(int timeline) const;
  void toggle_fold(RowId row);
  void rows_changed();  ///< after folding through layout_of_rows()
  std::optional<SpanId> span_at(QPoint position) const;
  QString describe(QPoint position) const;  ///< what a tooltip says there
  QRect time_area() const;                  ///< in the viewport
  int x_of(std::int64_t ps) const;          ///< in the viewport
  /// The picture of the whole viewport, as on the screen.
  void paint_to(QPainter& painter);

  static constexpr std::int64_t kShortestView = 1000;  ///< ps
  static constexpr int kRuler = 24;                    ///< pixels for the scale of time

 Q_SIGNALS:
  void time_changed();
  void timelines_changed();
  void history_changed();
  void selection_changed();
  void save_wanted();     ///< of the spans that are selected
  void arrows_changed();  ///< there are now too many to distinguish, or no longer

 protected:
  bool viewportEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  /// Whether the row with this number is one of the same name there.
  bool row_is_alike(const RowId& id, const std::vector<SceneTimeline>& others) const;
  enum class Drag { kNone, kSelect, kPan };
  static constexpr double kMargin = 0.02;  ///< of what is fitted, left and right of it
  std::int64_t time_at(double x) const;    ///< x in the viewport
  std::int64_t first_ps() const;
  std::int64_t last_ps() const;
  struct RowPlace {
    const PlacedRow* row = nullptr;  ///< null: none there
    int top = 0;                     ///< in the viewport
  };
  RowPlace place_at(QPoint position) const;
  const PlacedRow* row_at(QPoint position) const { return place_at(position).row; }
  std::vector<RowId> rows_dragged_over(QPoint from, QPoint to) const;
  bool on_fold_handle(const PlacedRow& row, QPoint position) const;
  SeenPart seen() const { return {begin_, end_, layout_.only()}; }
  void go_to(const SeenPart& part);
  void jump(std::int64_t begin_ps, std::int64_t end_ps, std::optional<RowId> only);
  void show_all();
  void step_span(int direction);
  void step_row(int direction);
  void redraw();  ///< the picture is out of date
  void draw_picture();
  void draw_part(const RowLayout& rows, int top, int height, DrawList& list, QImage& picture);
  void draw_pins(QPainter& painter, const TimelineColours& colours);
  void draw_ruler(QPainter& painter, const TimelineColours& colours) const;
  /// What stands to the left of a row; of a pinned lane with its rank.
  QString title_of(const RowId& id, bool pinned) const;
  static QFont font_of_title(QFont font, bool lane);
  void measure_names();
  void give_names_room();  ///< as much as they need, up to a share of the width
  void draw_row_names(QPainter& painter, const TimelineColours& colours, const RowLayout& rows, const QRect& place,
                      int scroll) const;
  void toggle_mark(std::int64_t ps);
  void drop_far_marks();
  void draw_marks(QPainter& painter, const TimelineColours& colours) const;
  void draw_overlay(QPainter& painter, const TimelineColours& colours) const;
  QRectF box_of(SpanId id) const;

  Scene scene_;
  RowLayout layout_, pins_;
  std::vector<QString> names_;
  int names_width_ = 130, widest_name_ = 0;  // pixels
  std::vector<std::shared_ptr<const CriticalPath>> paths_;
  bool path_shown_ = true, folds_to_fit_ = false, folded_by_hand_ = false;
  QString hint_;
  std::int64_t begin_ = 0, end_ = kShortestView;
  ViewHistory history_;
  std::optional<TimeRange> range_;
  std::vector<std::int64_t> marks_;  // ps, ascending
  std::optional<SpanId> selected_, hovered_;
  Drag drag_ = Drag::kNone;
  QPoint pressed_;
  std::int64_t pressed_ps_ = 0, pressed_begin_ = 0, pressed_end_ = 0;
  int pressed_scroll_ = 0;
  DrawList list_, pins_list_;
  QImage picture_, pins_picture_;
  bool stale_ = true;
  TimelinePainter painter_;
};

}  // namespace trivium::gui
