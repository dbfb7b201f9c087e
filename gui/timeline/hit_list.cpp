#include "gui/timeline/hit_list.h"

#include <QHeaderView>
#include <QItemSelectionModel>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>

#include "gui/timeline/spans/time_text.h"

namespace trivium::gui {
namespace {

enum Column { kSpan, kRank, kStart, kLength, kColumns };
constexpr int kWidth = 640, kHeight = 360;  // pixels

QString words(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

void HitModel::set_hits(const std::vector<SceneTimeline>& timelines,
                        const std::vector<std::shared_ptr<const std::vector<std::uint32_t>>>& matches) {
  beginResetModel();
  stores_.clear();
  hits_.clear();
  for (const SceneTimeline& timeline : timelines) stores_.push_back(timeline.spans);
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (std::size_t t = 0; t < std::min(matches.size(), stores_.size()); ++t) {
    if (!matches[t]) continue;
    for (const std::uint32_t span : *matches[t]) {
      if (hits_.size() < kMost) hits_.push_back({static_cast<int>(t), span});
    }
  }
  std::stable_sort(hits_.begin(), hits_.end(), [&](const SpanId& a, const SpanId& b) {
    return store_of(a).start_of(a.span) < store_of(b).start_of(b.span);
  });
  endResetModel();
}

int HitModel::first_from(std::int64_t ps) const {
  const auto first = std::partition_point(hits_.begin(), hits_.end(),
                                          [&](const SpanId& id) { return store_of(id).start_of(id.span) < ps; });
  return static_cast<int>(std::min(first - hits_.begin(), std::max<std::ptrdiff_t>(0, std::ssize(hits_) - 1)));
}

int HitModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(hits_.size());
}

int HitModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant HitModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return QStringList{tr("Span"), tr("Rank"), tr("Start"), tr("Length")}.value(section);
}

QVariant HitModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole && index.column() >= kStart) return int(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  const SpanId id = hit(index.row());
  const SpanStore& store = store_of(id);
  switch (index.column()) {
    case kSpan:
      return words(store.name_of(id.span));
    case kRank: {
      const std::int32_t row = store.tracks()[store.track_of(id.span)].row;
      return words(store.rows()[static_cast<std::size_t>(store.device_of(row))].name);
    }
    case kStart:
      return words(time_text(store.start_of(id.span) - store.begin()));
    default:
      return words(time_text(store.end_of(id.span) - store.start_of(id.span)));
  }
}

HitList::HitList(QWidget* parent) : QFrame(parent, Qt::Popup), table_(new QTableView) {
  setFrameShape(QFrame::StyledPanel);
  table_->setModel(&model_);
  table_->setAccessibleName(tr("What was found"));
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAlternatingRowColors(true);
  table_->setShowGrid(false);
  table_->setWordWrap(false);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  table_->horizontalHeader()->setSectionResizeMode(kSpan, QHeaderView::Stretch);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(table_);
  resize(kWidth, kHeight);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (now.isValid() && !opening_ && on_choose) on_choose(model_.hit(now.row()));
  });
  connect(table_, &QTableView::activated, this, [this] { close(); });
}

void HitList::open_at(QPoint at, std::int64_t from_ps) {
  opening_ = true;
  const int row = model_.first_from(from_ps);
  move(at);
  show();
  table_->setColumnWidth(kRank, 200);
  table_->setCurrentIndex(model_.index(row, kSpan));
  table_->scrollTo(model_.index(row, kSpan), QAbstractItemView::PositionAtTop);
  table_->setFocus();
  opening_ = false;
}

}  // namespace trivium::gui
