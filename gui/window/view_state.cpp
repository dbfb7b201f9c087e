// How the views stand: kept with a project, and shown again with it.
#include "gui/model/view_state.h"

#include <algorithm>
#include <cmath>

#include "base/seconds.h"
#include "gui/window/main_window.h"

namespace trivium::gui {
namespace {

constexpr double kMostSeconds = 1e6;  // of a timeline: longer ones have no picoseconds

std::int64_t ps_of(double seconds) {
  return std::llround(std::clamp(seconds, -kMostSeconds, kMostSeconds) / base::kSecondsPerPs);
}

void choose(QComboBox& box, const std::string& name) {
  if (const int at = box.findText(QString::fromStdString(name)); !name.empty() && at >= 0) box.setCurrentIndex(at);
}

}  // namespace

ViewState MainWindow::view_state() const {
  ViewState state;
  state.view = view_names()[view()].toStdString();
  state.device_colour = cluster_->colour().currentText().toStdString();
  state.memory_by_rank = memory_->shows_ranks();
  state.plans_filter = plans_->filter().text().toStdString();
  state.question = what_if_->question().currentText().toStdString();
  state.question_value = what_if_->value().text().toStdString();
  state.two_plans = compare_pages_->currentWidget() == two_plans_;
  state.search = timeline_->search_field().text().toStdString();
  state.rows = timeline_->row_filter().text().toStdString();
  state.flame = timeline_->below().currentWidget() == &timeline_->flame();
  if (state_to_come_) {  // not shown yet: it stays as it came
    state.timeline_begin_s = state_to_come_->timeline_begin_s;
    state.timeline_end_s = state_to_come_->timeline_end_s;
    state.marks_s = state_to_come_->marks_s;
    state.rows = state_to_come_->rows;
    return state;
  }
  const TimelineCanvas& canvas = timeline_->canvas();
  if (!canvas.timelines().empty() && !canvas.shows_all()) {
    state.timeline_begin_s = static_cast<double>(canvas.begin_ps()) * base::kSecondsPerPs;
    state.timeline_end_s = static_cast<double>(canvas.end_ps()) * base::kSecondsPerPs;
  }
  for (const std::int64_t mark : canvas.marks()) {
    state.marks_s.push_back(static_cast<double>(mark) * base::kSecondsPerPs);
  }
  return state;
}

void MainWindow::show_state(const ViewState& state) {
  choose(cluster_->colour(), state.device_colour);
  memory_->show_ranks(state.memory_by_rank);
  plans_->filter().setText(QString::fromStdString(state.plans_filter));
  choose(what_if_->question(), state.question);
  if (!state.question_value.empty()) what_if_->value().setText(QString::fromStdString(state.question_value));
  compare_pages_->setCurrentIndex(state.two_plans ? 1 : 0);
  timeline_->search_field().setText(QString::fromStdString(state.search));
  timeline_->below().setCurrentIndex(state.flame ? 1 : 0);
  state_to_come_ = state;
  const qsizetype number = view_names().indexOf(QString::fromStdString(state.view));
  if (number >= 0) show_view(static_cast<View>(number));
}

void MainWindow::show_state_of_timeline() {
  if (!state_to_come_ || !document_.settled() || timeline_->canvas().timelines().empty()) return;
  const ViewState state = *std::exchange(state_to_come_, std::nullopt);
  timeline_->row_filter().setText(QString::fromStdString(state.rows));
  std::vector<std::int64_t> marks;
  for (const double mark : state.marks_s) marks.push_back(ps_of(mark));
  timeline_->canvas().set_marks(std::move(marks));
  if (state.timeline_end_s > state.timeline_begin_s) {
    timeline_->canvas().show_time(ps_of(state.timeline_begin_s), ps_of(state.timeline_end_s));
  }
}

}  // namespace trivium::gui
