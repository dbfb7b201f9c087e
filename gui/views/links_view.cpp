#include "gui/views/links_view.h"

#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/display_name.h"

namespace trivium::gui {
namespace {

constexpr int kLeastHeight = 70;       // pixels of table and pictures
constexpr int kRowAir = 8;             // pixels around a line of the table
constexpr int kLeastRows = 3;          // that the table has room for
constexpr double kMostOfTable = 0.62;  // of the height
constexpr const char* kLater = "Comes when the plan has been simulated.";

enum Column { kWire, kFor, kGroup, kBytes, kBusy, kShare, kExposed, kFilled, kColumns };
constexpr const char* kTitles[kColumns] = {
    "Links",         "For", "Group", "Sent by a device", "Busy", "Of the iteration", "Busy, nothing computed",
    "Bandwidth used"};
constexpr const char* kHelp[kColumns] = {
    "A ring over several nodes uses the wires inside them and the network at once",
    "What the tasks do that use it",
    "The ranks that communicate",
    "In an iteration, on average over the stages",
    "Of an iteration, without waiting for partners; what overlaps counts once in the sum",
    "",
    "Share of an iteration in which they are busy and the device computes nothing; what Explain calls exposed is what "
    "a stage waits for",
    "Of a device's share of these wires, while they are busy"};

/// Kinds of traffic that have a colour, in the order of the legend.
constexpr std::array kKinds{report::Kind::kTensor,   report::Kind::kContext, report::Kind::kExpert, report::Kind::kData,
                            report::Kind::kPipeline, report::Kind::kOffload, report::Kind::kOther};
constexpr const char* kKindNames[kKinds.size()] = {"tensor",   "context", "expert", "data",
                                                   "pipeline", "copies",  "others"};

}  // namespace

LinksView::LinksView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      words_(new QLabel),
      table_(new QTableWidget),
      halves_(new FittedSplitter("links table above pictures")),
      bars_(new BarChart("How long wires are in use, by kind and group")),
      gains_(new GainChart("What better wires would bring")),
      thinker_([](const std::shared_ptr<const Evaluation>& evaluation,
                  const std::stop_token& stop) { return machine_gains(*evaluation, stop); },
               [this](std::vector<Sensitivity> gains) {
                 gains_->set_gains(std::move(gains));
                 current_ = true;
               }) {
  setFocusProxy(table_);
  words_->setWordWrap(true);
  words_->setAccessibleName("What the wires carry");
  words_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  table_->setAccessibleName("Wires and what uses them");
  table_->setColumnCount(kColumns);
  for (int c = 0; c < kColumns; ++c) {
    auto* title = new QTableWidgetItem(kTitles[c]);
    title->setToolTip(kHelp[c]);
    table_->setHorizontalHeaderItem(c, title);
  }
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setMinimumSectionSize(fontMetrics().height());
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + kRowAir);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  table_->horizontalHeader()->setSectionResizeMode(kExposed, QHeaderView::ResizeToContents);  // the longest title
  bars_->set_seconds(true);
  for (QWidget* part : std::initializer_list<QWidget*>{table_, bars_, gains_}) part->setMinimumHeight(kLeastHeight);
  auto* below = new QSplitter(Qt::Horizontal);
  below->setObjectName("links bars and gains");
  auto* right = new QWidget;
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(new QLabel("<b>Which wire to buy</b>, or what else: change of an iteration"));
  column->addWidget(gains_, 1);
  below->addWidget(bars_);
  below->addWidget(right);
  below->setSizes({500, 500});
  halves_->addWidget(table_);
  halves_->addWidget(below);
  halves_->set_share([this](int height) {
    const int whole = whole_height(*table_, table_->horizontalHeader()->height(), kLeastRows);
    return std::min(whole, static_cast<int>(kMostOfTable * height));
  });
  auto* all = new QVBoxLayout(this);
  all->addWidget(words_);
  all->addWidget(halves_, 1);
  connect(&document_, &Document::scenario_changed, this, [this] { set_aside(); });
  connect(&document_, &Document::evaluated, this, [this] { show_evaluation(); });
  set_aside();
}

