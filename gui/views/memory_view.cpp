#include "gui/views/memory_view.h"

#include <QVBoxLayout>
#include <algorithm>

#include "edge/readable.h"
#include "gui/look/theme.h"
#include "gui/model/memory_curve.h"

namespace trivium::gui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }
QString bytes_text(double bytes) { return text(edge::size(static_cast<std::int64_t>(bytes))); }

}  // namespace

MemoryView::MemoryView(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      reason_(new QLabel),
      bars_(new BarChart("Memory by stage")),
      curve_(new LineChart("Memory over time")) {
  reason_->setWordWrap(true);
  reason_->setAccessibleName("Whether the plan fits");
  reason_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  bars_->set_hint("No plan that could run: its memory would stand here, a bar a stage.");
  curve_->set_hint("Select a stage above to see its memory over an iteration.");
  bars_->on_select = [this](int stage) { show_stage(stage); };
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(reason_);
  layout->addWidget(bars_, 3);
  layout->addWidget(curve_, 2);
  connect(&document_, &Document::evaluated, this, [this] { show_evaluation(); });
}

void MemoryView::show_evaluation() {
  const auto& evaluation = document_.evaluation();
  std::vector<Bar> bars;
  double most = 0;
  for (const simulator::StageMemory& m : evaluation->memory) {
    std::vector<double> values;
    for (const std::int64_t part : {m.parameters, m.gradients, m.optimizer, m.activations, m.workspace, m.reserved}) {
      values.push_back(static_cast<double>(part));
    }
    bars.push_back({QString("stage %1").arg(m.stage), std::move(values), static_cast<double>(m.capacity)});
    most = std::max({most, bars.back().sum(), bars.back().limit});
  }
  bars_->set_bars({{"parameters", series_colour(0)},
                   {"gradients", series_colour(1)},
                   {"optimizer", series_colour(2)},
                   {"activations", series_colour(3)},
                   {"workspace", series_colour(4)},
                   {"reserved by the device", series_colour(7)}},
                  std::move(bars), "memory of a rank", bytes_text, byte_unit(most));
  if (!evaluation->runs()) {
    reason_->setText("The plan cannot run: " + text(evaluation->refusal));
  } else if (!evaluation->overflow.empty()) {
    reason_->setText(QString("<span style='color:%1'><b>Does not fit.</b></span> %2")
                         .arg(alarm_colour().name(), text(evaluation->overflow).toHtmlEscaped()));
  } else {
    reason_->setText("Fits. The dashed line is what a device has; hover a bar for its parts.");
  }
  const auto fullest = std::max_element(evaluation->memory.begin(), evaluation->memory.end(),
                                        [](const auto& a, const auto& b) { return a.host < b.host; });
  if (fullest != evaluation->memory.end() && fullest->host > 0) {
    reason_->setText(reason_->text() +
                     QString(" In the host's memory a rank keeps %1 of its share of %2.")
                         .arg(text(edge::size(fullest->host)), text(edge::size(fullest->host_capacity))));
  }
  if (bars_->selected() < 0 && evaluation->runs()) bars_->set_selected(0);
  show_stage(bars_->selected());
}

void MemoryView::show_stage(int stage) {
  const auto& evaluation = document_.evaluation();
  if (!evaluation || !evaluation->runs() || stage < 0 || stage >= static_cast<int>(evaluation->memory.size())) {
    curve_->set_lines({}, {}, {}, 0, true);
    return;
  }
  Line line{QString("memory in use on stage %1").arg(stage), series_colour(3), {}, true};
  for (const MemoryPoint& point : memory_curve(*evaluation, stage)) {
    line.points.emplace_back(point.seconds, static_cast<double>(point.bytes));
  }
  const auto most = static_cast<double>(evaluation->memory[static_cast<std::size_t>(stage)].capacity);
  curve_->set_lines({std::move(line)}, {0, 1, "time of an iteration", [](double s) { return text(edge::seconds(s)); }},
                    {0, 1, "memory of a rank", bytes_text, byte_unit(most)}, most, true);
}

}  // namespace trivium::gui
