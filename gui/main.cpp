// trivium-gui: plan a cluster layout by looking at it.
#include <QApplication>

#include "gui/window/main_window.h"

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  trivium::gui::MainWindow window;
  window.document().reset(trivium::gui::example_scenario());
  window.show();
  return QApplication::exec();
}