void LinksView::set_aside() {
  thinker_.cancel();
  current_ = false;
  wires_.clear();
  words_->setText(kLater);
  table_->setRowCount(0);
  bars_->set_hint(kLater);
  bars_->set_bars({}, {}, {}, {});
  gains_->set_hint(kLater);
  gains_->set_gains({});
}

void LinksView::set_wanted(bool wanted) {
  wanted_ = wanted;
  if (wanted_ && !current_ && document_.settled()) return show_evaluation();
  if (!wanted_) thinker_.cancel();
}

void LinksView::show_evaluation() {
  if (!document_.settled()) return;
  const auto& evaluation = document_.evaluation();
  if (!evaluation->runs()) {
    set_aside();
    words_->setText("The plan cannot run: " + text(evaluation->refusal));
    current_ = true;
    return;
  }
  if (!wanted_ || current_) return;
  wires_ = wires_of(*evaluation);
  const double iteration_s = evaluation->figures.iteration_s;
  QStringList sentences;
  for (const std::string& sentence : wire_sentences(wires_, iteration_s)) sentences << text(sentence);
  words_->setText(sentences.isEmpty() ? QString("Nothing is sent: one device has all there is.")
                                      : sentences.join('\n'));
  show_table(iteration_s);
  show_bars(iteration_s);
  gains_->set_hint("Simulating better machines …");
  gains_->set_gains({});
  thinker_.post(evaluation);
}

void LinksView::show_table(double iteration_s) {
  table_->setRowCount(0);
  const auto add = [&](const std::array<QString, kColumns>& cells, bool strong) {
    const int row = table_->rowCount();
    table_->insertRow(row);
    for (int c = 0; c < kColumns; ++c) {
      auto* item = new QTableWidgetItem(cells[static_cast<std::size_t>(c)]);
      if (c >= kBytes) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      QFont font = item->font();
      font.setBold(strong);
      item->setFont(font);
      table_->setItem(row, c, item);
    }
  };
  const auto bytes = [](double b) { return text(base::size(std::llround(b))); };
  for (const simulator::WireUse& wire : wires_) {
    add({text(name_of(wire.wire)), "all", "", bytes(wire.bytes), text(seconds_words(wire.busy_s)),
         text(base::percent(wire.busy_share(iteration_s))), text(base::percent(wire.exposed_s / iteration_s)),
         text(base::percent(wire.filled()))},
        true);
    for (const simulator::LinkUse& use : wire.uses) {
      add({"", text(name_of(use.phase)),
           use.group == program::Group::kNone ? QString("copies")
                                              : text(display_name(std::string(program::name_of(use.group)))),
           bytes(use.bytes), text(seconds_words(use.busy_s)), text(base::percent(use.busy_s / iteration_s)), "", ""},
          false);
    }
  }
  halves_->fit();
}

void LinksView::show_bars(double iteration_s) {
  std::vector<BarPart> parts;
  for (std::size_t k = 0; k < kKinds.size(); ++k) parts.push_back({kKindNames[k], kind_colour(kKinds[k])});
  std::vector<Bar> bars;
  for (const simulator::WireUse& wire : wires_) {
    Bar bar{text(name_of(wire.wire)), std::vector<double>(kKinds.size()), iteration_s};
    for (const simulator::LinkUse& use : wire.uses) {
      const auto at = std::find(kKinds.begin(), kKinds.end(), kind_of(use.group)) - kKinds.begin();
      bar.values[static_cast<std::size_t>(at)] += use.busy_s;
    }
    bars.push_back(std::move(bar));
  }
  bars_->set_hint("Nothing is sent.");
  const bool has_line = most_shown(bars) >= iteration_s;
  bars_->set_bars(std::move(parts), std::move(bars),
                  has_line ? "time in use, by use; dashed: the iteration" : "time in use, by use",
                  [](double s) { return text(seconds_words(s)); });
}

}  // namespace trivium::gui
