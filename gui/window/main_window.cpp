#include "gui/window/main_window.h"

namespace trivium::gui {

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent), tabs_(new QTabWidget(this)), timeline_(new TimelineView), compare_(new CompareView) {
  setWindowTitle("Trivium");
  setCentralWidget(tabs_);
  tabs_->addTab(timeline_, "Timeline");
  tabs_->addTab(compare_, "Compare");
  connect(&document_, &Document::evaluated, this, &MainWindow::show_evaluation);
}

void MainWindow::show_evaluation() {
  const auto& evaluation = document_.evaluation();
  std::vector<NamedTimeline> timelines;
  if (evaluation->runs()) timelines.push_back({"predicted", evaluation->program, evaluation->timeline, nullptr, nullptr});
  timeline_->set_timelines(std::move(timelines));
}

}  // namespace trivium::gui
