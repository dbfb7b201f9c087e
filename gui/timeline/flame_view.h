// Below a timeline: where the time of a stretch goes, as bars below bars.
#pragma once

#include <QWidget>
#include <functional>
#include <memory>

#include "gui/background.h"
#include "gui/timeline/op_table.h"
#include "gui/timeline/spans/flame.h"

namespace trivium::gui {

/// Phases, their tasks, segments and ops from top to bottom, as wide as their time, in the colours of the timeline. A
/// click on a bar makes it as wide as the view, one on a bar above it goes back; on an op it asks for its first
/// occurrence, too. Up, Backspace and Escape go up, Down to the longest below, Left and Right to the neighbours. Adds
/// up on a thread of its own. Lives on the GUI thread.
class FlameView : public QWidget {
  Q_OBJECT

 public:
  explicit FlameView(QWidget* parent = nullptr);

  void show_stretch(OpTable::Request request);
  void clear();
  bool is_busy() const { return busy_; }
  const Flame* flame() const { return flame_.get(); }
  const SpanStore* store() const { return shown_.spans.get(); }
  std::uint32_t focus() const { return focus_; }  ///< the bar that is as wide as the view
  void set_focus(std::uint32_t node);
  /// Where a bar lies; empty where it is not to be seen.
  QRectF box_of(std::uint32_t node) const;
  std::optional<std::uint32_t> node_at(QPointF at) const;
  QString describe(std::uint32_t node) const;
  /// What is written on its bar where that is so wide: name and time, the name, what of it has room; else nothing.
  QString name_on(std::uint32_t node, double width) const;

  /// What is written across the bars of one level below a bar, where none of them has room for its name: what they are.
  struct Band {
    QRectF box;  ///< all of them
    QString words;
    std::uint32_t widest;  ///< of them
  };
  std::vector<Band> bands() const;
  int whole_height() const;  ///< pixels with which bars are as high as they get

  std::function<void(std::uint32_t like)> on_choose;  ///< a span of the op that was chosen
  std::function<void()> on_shown;                     ///< time has been added up

  QSize minimumSizeHint() const override { return {120, 70}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Bar {
    QRectF box;
    std::uint32_t node;
  };
  void take(std::shared_ptr<const Flame> flame);
  /// Bars that are wide enough to be seen, from top to bottom.
  std::vector<Bar> bars() const;
  void step(int direction);
  /// The name on a bar, in smaller letters where it has no room else; empty where it has none in those.
  struct Written {
    QString words;
    bool small = false;
  };
  Written written_on(std::uint32_t node, double width) const;
  QString words_of_band(std::uint32_t widest, bool of_one_bar) const;
  QFont small_font() const;
  double bar_height() const;
  double title_height() const;
  void draw_bar(QPainter& painter, const Bar& bar) const;
  void draw_bands(QPainter& painter) const;
  QString title() const;

  OpTable::Request shown_;
  std::shared_ptr<const Flame> flame_;
  std::uint32_t focus_ = 0;
  int levels_ = 1;  // of all bars
  std::optional<std::uint32_t> hovered_;
  bool busy_ = false;
  Background<OpTable::Request, std::shared_ptr<const Flame>> adder_;
};

}  // namespace trivium::gui
