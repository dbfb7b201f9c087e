#include "gui/window/knobs_panel.h"

#include <QVBoxLayout>
#include <optional>
#include <string_view>
#include <utility>

#include "gui/model/spoken.h"

namespace trivium::gui {
namespace {

constexpr int kSpacing = 3;

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

KnobsPanel::KnobsPanel(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      form_(new QFormLayout),
      fill_(new QCheckBox("Data parallel fills the devices")),
      message_(new QLabel) {
  form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form_->setVerticalSpacing(kSpacing);
  std::optional<program::FieldGroup> group;
  for (const Knob& knob : trivium::gui::knobs()) {
    if (group != knob.group) {
      group = knob.group;
      const std::string_view name = program::name_of(knob.group);
      form_->addRow(
          new QLabel(QString("<b>%1</b>").arg(QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())))));
    }
    add_knob(knob);
    for (const StageList& list : stage_lists()) {
      if (std::string_view(list.after) == knob.field) add_list(list);
    }
  }
  fill_->setChecked(true);
  fill_->setToolTip("Turning tensor, context or pipeline sets data parallel to what is left of the devices");
  message_->setWordWrap(true);
  message_->setAccessibleName("What went wrong");
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form_);
  layout->setSpacing(kSpacing);
  layout->addWidget(fill_);
  layout->addWidget(message_);
  layout->addStretch();
  connect(&document_, &Document::scenario_changed, this, [this] { show_scenario(); });
}

void KnobsPanel::add_knob(const Knob& knob) {
  auto* box = new QComboBox;
  box->setAccessibleName(knob.words);
  box->setToolTip(QString::fromStdString(spoken(knob.help)));
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(6);
  form_->addRow(knob.words, box);
  knobs_[knob.field] = box;
  connect(box, &QComboBox::currentIndexChanged, this,
          [this, box, field = std::string(knob.field)] { turn_knob(field, box->currentData().toString()); });
}

void KnobsPanel::add_list(const StageList& list) {
  auto* edit = new QLineEdit;
  edit->setAccessibleName(QString(list.words).remove("… "));
  form_->addRow(list.words, edit);
  lists_[list.field] = edit;
  connect(edit, &QLineEdit::editingFinished, this, [this, &list] { set_list(list); });
}

void KnobsPanel::edit(const std::function<Scenario()>& change, const QString& words, const std::string& field) {
  try {
    message_->clear();
    document_.edit(change(), words, text(field));
  } catch (const base::Failure& failure) {
    message_->setText(text(failure.error().message));
    show_knob(field);
  }
}

void KnobsPanel::turn_knob(const std::string& field, const QString& wanted) {
  if (showing_ || wanted.isEmpty() || wanted == kByChunk) return;
  edit([&] { return turn(document_.scenario(), field, wanted.toStdString(), fill_->isChecked()); },
       QString("%1 %2").arg(knobs_.at(text(field))->accessibleName().toLower(),
                            text(shown(field, wanted.toStdString()))),
       field);
}

void KnobsPanel::set_list(const StageList& list) {
  const QLineEdit& typed = *lists_.at(list.field);
  const Scenario& now = document_.scenario();
  if (showing_ || !typed.isModified()) return;
  edit([&] { return with_list(now, list.field, typed.text().toStdString()); },
       QString("%1 %2").arg(typed.accessibleName().toLower(), typed.text().trimmed()), list.field);
}

void KnobsPanel::show_knob(const std::string& field) {
  const auto found = knobs_.find(text(field));
  if (found == knobs_.end()) return;  // a list: what was typed stays, to be mended
  QComboBox* box = found->second;
  const bool shown_before = std::exchange(showing_, true);
  const Scenario& scenario = document_.scenario();
  const std::vector<std::string> values = choices(scenario, field);
  bool same = box->count() == static_cast<int>(values.size());
  for (int i = 0; same && i < box->count(); ++i) {
    same = box->itemData(i).toString().toStdString() == values[static_cast<std::size_t>(i)];
  }
  if (!same) box->clear();
  for (std::size_t i = 0; !same && i < values.size(); ++i) box->addItem(text(shown(field, values[i])), text(values[i]));
  box->setCurrentIndex(box->findData(text(present(scenario, field))));
  box->setEnabled(box->count() > 1);  // a dense model has no experts to split
  showing_ = shown_before;
}

void KnobsPanel::show_scenario() {
  showing_ = true;
  message_->clear();
  const Scenario& scenario = document_.scenario();
  for (const Knob& knob : trivium::gui::knobs()) show_knob(knob.field);
  for (const StageList& list : stage_lists()) {
    QLineEdit* edit = lists_.at(list.field);
    const QString now = text(list_text(scenario.file.job.plan, list.field));
    edit->setText(now);
    edit->setCursorPosition(0);  // long lists show how they begin
    edit->setPlaceholderText(text(list_hint(scenario, list.field)));
    edit->setToolTip(now.isEmpty() ? QString(list.help) : QString("%1\n%2").arg(now, list.help));
    form_->setRowVisible(edit, list_applies(scenario, list.field));
  }
  showing_ = false;
}

}  // namespace trivium::gui
