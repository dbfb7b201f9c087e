#include "gui/window/pictures.h"

#include <QBuffer>
#include <QPainter>
#include <QSvgGenerator>

#include "base/error.h"
#include "base/files.h"

namespace trivium::gui {
namespace {

constexpr int kSmallest = 0;  // Qt's "quality" of a PNG is how little it is compressed
constexpr int kMargin = 8;    // pixels round a title

/// The lines above the widget, the first in bold: broken where they are wider than it.
class Title {
 public:
  Title(const QWidget& widget, const QStringList& lines) : widget_(widget), lines_(lines) {
    int y = kMargin;
    for (int i = 0; i < lines_.size(); ++i) {
      const QRect room(kMargin, y, widget.width() - 2 * kMargin, widget.height());
      const QRect taken = QFontMetrics(font_of(i)).boundingRect(room, Qt::TextWordWrap, lines_[i]);
      places_.push_back({room.left(), y, room.width(), taken.height()});
      y += taken.height();
    }
    height_ = lines_.isEmpty() ? 0 : y + kMargin;
  }
  int height() const { return height_; }
  void paint(QPainter& painter) const {
    painter.fillRect(0, 0, widget_.width(), height_, widget_.palette().window());
    painter.setPen(widget_.palette().color(QPalette::WindowText));
    for (int i = 0; i < lines_.size(); ++i) {
      painter.setFont(font_of(i));
      painter.drawText(places_[static_cast<std::size_t>(i)], Qt::TextWordWrap, lines_[i]);
    }
  }

 private:
  QFont font_of(int line) const {
    QFont font = widget_.font();
    font.setBold(line == 0);
    return font;
  }

  const QWidget& widget_;
  QStringList lines_;
  std::vector<QRect> places_;
  int height_ = 0;
};

QByteArray svg_of(QWidget& widget, const QStringList& lines) {
  const Title title(widget, lines);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setSize(widget.size() + QSize(0, title.height()));
  generator.setViewBox(QRect(QPoint(0, 0), widget.size() + QSize(0, title.height())));
  generator.setTitle(lines.isEmpty() ? widget.accessibleName() : lines[0]);
  QPainter painter(&generator);
  title.paint(painter);
  widget.render(&painter, QPoint(0, title.height()));
  painter.end();
  return bytes;
}

QByteArray png_bytes(const QImage& image) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.convertToFormat(QImage::Format_RGB888).save(&buffer, "PNG", kSmallest);
  return bytes;
}

}  // namespace

QImage picture_of(QWidget& widget, const QStringList& title_lines) {
  const QImage shown = widget.grab().toImage();
  if (title_lines.isEmpty()) return shown;
  const Title title(widget, title_lines);
  const double scale = shown.devicePixelRatio();
  QImage whole(shown.width(), shown.height() + static_cast<int>(scale * title.height()), QImage::Format_RGB32);
  whole.setDevicePixelRatio(scale);
  QPainter painter(&whole);
  title.paint(painter);
  painter.drawImage(0, title.height(), shown);
  return whole;
}

QByteArray png_of(QWidget& widget) { return png_bytes(picture_of(widget)); }

void save_picture(QWidget& widget, const std::string& path, const QStringList& title) {
  const QString name = QString::fromStdString(path);
  if (!name.endsWith(".png", Qt::CaseInsensitive) && !name.endsWith(".svg", Qt::CaseInsensitive)) {
    throw base::Failure(base::ErrorKind::kUsage, path + ": a picture ends in .png or .svg");
  }
  const bool vectors = name.endsWith(".svg", Qt::CaseInsensitive);
  const QByteArray bytes = vectors ? svg_of(widget, title) : png_bytes(picture_of(widget, title));
  base::write_file_atomically(path, std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
}

}  // namespace trivium::gui
