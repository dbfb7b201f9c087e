// Ranks by time.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/timeline/named_timeline.h"

namespace trivium::gui {

/// Shows timelines above each other on one scale. Lives on the GUI thread.
class TimelineView : public QWidget {
 public:
  explicit TimelineView(QWidget* parent = nullptr);

  /// Replaces what is shown; none: a hint what to do.
  void set_timelines(std::vector<NamedTimeline> timelines);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<NamedTimeline> timelines_;
};

}  // namespace trivium::gui
