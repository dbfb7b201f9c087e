#include "gui/timeline/flame_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/readable.h"
#include "gui/look/ink.h"
#include "gui/look/text.h"
#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/timeline_painter.h"

namespace trivium::gui {
namespace {

constexpr double kLeastBar = 0.7;   // pixels
constexpr double kLeastNamed = 12;  // pixels
constexpr double kAir = 4;          // pixels left and right of a name
constexpr double kSmallAir = 1.5;   // the same of small letters
constexpr int kSmall = 9;           // pixels: smaller letters cannot be read
constexpr double kLines = 3;        // of the height of text: a bar
constexpr double kLeastLines = 1;   // the same where there is little room
constexpr int kLevels = 5;          // everything, phases, tasks, segments and ops
constexpr int kLow = 120;           // pixels of height: the title has less room, too

QString share_text(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? text(base::percent(static_cast<double>(part) / static_cast<double>(whole))) : QString("–");
}

}  // namespace

FlameView::FlameView(QWidget* parent)
    : QWidget(parent),
      adder_(
          [](const OpTable::Request& asked, const std::stop_token& stop) -> std::shared_ptr<const Flame> {
            try {
              return std::make_shared<const Flame>(flame_of(*asked.spans, asked.stretch, stop));
            } catch (const base::Failure&) {
              return nullptr;  // interrupted: a newer one is asked for
            }
          },
          [this](std::shared_ptr<const Flame> flame) { take(std::move(flame)); }) {
  setAccessibleName(tr("Flame view"));
  setAccessibleDescription(tr("Phases, tasks, segments and ops, as wide as their time"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
}

void FlameView::show_stretch(OpTable::Request request) {
  shown_ = std::move(request);
  busy_ = true;
  flame_.reset();
  hovered_.reset();
  focus_ = 0;
  adder_.post(shown_);
  update();
}

void FlameView::clear() {
  adder_.cancel();
  busy_ = false;
  shown_ = {};
  take(nullptr);
}

void FlameView::take(std::shared_ptr<const Flame> flame) {
  busy_ = false;
  flame_ = std::move(flame);
  focus_ = 0;
  hovered_.reset();
  levels_ = 1;
  std::vector<int> levels(flame_ ? flame_->size() : 0, 1);
  for (std::uint32_t n = 1; n < levels.size(); ++n) {  // parents were made before
    levels[n] = levels[flame_->node(n).parent] + 1;
    levels_ = std::max(levels_, levels[n]);
  }
  update();
  if (flame_ && on_shown) on_shown();
}

void FlameView::set_focus(std::uint32_t node) {
  if (!flame_ || node >= flame_->size()) return;
  focus_ = node;
  update();
}

// Lower where all levels have no room else.
double FlameView::bar_height() const {
  const double line = QFontMetricsF(font()).height();
  return std::floor(std::clamp((height() - title_height()) / levels_, line * kLeastLines, line * kLines));
}

int FlameView::whole_height() const {
  const double line = QFontMetricsF(font()).height();
  return static_cast<int>(1.5 * line + levels_ * std::floor(kLines * line)) + 1;
}

double FlameView::title_height() const { return QFontMetricsF(font()).height() * (height() < kLow ? 1.1 : 1.5); }

// What lies above the one that is as wide as the view is as wide, too.
std::vector<FlameView::Bar> FlameView::bars() const {
  std::vector<Bar> made;
  if (!flame_ || flame_->node(0).ps == 0) return made;
  std::vector<std::uint32_t> above{focus_};
  while (above.back() != 0) above.push_back(flame_->node(above.back()).parent);
  double y = title_height();
  for (auto node = above.rbegin(); node != above.rend(); ++node) {
    made.push_back({QRectF(0, y, width(), bar_height() - 1), *node});
    y += bar_height();
  }
  for (std::size_t b = made.size() - 1; b < made.size(); ++b) {
    const Bar parent = made[b];
    const double per_ps =
        parent.box.width() / static_cast<double>(std::max<std::int64_t>(1, flame_->node(parent.node).ps));
    double x = parent.box.left();
    for (const std::uint32_t child : flame_->children(parent.node)) {
      const double wide = static_cast<double>(flame_->node(child).ps) * per_ps;
      if (wide >= kLeastBar)
        made.push_back({QRectF(x, parent.box.top() + bar_height(), wide, bar_height() - 1), child});
      x += wide;
    }
  }
  return made;
}

QRectF FlameView::box_of(std::uint32_t node) const {
  for (const Bar& bar : bars()) {
    if (bar.node == node) return bar.box;
  }
  return {};
}

std::optional<std::uint32_t> FlameView::node_at(QPointF at) const {
  for (const Bar& bar : bars()) {
    if (bar.box.contains(at)) return bar.node;
  }
  return std::nullopt;
}

QString FlameView::title() const {
  if (busy_) return tr("Adding up %1 …").arg(shown_.what);
  if (!flame_ || flame_->node(0).ps == 0) return tr("No time here");
  QString words = tr("Time of %1, all lanes. A click makes a bar as wide as the view.").arg(shown_.what);
  if (flame_->is_cut()) words += tr(" The finest bars are left out: there are too many.");
  return words;
}

QString FlameView::describe(std::uint32_t n) const {
  const FlameNode& node = flame_->node(n);
  const std::string name = flame_->full_name(n, *shown_.spans);
  const std::string& kind = shown_.spans->categories()[node.category].name;
  QString words = name.empty() ? tr("everything") : text(name);
  words += tr("\n%1, %2 of the whole").arg(text(time_text(node.ps)), share_text(node.ps, flame_->node(0).ps));
  if (n != 0 && node.parent != 0)
    words += tr(", %1 of what it is in").arg(share_text(node.ps, flame_->node(node.parent).ps));
  return words + tr("\n%1 spans, most of it %2").arg(text(base::integer(static_cast<double>(node.spans))), text(kind));
}

void FlameView::draw_bar(QPainter& painter, const Bar& bar) const {
  const FlameNode& node = flame_->node(bar.node);
  const bool root = bar.node == 0;
  const QColor colour = root ? palette().color(QPalette::Button) : colour_of(shown_.spans->categories()[node.category]);
  painter.fillRect(bar.box.adjusted(0, 0, bar.box.width() > 3 ? -1 : 0, 0), colour);
  if (hovered_ == bar.node) {
    painter.setPen(QPen(palette().color(QPalette::WindowText), 1.5));
    painter.drawRect(bar.box.adjusted(0.5, 0.5, -1.5, -0.5));
  }
  if (bar.box.width() < kLeastNamed) return;
  painter.setPen(root ? palette().color(QPalette::ButtonText) : ink_on(colour));
  const Written name = written_on(bar.node, bar.box.width());
  const double air = name.small ? kSmallAir : kAir;
  painter.setFont(name.small ? small_font() : font());
  painter.drawText(bar.box.adjusted(air, 0, name.small ? 0 : -air, 0), Qt::AlignVCenter | Qt::AlignLeft, name.words);
}

QFont FlameView::small_font() const {
  QFont small = font();
  small.setPixelSize(kSmall);
  return small;
}

QString FlameView::name_on(std::uint32_t n, double width) const { return written_on(n, width).words; }

FlameView::Written FlameView::written_on(std::uint32_t n, double width) const {
  const QString name = n == 0 ? tr("everything") : text(flame_->name(n, *shown_.spans));
  const QFontMetricsF metrics(font());
  const QString longer = QString("%1  %2").arg(name, text(time_text(flame_->node(n).ps)));
  const double room = width - 2 * kAir;
  if (metrics.horizontalAdvance(longer) <= room) return {longer};
  if (metrics.horizontalAdvance(name) <= room) return {name};
  if (QFontMetricsF(small_font()).horizontalAdvance(name) <= width - 2 * kSmallAir) return {name, true};
  constexpr int kLeastLetters = 3;  // and an ellipsis: less says nothing
  const QString cut = metrics.elidedText(name, Qt::ElideRight, room);
  return {cut.size() > kLeastLetters ? cut : QString()};
}

QString FlameView::words_of_band(std::uint32_t widest, bool of_one_bar) const {
  const FlameNode& node = flame_->node(widest);
  const QString what = node.level == FlameNode::Level::kTask      ? tr("micro-batches")
                       : node.level == FlameNode::Level::kSegment ? tr("layers")
                                                                  : tr("ops");
  if (!of_one_bar) return what;
  const auto alike = std::ranges::count(flame_->children(node.parent), node.level,
                                        [this](std::uint32_t child) { return flame_->node(child).level; });
  return QString("%1 %2").arg(text(base::integer(static_cast<double>(alike))), what);
}

std::vector<FlameView::Band> FlameView::bands() const {
  struct Level {
    QRectF box;
    std::uint32_t parent = 0;
    std::array<std::uint32_t, kLevels> widest{};  // by what bars are: layers have ops beside them
    std::array<double, kLevels> width{}, all{};
    std::size_t bars = 0;
    bool of_one_bar = true, named = false;
  };
  std::map<std::pair<std::uint32_t, double>, Level> levels;  // by the bar below the widest ones, and the height
  for (const Bar& bar : bars()) {
    if (bar.node == 0 || bar.node == focus_) continue;
    std::uint32_t above = flame_->node(bar.node).parent;
    while (above != 0 && above != focus_ && flame_->node(above).parent != focus_) above = flame_->node(above).parent;
    Level& level = levels[{above, bar.box.top()}];
    if (level.bars++ == 0) level.parent = flame_->node(bar.node).parent;
    level.box |= bar.box;
    level.of_one_bar = level.of_one_bar && flame_->node(bar.node).parent == level.parent;
    const auto kind = static_cast<std::size_t>(flame_->node(bar.node).level);
    level.all[kind] += bar.box.width();
    if (bar.box.width() > level.width[kind]) level.width[kind] = bar.box.width(), level.widest[kind] = bar.node;
    level.named = level.named || !written_on(bar.node, bar.box.width()).words.isEmpty();
  }
  std::vector<Band> made;
  for (const auto& [place, level] : levels) {
    const auto most = std::max_element(level.all.begin(), level.all.end()) - level.all.begin();
    const std::uint32_t widest = level.widest[static_cast<std::size_t>(most)];
    const QString words = words_of_band(widest, level.of_one_bar);
    const double wide = QFontMetricsF(font()).horizontalAdvance(words) + 2 * kAir;
    if (!level.named && level.bars > 1 && wide <= level.box.width()) made.push_back({level.box, words, widest});
  }
  return made;
}

// In the middle, on ground of its own.
void FlameView::draw_bands(QPainter& painter) const {
  painter.setFont(font());
  for (const Band& band : bands()) {
    const QColor ground = colour_of(shown_.spans->categories()[flame_->node(band.widest).category]);
    QRectF plate(0, 0, QFontMetricsF(font()).horizontalAdvance(band.words) + 2 * kAir, band.box.height());
    plate.moveCenter(band.box.center());
    painter.fillRect(plate, ground);
    painter.setPen(ink_on(ground));
    painter.drawText(plate, Qt::AlignCenter, band.words);
  }
}

void FlameView::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.setPen(palette().color(QPalette::WindowText));
  painter.drawText(QRectF(0, 0, width(), title_height()), Qt::AlignVCenter | Qt::AlignLeft,
                   QFontMetricsF(font()).elidedText(title(), Qt::ElideRight, width()));
  for (const Bar& bar : bars()) draw_bar(painter, bar);
  if (flame_) draw_bands(painter);
}

void FlameView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const auto node = node_at(event->position());
  if (!node) return;
  set_focus(*node);
  const FlameNode& chosen = flame_->node(*node);
  if (flame_->children(*node).empty() && on_choose && chosen.like != kNoSpan) on_choose(chosen.like);
}

void FlameView::mouseMoveEvent(QMouseEvent* event) {
  const auto over = node_at(event->position());
  if (over == hovered_) return;
  hovered_ = over;
  update();
}

void FlameView::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  hovered_.reset();
  update();
}

