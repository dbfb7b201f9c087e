// Plans that are kept to compare with, and the picture of all.
#include <QHeaderView>
#include <QRegularExpression>
#include <QResizeEvent>
#include <QTextLayout>
#include <QTextOption>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"
#include "gui/model/plan_controls.h"
#include "gui/views/plans_view.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr int kSlimmestPin = 150;  // pixels of a column of the comparison
constexpr int kHeaderMargin = 16;  // pixels of a header around its text

bool equal(const program::Plan& a, const program::Plan& b) { return program::to_json(a) == program::to_json(b); }

/// "A", "B", … label the pinned plans.
QString letter(std::size_t pin) { return QString(QChar('A' + static_cast<char>(pin))); }

/// In as many lines as it takes, broken within "recompute=selective:40,none:56" after a sign rather than a
/// letter, and not between a kind of node and its count.
QString wrapped(QString words, const QFont& font, double width) {
  constexpr QChar kMayBreak(0x200B);  // a space of no width
  for (const char sign : {'=', ','}) words.replace(QLatin1Char(sign), QString(QLatin1Char(sign)) + kMayBreak);
  QTextOption option;
  option.setWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  QTextLayout layout(words, font);
  layout.setTextOption(option);
  layout.beginLayout();
  QStringList lines;
  for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
    line.setLineWidth(width);
    lines << words.mid(line.textStart(), line.textLength()).remove(kMayBreak).trimmed();
  }
  layout.endLayout();
  return lines.join('\n');
}

/// A kind of node and its count, "dgx-h100-80gb:8", are not parted by the end of a line.
QString kept_together(QString words) {
  static const QRegularExpression kCount(":(?=\\d)");
  return words.replace(kCount, QString(":") + QChar(0x2060));  // a joiner of no width
}

}  // namespace

void PlansView::pin(int row) {
  if (row < 0 || row >= model_.rowCount() || static_cast<int>(pins_.size()) >= kMostPinned) return;
  if (model_.rows()[static_cast<std::size_t>(row)].interim) return;  // its figures come when the search ends
  const PlanRow& plan = model_.rows()[static_cast<std::size_t>(row)];
  if (std::any_of(pins_.begin(), pins_.end(), [&](const PlanRow& pin) { return equal(pin.plan, plan.plan); })) return;
  pins_.push_back(plan);
  show_new_pins();
}

void PlansView::pin_current() {
  const auto& evaluation = document_.evaluation();
  if (!evaluation || !evaluation->runs() || static_cast<int>(pins_.size()) >= kMostPinned) return;
  const program::Plan& plan = evaluation->scenario.file.job.plan;
  if (std::any_of(pins_.begin(), pins_.end(), [&](const PlanRow& pin) { return equal(pin.plan, plan); })) return;
  pins_.push_back(row_of(plan, evaluation->figures, evaluation->scenario.cluster));
  pins_.back().job = job_words(evaluation->scenario);
  show_new_pins();
}

void PlansView::unpin_all() {
  pinner_.cancel();
  pins_.clear();
  show_new_pins();
}

void PlansView::set_pinned(const std::vector<program::Plan>& plans) {
  pins_.clear();
  show_pins();
  std::vector<std::pair<program::Plan, Scenario>> asked;
  for (const program::Plan& plan : plans) asked.emplace_back(plan, document_.scenario());
  if (asked.size() > kMostPinned) asked.resize(kMostPinned);
  pinner_.post(std::move(asked));
}

std::vector<program::Plan> PlansView::pinned() const {
  std::vector<program::Plan> plans;
  for (const PlanRow& pin : pins_) plans.push_back(pin.plan);
  return plans;
}

std::vector<TwoPlansView::Choice> PlansView::choices() const {
  constexpr std::size_t kOfTheTable = 5;
  std::vector<TwoPlansView::Choice> made;
  const auto add = [&](const QString& name, const PlanRow& row) {
    if (std::any_of(made.begin(), made.end(), [&](const auto& one) { return equal(one.plan, row.plan); })) return;
    made.push_back({name + ": " + text(display_name(row.summary)), row.plan});
  };
  for (std::size_t p = 0; p < pins_.size(); ++p) add("pinned " + letter(p), pins_[p]);
  for (std::size_t r = 0; r < std::min(kOfTheTable, model_.rows().size()); ++r) {
    add(QString("no. %1 of the search").arg(r + 1), model_.rows()[r]);
  }
  return made;
}

