#include "gui/views/fit_advice.h"

#include <QHBoxLayout>

#include "base/error.h"
#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"

namespace trivium::gui {
namespace {

constexpr std::size_t kShown = 4;

}  // namespace

FitAdvice::FitAdvice(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      title_(new QLabel),
      rows_(new QVBoxLayout),
      thinker_(
          [](const std::shared_ptr<const Evaluation>& evaluation, const std::stop_token& stop) {
            try {
              return ways_to_fit(*evaluation, kShown, stop);
            } catch (const base::Failure&) {
              return std::vector<WayToFit>{};  // fields that no search can hold together
            }
          },
          [this](std::vector<WayToFit> ways) { show_ways(std::move(ways)); }) {
  title_->setAccessibleName("What would make the plan fit");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(title_);
  column->addLayout(rows_);
  rows_->setContentsMargins(0, 0, 0, 0);
  rows_->setSpacing(2);
  hide();
  connect(&document_, &Document::scenario_changed, this, [this] { clear(); });
  connect(&document_, &Document::evaluated, this, [this] { ask(); });
}

void FitAdvice::set_wanted(bool wanted) {
  wanted_ = wanted;
  if (wanted_) return ask();
  thinker_.cancel();
  if (std::exchange(busy_, false)) asked_.reset();
}

void FitAdvice::clear() {
  thinker_.cancel();
  busy_ = false;
  asked_.reset();
  ways_.clear();
  buttons_.clear();
  while (QLayoutItem* item = rows_->takeAt(0)) {
    if (item->widget() != nullptr) item->widget()->deleteLater();
    delete item;
  }
  hide();
}

void FitAdvice::ask() {
  const auto& evaluation = document_.evaluation();
  if (!wanted_ || !document_.settled() || asked_ == evaluation) return;
  if (!evaluation->runs() || evaluation->fits()) return;
  clear();
  asked_ = evaluation;
  busy_ = true;
  title_->setText("Looking for what would make it fit …");
  show();
  thinker_.post(evaluation);
}

void FitAdvice::show_ways(std::vector<WayToFit> ways) {
  busy_ = false;
  ways_ = std::move(ways);
  title_->setText(ways_.empty() ? "No single change makes it fit; a search may find another plan."
                                : "<b>It would fit</b>");
  for (std::size_t w = 0; w < ways_.size(); ++w) {
    const WayToFit& way = ways_[w];
    auto* line = new QWidget;
    auto* row = new QHBoxLayout(line);
    row->setContentsMargins(0, 0, 0, 0);
    auto* button = new QPushButton("Use this");
    button->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    button->setAccessibleName(text("Use the plan " + display_name(way.words)));
    button->setToolTip(text(display_name(program::summary(way.scenario.file.job.plan))));
    connect(button, &QPushButton::clicked, this, [this, w] { use(w); });
    auto* words = new QLabel(QString("%1 – %2 an iteration, %3 of memory")
                                 .arg(text(display_name(way.words)), text(seconds_words(way.iteration_s)),
                                      text(base::size(way.peak_bytes))));
    words->setWordWrap(true);
    row->addWidget(button);
    row->addWidget(words, 1);
    rows_->addWidget(line);
    buttons_.push_back(button);
  }
}

void FitAdvice::use(std::size_t way) {
  const WayToFit chosen = ways_.at(way);  // the edit clears the list
  document_.edit(chosen.scenario, text("what fits: " + display_name(chosen.words)));
}

}  // namespace trivium::gui