// To the neighbouring bar.
void FlameView::step(int direction) {
  const auto siblings = flame_->children(flame_->node(focus_).parent);
  const auto here = std::find(siblings.begin(), siblings.end(), focus_);
  if (focus_ == 0 || here == siblings.end()) return;
  const std::ptrdiff_t next = here - siblings.begin() + direction;
  if (next >= 0 && next < std::ssize(siblings)) set_focus(siblings[static_cast<std::size_t>(next)]);
}

void FlameView::keyPressEvent(QKeyEvent* event) {
  if (!flame_) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Backspace:
    case Qt::Key_Escape:
      return set_focus(flame_->node(focus_).parent);
    case Qt::Key_Down: {
      const auto below = flame_->children(focus_);
      const auto longest = std::max_element(below.begin(), below.end(), [&](std::uint32_t a, std::uint32_t b) {
        return flame_->node(a).ps < flame_->node(b).ps;
      });
      if (longest != below.end()) set_focus(*longest);
      return;
    }
    case Qt::Key_Left:
      return step(-1);
    case Qt::Key_Right:
      return step(1);
    default:
      QWidget::keyPressEvent(event);
  }
}

bool FlameView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const auto node = flame_ ? node_at(help->pos()) : std::nullopt;
  node ? QToolTip::showText(help->globalPos(), describe(*node), this) : QToolTip::hideText();
  return true;
}

}  // namespace trivium::gui
