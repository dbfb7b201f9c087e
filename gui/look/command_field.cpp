#include "gui/look/command_field.h"

#include <QPainter>
#include <QStyleOptionFrame>

namespace trivium::gui {
namespace {

constexpr int kColumns = 90;  // of a tooltip
constexpr int kMargin = 2;    // pixels, as QLineEdit has left and right of its text

}  // namespace

QString in_lines(const QString& command, int columns) {
  QString lines;
  qsizetype length = 0;
  const QStringList options = command.split(" --");
  for (qsizetype o = 0; o < options.size(); ++o) {
    const QString piece = (o > 0 ? " --" : "") + options[o];
    if (length > 0 && length + piece.size() > columns) {
      lines += " \\\n ";
      length = 1;
    }
    lines += piece;
    length += piece.size();
  }
  return lines;
}

CommandField::CommandField(const QString& name, QWidget* parent) : QLineEdit(parent), name_(name) {
  setReadOnly(true);
  setFrame(false);
  setAccessibleName(name);
  setToolTip(name);
}

void CommandField::set_command(const QString& command, const QString& note) {
  setText(command);
  setCursorPosition(0);
  QStringList said{name_};
  for (const QString& more : {in_lines(command, kColumns), note}) {
    if (!more.isEmpty()) said << more;
  }
  setToolTip(said.join('\n'));
}

QRect CommandField::room() const {
  QStyleOptionFrame option;
  initStyleOption(&option);
  return style()->subElementRect(QStyle::SE_LineEditContents, &option, this).adjusted(kMargin, 0, -kMargin, 0);
}

QString CommandField::shown() const {
  return hasFocus() ? text() : fontMetrics().elidedText(text(), Qt::ElideRight, room().width());
}

void CommandField::paintEvent(QPaintEvent* event) {
  const QString words = shown();
  if (words == text()) return QLineEdit::paintEvent(event);
  QPainter painter(this);
  QStyleOptionFrame option;
  initStyleOption(&option);
  style()->drawPrimitive(QStyle::PE_PanelLineEdit, &option, &painter, this);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(room(), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextSingleLine, words);
}

}  // namespace trivium::gui
