#include "gui/window/plan_controls_panel.h"

#include <QVBoxLayout>
#include <optional>
#include <string_view>
#include <utility>

#include "gui/look/text.h"
#include "gui/model/display_name.h"

namespace trivium::gui {
namespace {

constexpr int kSpacing = 3;

}  // namespace

PlanControlsPanel::PlanControlsPanel(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      form_(new QFormLayout),
      fill_(new QCheckBox("Data parallel fills the devices")),
      message_(new QLabel) {
  form_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form_->setVerticalSpacing(kSpacing);
  std::optional<program::FieldGroup> group;
  for (const PlanControl& plan_control : trivium::gui::plan_controls()) {
    if (group != plan_control.group) {
      group = plan_control.group;
      const std::string_view name = program::name_of(plan_control.group);
      form_->addRow(
          new QLabel(QString("<b>%1</b>").arg(QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())))));
    }
    add_plan_control(plan_control);
    for (const StageList& list : stage_lists()) {
      if (std::string_view(list.after) == plan_control.field) add_list(list);
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

void PlanControlsPanel::add_plan_control(const PlanControl& plan_control) {
  auto* box = new QComboBox;
  box->setAccessibleName(plan_control.words);
  box->setToolTip(QString::fromStdString(display_name(plan_control.help)));
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(6);
  form_->addRow(plan_control.words, box);
  plan_controls_[plan_control.field] = box;
  connect(box, &QComboBox::currentIndexChanged, this, [this, box, field = std::string(plan_control.field)] {
    turn_plan_control(field, box->currentData().toString());
  });
}

void PlanControlsPanel::add_list(const StageList& list) {
  auto* edit = new QLineEdit;
  edit->setAccessibleName(QString(list.words).remove("… "));
  form_->addRow(list.words, edit);
  lists_[list.field] = edit;
  connect(edit, &QLineEdit::editingFinished, this, [this, &list] { set_list(list); });
}

void PlanControlsPanel::edit(const std::function<Scenario()>& change, const QString& words, const std::string& field) {
  try {
    message_->setText({});  // clear() would have all laid out anew
    document_.edit(change(), words, text(field));
  } catch (const base::Failure& failure) {
    message_->setText(text(failure.error().message));
    show_plan_control(field);
  }
}

void PlanControlsPanel::turn_plan_control(const std::string& field, const QString& wanted) {
  if (showing_ || wanted.isEmpty() || wanted == kByChunk) return;
  edit([&] { return turn(document_.scenario(), field, wanted.toStdString(), fill_->isChecked()); },
       QString("%1 %2").arg(plan_controls_.at(text(field))->accessibleName().toLower(),
                            text(shown(field, wanted.toStdString()))),
       field);
}

void PlanControlsPanel::set_list(const StageList& list) {
  const QLineEdit& typed = *lists_.at(list.field);
  const Scenario& now = document_.scenario();
  if (showing_ || !typed.isModified()) return;
  edit([&] { return with_list(now, list.field, typed.text().toStdString()); },
       QString("%1 %2").arg(typed.accessibleName().toLower(), typed.text().trimmed()), list.field);
}

void PlanControlsPanel::show_plan_control(const std::string& field) {
  const auto found = plan_controls_.find(text(field));
  if (found == plan_controls_.end()) return;  // a list: what was typed stays, to be mended
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

void PlanControlsPanel::show_scenario() {
  showing_ = true;
  message_->setText({});
  const Scenario& scenario = document_.scenario();
  for (const PlanControl& plan_control : trivium::gui::plan_controls()) show_plan_control(plan_control.field);
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
