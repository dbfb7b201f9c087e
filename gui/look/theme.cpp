#include "gui/look/theme.h"

#include <QApplication>
#include <QPainter>
#include <QPixmapCache>
#include <QProxyStyle>
#include <QStyleOption>
#include <algorithm>
#include <array>
#include <cmath>

#include "planner/advice/wording.h"
#include "report/palette.h"

namespace trivium::gui {
namespace {

constexpr std::array<QRgb, 6> kScale{0xff00224e, 0xff35456c, 0xff666970, 0xff948e77, 0xffc8b866, 0xfffee838};

QPalette light_palette() {
  QPalette palette;
  const QColor ink(0x20, 0x22, 0x26), ground(0xf6, 0xf7, 0xf9);
  palette.setColor(QPalette::Window, ground);
  palette.setColor(QPalette::WindowText, ink);
  palette.setColor(QPalette::Base, Qt::white);
  palette.setColor(QPalette::AlternateBase, QColor(0xee, 0xf1, 0xf5));
  palette.setColor(QPalette::Text, ink);
  palette.setColor(QPalette::Button, QColor(0xe8, 0xea, 0xee));
  palette.setColor(QPalette::ButtonText, ink);
  palette.setColor(QPalette::ToolTipBase, Qt::white);
  palette.setColor(QPalette::ToolTipText, ink);
  palette.setColor(QPalette::PlaceholderText, QColor(0x6a, 0x70, 0x78));
  palette.setColor(QPalette::Highlight, QColor(0x00, 0x72, 0xb2));
  palette.setColor(QPalette::HighlightedText, Qt::white);
  palette.setColor(QPalette::Link, QColor(0x00, 0x5a, 0x8e));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, QColor(0x7c, 0x82, 0x8a));
  }
  return palette;
}

QPalette dark_palette() {
  QPalette palette;
  const QColor ink(0xe4, 0xe6, 0xea), ground(0x23, 0x26, 0x2b);
  palette.setColor(QPalette::Window, ground);
  palette.setColor(QPalette::WindowText, ink);
  palette.setColor(QPalette::Base, QColor(0x1a, 0x1c, 0x20));
  palette.setColor(QPalette::AlternateBase, QColor(0x25, 0x28, 0x2e));
  palette.setColor(QPalette::Text, ink);
  palette.setColor(QPalette::Button, QColor(0x33, 0x37, 0x3e));
  palette.setColor(QPalette::ButtonText, ink);
  palette.setColor(QPalette::ToolTipBase, QColor(0x33, 0x37, 0x3e));
  palette.setColor(QPalette::ToolTipText, ink);
  palette.setColor(QPalette::PlaceholderText, QColor(0x9a, 0xa0, 0xa8));
  palette.setColor(QPalette::Highlight, QColor(0x1f, 0x74, 0xae));
  palette.setColor(QPalette::HighlightedText, Qt::white);
  palette.setColor(QPalette::Link, QColor(0x6c, 0xb8, 0xf0));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, QColor(0x8b, 0x91, 0x99));
  }
  return palette;
}

bool keeps_style = false;

/// Fusion, with boxes that are seen on dark ground where they are not ticked: its own edge is darker than the ground.
class Style : public QProxyStyle {
 public:
  Style() : QProxyStyle("Fusion") {}

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override {
    QProxyStyle::drawPrimitive(element, option, painter, widget);
    if (element != PE_IndicatorCheckBox || !is_dark(option->palette)) return;
    painter->save();
    painter->setBrush(Qt::NoBrush);
    painter->setPen(link_colour(option->palette));
    painter->drawRect(option->rect.adjusted(0, 0, -1, -1));
    painter->restore();
  }
};

}  // namespace

void keep_style_of_desktop() { keeps_style = true; }

void apply_theme(Theme theme) {
  static const QPalette desktop = QApplication::palette();  // before this program changed it
  // One of each for good: what a style draws is kept by the palette it was drawn with.
  static const QPalette light = light_palette(), dark = dark_palette();
  static QStyle* const style = []() -> QStyle* {
    // Qt 6.4 keeps the name of every picture that its cache ever held, and a name holds the control's size and palette:
    // every change of either would stay for good. What is drawn anew instead is quickly drawn.
    QPixmapCache::setCacheLimit(0);
    if (keeps_style) return QApplication::style();
    auto* own = new Style;
    QApplication::setStyle(own);
    return own;
  }();
  Q_UNUSED(style);
  if (theme == Theme::kLight) QApplication::setPalette(light);
  if (theme == Theme::kDark) QApplication::setPalette(dark);
  if (theme == Theme::kSystem) {
    // Where the desktop says nothing of its own, what it gives is the style's plain grey.
    QApplication::setPalette(is_dark(desktop) ? dark : light);
  }
}

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::WindowText).lightness() > palette.color(QPalette::Window).lightness();
}

QColor series_colour(int i) {
  const auto& series = report::kSeries;
  const QColor base = QColor::fromRgb(series[static_cast<std::size_t>(i) % series.size()]);
  const int round = i / static_cast<int>(series.size());
  if (round % 3 == 1) return base.darker(155);
  if (round % 3 == 2) return base.lighter(125);
  return base;
}

QColor scale_colour(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (kScale.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), kScale.size() - 2);
  const double rest = at - static_cast<double>(below);
  const QColor a = QColor::fromRgb(kScale[below]), b = QColor::fromRgb(kScale[below + 1]);
  const auto mix = [&](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * rest)); };
  return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

QColor alarm_colour() { return QColor::fromRgb(report::kAlarm); }

QColor kind_colour(report::Kind kind) { return QColor::fromRgb(report::colour_of(kind)); }

QColor part_colour(simulator::Part part) { return QColor::fromRgb(report::colour_of(part)); }

QString part_words(simulator::Part part) { return QString::fromStdString(planner::words_of(part)); }

QString part_words(simulator::Part part, const program::Mesh* mesh) {
  return mesh == nullptr ? part_words(part) : QString::fromStdString(planner::words_of(part, *mesh));
}

QColor link_colour(const QPalette& palette) {
  return is_dark(palette) ? QColor(0x8a, 0x92, 0x9c) : QColor(0x7c, 0x84, 0x8e);
}

QColor quiet_colour(const QPalette& palette) {
  return is_dark(palette) ? QColor(0x5a, 0x60, 0x69) : QColor(0xc3, 0xc8, 0xcf);
}

}  // namespace trivium::gui
