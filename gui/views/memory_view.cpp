#include "gui/views/memory_view.h"

#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/axis.h"
#include "gui/model/memory_curve.h"
#include "simulator/cost/costed_program.h"

namespace trivium::gui {
namespace {

QString bytes_text(double bytes) { return text(base::size(static_cast<std::int64_t>(bytes))); }

constexpr std::size_t kWorkspace = 4;  // of the parts

std::vector<BarPart> memory_parts() {
  const QStringList names{"parameters", "gradients", "optimizer", "activations", "workspace", "reserved by the device"};
  std::vector<BarPart> parts;
  for (qsizetype i = 0; i < names.size(); ++i) {
    parts.push_back({names[i], kind_colour(report::kMemoryKinds[static_cast<std::size_t>(i)])});
  }
  parts[kWorkspace].help = "for gathered parameters, buckets of gradients and results of ops, while they are used";
  return parts;
}

}  // namespace

MemoryView::MemoryView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      reason_(new QLabel),
      held_(new QLabel),
      advice_(new FitAdvice(document)),
      by_(new QComboBox),
      rank_(new QSpinBox),
      bars_(new BarChart("Memory by stage or rank")),
      curve_(new LineChart("Memory over time")) {
  reason_->setWordWrap(true);
  setFocusProxy(bars_);
  reason_->setAccessibleName("Whether the plan fits");
  reason_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  held_->setWordWrap(true);
  held_->setAccessibleName("Whose memory is shown over time");
  by_->addItems({"by stage", "by rank"});
  by_->setAccessibleName("What a bar stands for");
  rank_->setAccessibleName("Rank that is shown over time");
  rank_->setPrefix("rank ");
  rank_->setToolTip("Below, the memory of this rank over an iteration");
  rank_->setVisible(false);
  bars_->set_hint("No plan that could run: its memory would stand here, by stage or rank.");
  curve_->set_hint("Select a bar above to see its memory over an iteration.");
  bars_->on_select = [this](int) { show_selected(); };
  auto* top = new QHBoxLayout;
  top->addWidget(reason_, 1);
  top->addWidget(rank_);
  top->addWidget(by_);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(top);
  layout->addWidget(advice_);
  layout->addWidget(bars_, 3);
  layout->addWidget(held_);
  layout->addWidget(curve_, 3);
  connect(&document_, &Document::evaluated, this, [this] { show_evaluation(); });
  connect(by_, &QComboBox::currentIndexChanged, this, [this] {
    rank_->setVisible(shows_ranks());
    show_bars();
  });
  connect(rank_, &QSpinBox::valueChanged, this, [this](int rank) {
    bars_->set_selected(rank);
    show_selected();
  });
}

void MemoryView::show_ranks(bool ranks) { by_->setCurrentIndex(ranks ? 1 : 0); }

void MemoryView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  advice_->set_wanted(true);
  catch_up();
}

void MemoryView::hideEvent(QHideEvent* event) {
  QWidget::hideEvent(event);
  advice_->set_wanted(false);
}

void MemoryView::show_evaluation() {
  show_bars();
  show_reason();
}

void MemoryView::show_bars() {
  const auto& evaluation = document_.evaluation();
  if (!evaluation) return;
  ranks_.clear();
  if (evaluation->runs() && shows_ranks()) ranks_ = memory_of_ranks(*evaluation);
  if (evaluation->runs() && !shows_ranks()) {
    for (const simulator::StageMemory& stage : evaluation->memory) {
      ranks_.push_back({simulator::representative(*evaluation->program, stage.role), stage});
    }
  }
  std::vector<Bar> bars;
  for (const RankMemory& one : ranks_) {
    const simulator::StageMemory& m = one.memory;
    std::vector<double> values;
    for (const std::int64_t part : {m.parameters, m.gradients, m.optimizer, m.activations, m.workspace, m.reserved}) {
      values.push_back(static_cast<double>(part));
    }
    const QString label = shows_ranks() ? QString("rank %1").arg(one.rank) : text(m.name());
    bars.push_back({label, std::move(values), static_cast<double>(m.capacity)});
  }
  const double most = most_shown(bars);
  bars_->set_bars(memory_parts(), std::move(bars), "memory of a rank", bytes_text, byte_unit(most));
  if (bars_->selected() < 0 && !ranks_.empty()) bars_->set_selected(0);
  const QSignalBlocker quiet(rank_);
  rank_->setRange(0, std::max(0, static_cast<int>(ranks_.size()) - 1));
  behind_ = true;
  if (isVisible()) catch_up();
}

LineChart& MemoryView::curve() {
  catch_up();
  return *curve_;
}

const QLabel& MemoryView::held() {
  catch_up();
  return *held_;
}

void MemoryView::catch_up() {
  if (behind_) show_selected();
}

