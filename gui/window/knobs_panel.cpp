#include "gui/window/knobs_panel.h"

#include <QFormLayout>
#include <QVBoxLayout>

#include "gui/model/knobs.h"

namespace trivium::gui {
namespace {

constexpr int kSpacing = 3;

}  // namespace

KnobsPanel::KnobsPanel(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      fill_(new QCheckBox("Data parallel fills the devices")),
      message_(new QLabel) {
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->setVerticalSpacing(kSpacing);
  std::string group;
  for (const Knob& knob : trivium::gui::knobs()) {
    if (group != knob.group) {
      group = knob.group;
      form->addRow(new QLabel(QString("<b>%1</b>").arg(knob.group)));
    }
    auto* box = new QComboBox;
    box->setAccessibleName(knob.words);
    box->setToolTip(knob.help);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(6);
    form->addRow(knob.words, box);
    knobs_[knob.field] = box;
    connect(box, &QComboBox::currentIndexChanged, this,
            [this, box, field = std::string(knob.field)] { turn_knob(field, box->currentData().toString()); });
  }
  fill_->setChecked(true);
  fill_->setToolTip("Turning tensor, context or pipeline sets data parallel to what is left of the devices");
  message_->setWordWrap(true);
  message_->setAccessibleName("What went wrong");
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->setSpacing(kSpacing);
  layout->addWidget(fill_);
  layout->addWidget(message_);
  layout->addStretch();
  connect(&document_, &Document::scenario_changed, this, [this] { show_scenario(); });
}

void KnobsPanel::turn_knob(const std::string& field, const QString& text) {
  if (showing_ || text.isEmpty()) return;
  try {
    message_->clear();
    document_.edit(turn(document_.scenario(), field, text.toStdString(), fill_->isChecked()),
                   QString("%1 %2").arg(knobs_.at(QString::fromStdString(field))->accessibleName().toLower(), text),
                   QString::fromStdString(field));
  } catch (const edge::Failure& failure) {
    message_->setText(QString::fromStdString(failure.error().message));
    show_scenario();
  }
}

void KnobsPanel::show_scenario() {
  showing_ = true;
  const Scenario& scenario = document_.scenario();
  for (const Knob& knob : trivium::gui::knobs()) {
    QComboBox* box = knobs_.at(knob.field);
    const std::vector<std::string> values = choices(scenario, knob.field);
    bool same = box->count() == static_cast<int>(values.size());
    for (int i = 0; same && i < box->count(); ++i) {
      same = box->itemData(i).toString().toStdString() == values[static_cast<std::size_t>(i)];
    }
    if (!same) box->clear();
    for (std::size_t i = 0; !same && i < values.size(); ++i) {
      box->addItem(QString::fromStdString(shown(knob.field, values[i])), QString::fromStdString(values[i]));
    }
    box->setCurrentIndex(box->findData(QString::fromStdString(value_of(scenario, knob.field))));
    box->setEnabled(box->count() > 1);  // a dense model has no experts to split
  }
  showing_ = false;
}

}  // namespace trivium::gui