void PlansView::show_pins() {
  const std::vector<DifferenceRow> rows = differences(pins_);
  comparison_->clear();
  if (pins_.empty()) {
    comparison_->setRowCount(1);
    comparison_->setColumnCount(1);
    comparison_->setHorizontalHeaderLabels({"Nothing is pinned"});
    comparison_->setItem(0, 0, new QTableWidgetItem("Pin plans to see them side by side, differences highlighted."));
    comparison_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  } else {
    comparison_->setRowCount(static_cast<int>(rows.size()));
    comparison_->setColumnCount(static_cast<int>(pins_.size()) + 1);
    comparison_->setHorizontalHeaderItem(0, new QTableWidgetItem("differs in bold"));
    comparison_->horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
    comparison_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
      const DifferenceRow& difference = rows[static_cast<std::size_t>(r)];
      for (int c = 0; c <= static_cast<int>(pins_.size()); ++c) {
        auto* item =
            new QTableWidgetItem(c == 0 ? text(words_of(difference.name))
                                        : kept_together(text(difference.values[static_cast<std::size_t>(c) - 1])));
        if (difference.differs) {
          QFont font = item->font();
          font.setBold(true);
          item->setFont(font);
          QColor ground = series_colour(1);
          ground.setAlpha(60);
          item->setBackground(ground);
        }
        item->setToolTip(item->text().remove(QChar(0x2060)));
        comparison_->setItem(r, c, item);
      }
    }
    fit_pins();
  }
  show_scatter();
}

void PlansView::show_new_pins() {
  show_pins();
  if (on_pins) on_pins();
}

void PlansView::fit_pins() {
  fitted_width_ = comparison_->viewport()->width();
  const int pins = static_cast<int>(pins_.size());
  if (pins == 0 || comparison_->columnCount() != pins + 1) return;
  const int room = (fitted_width_ - comparison_->horizontalHeader()->sectionSize(0)) / pins;
  const int wide = std::max(room, kSlimmestPin);
  QFont font = comparison_->horizontalHeader()->font();
  font.setBold(true);  // as the header of a selected column
  for (int p = 0; p < pins; ++p) {
    const QString words = text(pins_[static_cast<std::size_t>(p)].summary);
    auto* title =
        new QTableWidgetItem(wrapped(letter(static_cast<std::size_t>(p)) + ": " + words, font, wide - kHeaderMargin));
    title->setToolTip(words);
    comparison_->setHorizontalHeaderItem(p + 1, title);
    comparison_->setColumnWidth(p + 1, wide);
  }
}

bool PlansView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && comparison_->viewport()->width() != fitted_width_) fit_pins();
  return QWidget::eventFilter(watched, event);
}

void PlansView::show_scatter() {
  const bool cost = against_->currentIndex() == 1;
  std::vector<ScatterPoint> points;
  const auto add = [&](const PlanRow& row, const QString& name) {
    points.push_back({row.iteration_s, cost ? row.dollars_per_iteration : row.peak_memory_bytes, text(row.summary),
                      !name.isEmpty(), name});
  };
  for (const PlanRow& row : model_.rows()) {
    if (!row.interim) add(row, {});
  }
  for (std::size_t p = 0; p < pins_.size(); ++p) add(pins_[p], letter(p));
  Axis x{0, 1, "iteration", [](double s) { return text(seconds_words(s)); }, 1, true};
  Axis y{0, 1, cost ? "cost of a step" : "peak memory", [cost](double value) {
           return cost ? text(dollars_text(value)) : text(base::size(static_cast<std::int64_t>(value)));
         }};
  double most = 0;
  for (const ScatterPoint& point : points) most = std::max(most, point.y);
  if (!cost) y.unit = byte_unit(most);
  scatter_->set_points(std::move(points), std::move(x), std::move(y));
}

}  // namespace trivium::gui