void MemoryView::show_reason() {
  const auto& evaluation = document_.evaluation();
  if (!evaluation->runs()) {
    reason_->setText("The plan cannot run: " + text(evaluation->refusal));
  } else if (!evaluation->overflow.empty()) {
    reason_->setText(QString("<span style='color:%1'><b>Does not fit.</b></span> %2")
                         .arg(alarm_colour().name(), text(evaluation->overflow).toHtmlEscaped()));
  } else {
    const std::optional<double> limit = bars_->limit_above();
    reason_->setText((limit ? QString("Fits. A device has %1, far above the bars").arg(bytes_text(*limit))
                            : QString("Fits. The dashed line is what a device has")) +
                     "; hover a bar for its parts.");
  }
  const auto fullest = std::max_element(evaluation->memory.begin(), evaluation->memory.end(),
                                        [](const auto& a, const auto& b) { return a.host < b.host; });
  if (fullest != evaluation->memory.end() && fullest->host > 0) {
    reason_->setText(reason_->text() +
                     QString(" In the host's memory a rank keeps %1 of its share of %2.")
                         .arg(text(base::size(fullest->host)), text(base::size(fullest->host_capacity))));
  }
}

// From below: what is always held, then what comes and goes. Parts that are not there are no line.
std::vector<Line> MemoryView::parts_over_time(const RankMemory& one) const {
  const simulator::StageMemory& m = one.memory;
  const std::vector<MemoryPoint> curve = memory_curve(*document_.evaluation(), m);
  const std::vector<BarPart> names = memory_parts();
  struct Part {
    QString name;
    QColor colour;
    std::function<std::int64_t(const MemoryPoint&)> bytes;
  };
  const auto always = [&](int part, std::int64_t bytes) {
    const BarPart& named = names[static_cast<std::size_t>(part)];
    return Part{named.name, named.colour, [bytes](const MemoryPoint&) { return bytes; }};
  };
  const std::vector<Part> parts{
      always(5, m.reserved),
      always(0, m.parameters),
      always(1, m.gradients),
      always(2, m.optimizer),
      always(4, m.workspace),
      {"activations of micro-batches under way", names[3].colour, [](const MemoryPoint& p) { return p.frames; }},
      {"for gradients of weights that come later", kind_colour(report::Kind::kPipeline),
       [](const MemoryPoint& p) { return p.deferred; }}};
  std::vector<Line> lines;
  std::vector<double> below(curve.size());
  for (const Part& part : parts) {
    Line line{part.name, part.colour, {}, true, true};
    std::int64_t most = 0;
    for (std::size_t p = 0; p < curve.size(); ++p) {
      most = std::max(most, part.bytes(curve[p]));
      below[p] += static_cast<double>(part.bytes(curve[p]));
      line.points.emplace_back(curve[p].seconds, below[p]);
    }
    if (most > 0) lines.push_back(std::move(line));
  }
  return lines;
}

void MemoryView::show_selected() {
  const auto& evaluation = document_.evaluation();
  const int bar = bars_->selected();
  behind_ = false;
  held_->clear();
  if (!evaluation || !evaluation->runs() || bar < 0 || bar >= static_cast<int>(ranks_.size())) {
    curve_->set_lines({}, {}, {}, 0, true);
    return;
  }
  const RankMemory& one = ranks_[static_cast<std::size_t>(bar)];
  QString name = text(one.memory.name());
  if (shows_ranks()) {
    const QSignalBlocker quiet(rank_);
    rank_->setValue(one.rank);
    const program::Coordinates at = evaluation->program->mesh.coordinates(one.rank);
    name = QString("rank %1: stage %2, replica %3, tensor rank %4, context rank %5")
               .arg(one.rank)
               .arg(at.pipeline)
               .arg(at.data)
               .arg(at.tensor)
               .arg(at.context);
  }
  std::vector<Line> lines = parts_over_time(one);
  double peak = 0;
  for (const QPointF& point : lines.empty() ? std::vector<QPointF>{} : lines.back().points) {
    peak = std::max(peak, point.y());
  }
  QString words =
      QString("<b>Over an iteration</b>, %1, micro-batches under way counted whole").arg(name.toHtmlEscaped());
  const std::int64_t within = one.memory.total() - static_cast<std::int64_t>(peak);
  if (within > 0) words += QString("; while a pass runs up to %1 more").arg(text(base::size(within)));
  const auto capacity = static_cast<double>(one.memory.capacity);
  const bool far = most_shown({{"", {peak}, capacity}}) < capacity;  // a line there would flatten the curve
  if (far) words += QString("; the device has %1").arg(bytes_text(capacity));
  held_->setText(words);
  curve_->set_lines(std::move(lines),
                    {0, 1, "time of an iteration", [](double s) { return text(seconds_words(s)); }, 1, true},
                    {0, 1, "memory of a rank", bytes_text, byte_unit(far ? peak : std::max(peak, capacity))},
                    far ? 0 : capacity, true);
}

}  // namespace trivium::gui
