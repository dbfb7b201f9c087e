#include "gui/views/node_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QScrollArea>
#include <QVBoxLayout>

#include "gui/look/theme.h"
#include "hardware_profiles/load.h"

namespace trivium::gui {
namespace {

constexpr int kWide = 860, kHigh = 560;  // pixels
constexpr int kMostSaid = 6;             // lines
constexpr int kSpacing = 3;

}  // namespace

NodeDialog::NodeDialog(const QString& base, QWidget* parent)
    : QDialog(parent),
      name_(new QLineEdit),
      base_(new QComboBox),
      pasted_(new QPlainTextEdit),
      said_(new QLabel),
      keep_(new PrimaryButton("Keep and use")) {
  setWindowTitle("New kind of node");
  resize(kWide, kHigh);
  pasted_->setAccessibleName("Measurements of the node");
  pasted_->setPlaceholderText(
      "Paste what nvidia-smi topo -m and nccl-tests print on the node: links are fitted to it.");
  said_->setAccessibleName("What is wrong, or was fitted");
  said_->setWordWrap(true);
  auto* right = new QVBoxLayout;
  right->addWidget(new QLabel("Measured on it"));
  right->addWidget(pasted_, 1);
  auto* columns = new QHBoxLayout;
  columns->addWidget(make_form(), 1);
  columns->addLayout(right, 1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  buttons->addButton(keep_, QDialogButtonBox::AcceptRole);
  auto* rows = new QVBoxLayout(this);
  rows->addLayout(columns, 1);
  rows->addWidget(said_);
  rows->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &NodeDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &NodeDialog::reject);
  connect(base_, &QComboBox::currentTextChanged, this, [this](const QString& name) { begin_with(name); });
  connect(name_, &QLineEdit::textChanged, this, [this] { read_again(); });
  connect(pasted_, &QPlainTextEdit::textChanged, this, [this] { read_again(); });
  base_->setCurrentText(base);
  begin_with(base_->currentText());
}

QWidget* NodeDialog::make_form() {
  name_->setAccessibleName("Name of the kind of node");
  name_->setToolTip("By which clusters name it, here and on the command line: my-h200:16");
  base_->setAccessibleName("Known kind of node that is nearest");
  for (const auto& names : {hardware::shipped_profiles(), hardware::user_profiles()}) {
    for (const std::string& name : names) {
      if (base_->findText(QString::fromStdString(name)) < 0) base_->addItem(QString::fromStdString(name));
    }
  }
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->setVerticalSpacing(kSpacing);
  form->addRow("Name", name_);
  form->addRow("Begin with", base_);
  for (const NodeField& field : node_fields()) {
    auto* edit = fields_[field.pointer] = new Marked<QLineEdit>;
    edit->setAccessibleName(field.words);
    edit->setToolTip(field.help);
    auto* label = new QLabel(field.words);
    label->setToolTip(field.help);
    label->setBuddy(edit);
    form->addRow(label, edit);
    connect(edit, &QLineEdit::textEdited, this, [this, edit] {
      edit->setModified(true);
      read_again();
    });
  }
  auto* inner = new QWidget;
  inner->setLayout(form);
  auto* scroll = new QScrollArea;
  scroll->setWidget(inner);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  return scroll;
}

void NodeDialog::begin_with(const QString& base) {
  for (const auto& [pointer, edit] : fields_) edit->setModified(false);
  if (name_->text().isEmpty() || !name_->isModified()) name_->setText("my-" + base);
  read_again();
}

void NodeDialog::read_again() {
  OwnNode own{name_->text().trimmed().toStdString(),
              base_->currentText().toStdString(),
              pasted_->toPlainText().toStdString(),
              {}};
  for (const auto& [pointer, edit] : fields_) {
    edit->set_wrong(false);
    if (edit->isModified()) own.typed[pointer.toStdString()] = edit->text().trimmed().toStdString();
  }
  try {
    made_ = make_node(own);
  } catch (const base::Failure& failure) {
    return complain(failure.error().message);
  }
  for (const auto& [pointer, edit] : fields_) {
    if (!edit->isModified()) edit->setText(QString::fromStdString(field_text(made_.node, pointer.toStdString())));
  }
  QStringList lines;
  for (const std::string& line : made_.said) {
    if (lines.size() < kMostSaid) lines << QString::fromStdString(line);
  }
  said_->setText(lines.join('\n'));
  keep_->setEnabled(true);
}

void NodeDialog::complain(const std::string& why) {
  const QString words = QString::fromStdString(why);
  said_->setText(QString("<span style='color:%1'>%2</span>").arg(alarm_colour().name(), words.toHtmlEscaped()));
  for (const auto& [pointer, edit] : fields_) edit->set_wrong(edit->isModified() && words.contains(pointer));
  keep_->setEnabled(false);
}

void NodeDialog::accept() {
  try {
    keep_node(made_.node);
  } catch (const base::Failure& failure) {
    return complain(failure.error().message);
  }
  QDialog::accept();
}

}  // namespace trivium::gui
