#include "gui/window/pictures.h"

#include <QBuffer>
#include <QPainter>
#include <QPixmap>
#include <QSvgGenerator>

#include "base/error.h"
#include "base/files.h"

namespace trivium::gui {
namespace {

constexpr int kSmallest = 0;  // Qt's "quality" of a PNG is how little it is compressed

QByteArray svg_of(QWidget& widget) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setSize(widget.size());
  generator.setViewBox(widget.rect());
  generator.setTitle(widget.accessibleName());
  QPainter painter(&generator);
  widget.render(&painter);
  painter.end();
  return bytes;
}

}  // namespace

QByteArray png_of(QWidget& widget) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  widget.grab().toImage().convertToFormat(QImage::Format_RGB888).save(&buffer, "PNG", kSmallest);
  return bytes;
}

void save_picture(QWidget& widget, const std::string& path) {
  const QString name = QString::fromStdString(path);
  if (!name.endsWith(".png", Qt::CaseInsensitive) && !name.endsWith(".svg", Qt::CaseInsensitive)) {
    throw base::Failure(base::ErrorKind::kUsage, path + ": a picture ends in .png or .svg");
  }
  const QByteArray bytes = name.endsWith(".svg", Qt::CaseInsensitive) ? svg_of(widget) : png_of(widget);
  base::write_file_atomically(path, std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

}  // namespace trivium::gui
