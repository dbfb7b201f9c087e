#include "gui/window/undo_keys.h"

#include <QKeyEvent>
#include <QLineEdit>

namespace trivium::gui {

UndoKeys::UndoKeys(QObject& window) : QObject(&window) {
  for (QLineEdit* field : window.findChildren<QLineEdit*>()) field->installEventFilter(this);
}

// A field claims both keys whether or not there is anything to take back.
bool UndoKeys::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::ShortcutOverride) return false;
  const auto* field = qobject_cast<QLineEdit*>(watched);
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool nothing = (key->matches(QKeySequence::Undo) && !field->isUndoAvailable()) ||
                       (key->matches(QKeySequence::Redo) && !field->isRedoAvailable());
  if (nothing) event->ignore();
  return nothing;
}

}  // namespace trivium::gui
