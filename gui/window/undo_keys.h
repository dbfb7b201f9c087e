// Whose Ctrl+Z it is: the field's that is typed in, or the window's.
#pragma once

#include <QObject>

namespace trivium::gui {

/// Fields of a window take the keys of undo and redo as long as they have something typed to take back; then these are
/// the window's. Fields that are made later are not asked. Lives on the GUI thread.
class UndoKeys : public QObject {
 public:
  explicit UndoKeys(QObject& window);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
};

}  // namespace trivium::gui
