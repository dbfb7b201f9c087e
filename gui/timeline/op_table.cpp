#include "gui/timeline/op_table.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>

#include "base/error.h"
#include "base/readable.h"
#include "gui/timeline/spans/time_text.h"
#include "gui/timeline/timeline_painter.h"

namespace trivium::gui {
namespace {

enum Column { kOp, kCount, kTotal, kShare, kMean, kTflops, kRoofline, kColumns };
constexpr int kValue = Qt::UserRole;  // what a column is sorted by
constexpr int kNumber = Qt::UserRole + 1;
constexpr std::size_t kMostLines = 2000;  // traces of other programs may have a name for every span
constexpr double kPsPerSecond = 1e12;

class Line : public QTreeWidgetItem {
 public:
  using QTreeWidgetItem::QTreeWidgetItem;
  bool operator<(const QTreeWidgetItem& other) const override {
    const int column = treeWidget() != nullptr ? treeWidget()->sortColumn() : 0;
    if (column == kOp) return text(kOp) < other.text(kOp);
    return data(column, kValue).toDouble() < other.data(column, kValue).toDouble();
  }
};

QString percent(double share) { return QString::number(100 * share, 'f', 1) + " %"; }

}  // namespace

OpTable::OpTable(QWidget* parent)
    : QWidget(parent),
      title_(new QLabel),
      export_(new QPushButton(tr("Export CSV …"))),
      table_(new QTreeWidget),
      adder_(
          [](const Request& asked, const std::stop_token& stop) {
            try {
              return op_totals(*asked.spans, asked.stretch, asked.work, stop);
            } catch (const base::Failure&) {
              return std::vector<OpTotal>{};  // interrupted: a newer one is asked for
            }
          },
          [this](std::vector<OpTotal> ops) { take(std::move(ops)); }) {
  setAccessibleName(tr("Ops"));
  table_->setAccessibleName(tr("Time by op"));
  table_->setColumnCount(kColumns);
  table_->setHeaderLabels(
      {tr("Op"), tr("Count"), tr("Total"), tr("Share"), tr("Mean"), tr("TFLOP/s"), tr("Of roofline")});
  table_->headerItem()->setToolTip(kShare, tr("Of the time of all ops, whichever lane they are on"));
  table_->headerItem()->setToolTip(kMean, tr("Of whole spans, also of those that the selection cuts"));
  table_->headerItem()->setToolTip(kTflops, tr("10¹² floating-point operations a second of one device"));
  table_->headerItem()->setToolTip(
      kRoofline,
      tr("The least time that the device's peak and memory bandwidth allow, as a share of the time it takes"));
  table_->setRootIsDecorated(false);
  table_->setTextElideMode(Qt::ElideMiddle);  // ops differ at their beginning and at their end
  table_->setUniformRowHeights(true);
  table_->setAlternatingRowColors(true);
  table_->setSortingEnabled(true);
  table_->sortByColumn(kTotal, Qt::DescendingOrder);
  table_->header()->setStretchLastSection(false);
  table_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->header()->setSectionResizeMode(kOp, QHeaderView::Stretch);
  table_->setMinimumHeight(70);  // a small screen has room for it
  export_->setToolTip(tr("All ops of the selection, with more digits"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(title_, 1);
  bar->addWidget(export_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(bar);
  column->addWidget(table_, 1);
  const auto go = [this](QTreeWidgetItem* item) {
    const auto at = static_cast<std::size_t>(item->data(kOp, kNumber).toInt());
    if (on_next && at < ops_.size()) on_next(ops_[at].first);
  };
  connect(table_, &QTreeWidget::itemClicked, this, go);
  connect(table_, &QTreeWidget::itemActivated, this, go);
  connect(export_, &QPushButton::clicked, this, [this] {
    if (on_export) on_export();
  });
  clear();
}

void OpTable::show_stretch(Request request) {
  const bool of_others = shown_.spans != request.spans;
  shown_ = std::move(request);
  if (of_others) take({});  // its lines lead to spans that are there no more
  busy_ = true;
  title_->setText(tr("Ops of %1 …").arg(shown_.what));
  adder_.post(shown_);
}

void OpTable::clear() {
  adder_.cancel();
  busy_ = false;
  shown_ = {};
  take({});
}

std::string OpTable::csv() const { return shown_.spans ? csv_of(ops_, *shown_.spans) : std::string(); }

void OpTable::take(std::vector<OpTotal> ops) {
  busy_ = false;
  ops_ = std::move(ops);
  export_->setEnabled(!ops_.empty());
  title_->setText(ops_.empty() ? tr("No ops here")
                               : tr("Ops of %1. A click goes to the next occurrence.").arg(shown_.what));
  const auto reading = table_->selectedItems();
  const QString kept = reading.isEmpty() ? QString() : reading[0]->text(kOp);
  table_->clear();
  double all = 0;
  for (const OpTotal& op : ops_) all += static_cast<double>(op.ps);
  QList<QTreeWidgetItem*> lines;
  for (std::size_t i = 0; i < std::min(ops_.size(), kMostLines); ++i) {
    lines << line_of(ops_[i], all);
    lines.back()->setData(kOp, kNumber, static_cast<int>(i));
  }
  table_->setSortingEnabled(false);
  table_->addTopLevelItems(lines);
  table_->setSortingEnabled(true);
  if (ops_.size() > kMostLines) {
    title_->setText(title_->text() + tr(" The %1 longest of %2 are listed.").arg(kMostLines).arg(ops_.size()));
  }
  for (QTreeWidgetItem* line : lines) {
    if (line->text(kOp) == kept) table_->setCurrentItem(line);
  }
  if (!ops_.empty() && on_shown) on_shown();
}

int OpTable::whole_height() const {
  const int row = table_->visualRect(table_->model()->index(0, 0)).height();
  const int around = height() > table_->height() ? height() - table_->height() : export_->sizeHint().height();
  return around + table_->header()->sizeHint().height() + 2 * table_->frameWidth() + table_->topLevelItemCount() * row;
}

QTreeWidgetItem* OpTable::line_of(const OpTotal& op, double all_ps) {
  const auto& category = shown_.spans->categories()[static_cast<std::size_t>(op.category)];
  auto* line = new Line;
  QPixmap swatch(12, 12);
  swatch.fill(colour_of(category));
  line->setIcon(kOp, swatch);
  line->setText(kOp, QString::fromStdString(op.name));
  line->setToolTip(kOp, QString::fromStdString(op.name + ": " + category.name));
  const auto put = [&](int column, const QString& text, double value) {
    line->setText(column, text);
    line->setData(column, kValue, value);
    line->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
  };
  const double share = all_ps > 0 ? static_cast<double>(op.ps) / all_ps : 0;
  put(kCount, QString::fromStdString(base::integer(static_cast<double>(op.spans))), static_cast<double>(op.spans));
  put(kTotal, QString::fromStdString(time_text(op.ps)), static_cast<double>(op.ps));
  put(kShare, percent(share), share);
  put(kMean, QString::fromStdString(time_text(std::llround(op.mean_s() * kPsPerSecond))), op.mean_s());
  put(kTflops, op.flops > 0 ? QString::number(op.tflops(), 'f', op.tflops() < 10 ? 2 : 0) : QString("–"), op.tflops());
  put(kRoofline, op.roofline_s > 0 ? percent(op.roofline_share()) : QString("–"), op.roofline_share());
  return line;
}

}  // namespace trivium::gui
