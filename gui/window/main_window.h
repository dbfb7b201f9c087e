// The window: views of one document side by side.
#pragma once

#include <QMainWindow>
#include <QTabWidget>

#include "gui/document.h"
#include "gui/timeline/compare_view.h"
#include "gui/timeline/timeline_view.h"

namespace trivium::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(QWidget* parent = nullptr);

  Document& document() { return document_; }

 private:
  void show_evaluation();

  Document document_;
  QTabWidget* tabs_;
  TimelineView* timeline_;
  CompareView* compare_;
};

}  // namespace trivium::gui
