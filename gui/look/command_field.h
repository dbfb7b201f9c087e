// A command for a shell, to be read and copied.
#pragma once

#include <QLineEdit>

namespace trivium::gui {

/// One line that cannot be changed. Where it has no room for all of the command it ends with an ellipsis, until it has
/// the focus; the tooltip has all of it. Lives on the GUI thread.
class CommandField : public QLineEdit {
  Q_OBJECT

 public:
  /// `name`: what it is, for assistive technology and the tooltip.
  explicit CommandField(const QString& name, QWidget* parent = nullptr);

  /// `note`: said in the tooltip below the command.
  void set_command(const QString& command, const QString& note = {});
  /// What is painted: the command, or as much of it as has room and an ellipsis.
  QString shown() const;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QRect room() const;

  QString name_;
};

/// The same command in several lines for a shell, each with as many options as `columns` allow: all but the last end
/// with a backslash.
QString in_lines(const QString& command, int columns);

}  // namespace trivium::gui
