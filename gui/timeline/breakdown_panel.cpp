#include "gui/timeline/breakdown_panel.h"

#include <QEvent>
#include <QHeaderView>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/readable.h"
#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/timeline_painter.h"

namespace trivium::gui {
namespace {

QIcon swatch(const QColor& colour) {
  QPixmap pixmap(12, 12);
  pixmap.fill(colour);
  QPainter painter(&pixmap);
  painter.setPen(QColor(128, 128, 128));
  painter.drawRect(0, 0, 11, 11);
  return {pixmap};
}

}  // namespace

BreakdownPanel::BreakdownPanel(QWidget* parent)
    : QWidget(parent), title_(new QLabel), table_(new QTreeWidget), span_(new QLabel) {
  setAccessibleName(tr("Breakdown"));
  title_->setWordWrap(true);
  span_->setWordWrap(true);
  span_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  table_->setAccessibleName(tr("Time by category"));
  table_->setColumnCount(4);
  table_->setHeaderLabels({tr("Category"), tr("Time"), tr("Share"), tr("Spans")});
  table_->setRootIsDecorated(false);
  table_->setIndentation(8);
  table_->setFocusPolicy(Qt::NoFocus);
  table_->setSelectionMode(QAbstractItemView::NoSelection);
  table_->header()->setStretchLastSection(false);
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(title_);
  column->addWidget(table_, 1);
  column->addWidget(span_);
}

// Lanes take the colours of the theme when it changes, and so does their legend, whichever of both hears of it first.
void BreakdownPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  for (QTreeWidgetItem* line : idle_) line->setIcon(0, idle_swatch());
}

QIcon BreakdownPanel::idle_swatch() const { return swatch(QColor(TimelineColours(palette()).lane)); }

void BreakdownPanel::clear() {
  title_->clear();
  idle_.clear();
  table_->clear();
  span_->clear();
}

QTreeWidgetItem* BreakdownPanel::add_group(const QString& name, const QString& tip) {
  auto* group = new QTreeWidgetItem(table_, {name});
  QFont bold = font();
  bold.setBold(true);
  group->setFont(0, bold);
  group->setToolTip(0, tip);
  group->setFirstColumnSpanned(true);
  group->setExpanded(true);
  return group;
}

QTreeWidgetItem* BreakdownPanel::add_line(QTreeWidgetItem* group, const QIcon& swatch, const QString& name, double ps,
                                          double total_ps, std::uint64_t spans) {
  const QString share = total_ps > 0 ? QString::number(100 * ps / total_ps, 'f', 1) + " %" : QString("–");
  auto* line =
      new QTreeWidgetItem(group, {name, QString::fromStdString(time_text(std::llround(ps))), share,
                                  spans > 0 ? QString::fromStdString(base::integer(static_cast<double>(spans))) : ""});
  line->setIcon(0, swatch);
  for (const int column : {1, 2, 3}) line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  return line;
}

void BreakdownPanel::show_breakdown(const QString& what, const SpanStore& store, const Breakdown& breakdown,
                                    const CriticalPath* path) {
  title_->setText(what);
  idle_.clear();
  table_->clear();
  const double lanes = std::max(1U, breakdown.tracks);
  const auto length = static_cast<double>(breakdown.end_ps - breakdown.begin_ps);
  const auto add_shares = [&](QTreeWidgetItem* group, const std::vector<Share>& shares) {
    for (const Share& share : shares) {
      const CategoryInfo& category = store.categories()[static_cast<std::size_t>(share.category)];
      add_line(group, swatch(colour_of(category)), QString::fromStdString(category.name),
               static_cast<double>(share.ps) / lanes, length, share.spans);
    }
  };
  auto* shown = add_group(
      breakdown.tracks == 1 ? tr("Compute lane") : tr("Compute lanes, mean of %1; spans of all").arg(breakdown.tracks),
      tr("Sums up to the length of the range"));
  add_shares(shown, breakdown.shares);
  idle_.push_back(
      add_line(shown, idle_swatch(), tr("idle"), static_cast<double>(breakdown.idle_ps) / lanes, length, 0));
  if (!breakdown.beside.empty()) {
    add_shares(
        add_group(tr("At the same time, on other lanes"), tr("Communication under way, hidden by compute or not")),
        breakdown.beside);
  }
  if (path == nullptr || path->spans.empty()) return;
  auto* chain = add_group(tr("Critical path of the whole"), tr("The chain of spans that sets the length"));
  const auto whole = static_cast<double>(path->end_ps - path->begin_ps);
  std::vector<std::size_t> order(path->ps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return path->ps[a] > path->ps[b]; });
  for (const std::size_t c : order) {
    if (path->ps[c] == 0) continue;
    add_line(chain, swatch(colour_of(store.categories()[c])), QString::fromStdString(store.categories()[c].name),
             static_cast<double>(path->ps[c]), whole, 0);
  }
  if (path->idle_ps == 0) return;
  idle_.push_back(add_line(chain, idle_swatch(), tr("between spans"), static_cast<double>(path->idle_ps), whole, 0));
}

void BreakdownPanel::show_span(const QString& text) {
  span_->setText(text);
  span_->setVisible(!text.isEmpty());
}

}  // namespace trivium::gui
