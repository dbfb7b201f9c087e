#include "gui/window/pictures.h"

#include <QAbstractItemView>
#include <QBuffer>
#include <QPainter>
#include <QPlainTextEdit>
#include <QScrollBar>
#include <QSvgGenerator>
#include <algorithm>
#include <optional>

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

/// As high as it takes to show what its scroll areas hide, as long as this lives. Tables keep their height: they have
/// files of their own.
class Unrolled {
 public:
  explicit Unrolled(QWidget& widget) : widget_(widget), size_(widget.size()) {
    constexpr int kMostPixels = 12'000;
    for (int hidden = hidden_below(); hidden > 0 && widget_.height() < kMostPixels; hidden = hidden_below()) {
      const int before = widget_.height();
      widget_.resize(widget_.width(), std::min(kMostPixels, before + hidden));
      if (hidden_below() >= hidden) break;  // more room goes elsewhere
    }
  }
  ~Unrolled() {
    if (widget_.size() != size_) widget_.resize(size_);
  }
  Unrolled(const Unrolled&) = delete;
  Unrolled& operator=(const Unrolled&) = delete;

 private:
  int hidden_below() const {
    int hidden = 0;
    for (const auto* area : widget_.findChildren<QAbstractScrollArea*>()) {
      const bool scrolls_pixels = qobject_cast<const QAbstractItemView*>(area) == nullptr &&
                                  qobject_cast<const QPlainTextEdit*>(area) == nullptr;
      if (scrolls_pixels && area->isVisible()) hidden = std::max(hidden, area->verticalScrollBar()->maximum());
    }
    return hidden;
  }
  QWidget& widget_;
  QSize size_;
};

QByteArray svg_of(QWidget& widget, const QStringList& lines) {
  std::optional<Unrolled> whole_view;
  if (!lines.isEmpty()) whole_view.emplace(widget);
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
  if (title_lines.isEmpty()) return widget.grab().toImage();
  const Unrolled whole_view(widget);
  const QImage shown = widget.grab().toImage();
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
