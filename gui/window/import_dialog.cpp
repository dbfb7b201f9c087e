#include "gui/window/import_dialog.h"

#include <QDialogButtonBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QVBoxLayout>

#include "gui/look/theme.h"
#include "gui/model/count_text.h"
#include "models/load.h"

namespace trivium::gui {
namespace {

constexpr int kWidth = 520;  // pixels
constexpr const char* kOfTheFile = "as the file says";

}  // namespace

ImportDialog::ImportDialog(const QString& path, const QString& cluster, QWidget* parent)
    : QDialog(parent),
      path_(path),
      cluster_(new QLineEdit(cluster)),
      sequence_(new QLineEdit),
      model_(new QComboBox),
      said_(new QLabel),
      take_(nullptr) {
  setWindowTitle("Import " + QFileInfo(path).fileName());
  setMinimumWidth(kWidth);
  cluster_->setAccessibleName("Cluster it runs on");
  cluster_->setToolTip("NAME:N, A:16+B:16, this-machine, or FILE.json: launch files do not say the hardware");
  model_->setAccessibleName("Model, where the file does not say its shape");
  model_->setEditable(true);
  model_->addItem(kOfTheFile);
  for (const std::string& name : models::shipped_models()) model_->addItem(QString::fromStdString(name));
  sequence_->setAccessibleName("Tokens of a sample, where the file does not say them");
  sequence_->setPlaceholderText(kOfTheFile);
  said_->setAccessibleName("What the file says");
  said_->setWordWrap(true);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow("Cluster", cluster_);
  form->addRow("Model", model_);
  form->addRow("Sequence", sequence_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  take_ = buttons->addButton("Take this plan", QDialogButtonBox::AcceptRole);
  auto* rows = new QVBoxLayout(this);
  rows->addLayout(form);
  rows->addWidget(said_, 1);
  rows->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(cluster_, &QLineEdit::textChanged, this, [this] { read_again(); });
  connect(sequence_, &QLineEdit::textChanged, this, [this] { read_again(); });
  connect(model_, &QComboBox::currentTextChanged, this, [this] { read_again(); });
  read_again();
}

void ImportDialog::read_again() {
  read_.reset();
  try {
    LaunchWish wish;
    wish.path = path_.toStdString();
    wish.cluster = cluster_->text().trimmed().toStdString();
    if (const QString model = model_->currentText().trimmed(); model != kOfTheFile) wish.model = model.toStdString();
    if (const QString typed = sequence_->text().trimmed(); !typed.isEmpty()) {
      const std::optional<std::int64_t> tokens = parse_count(typed.toStdString());
      if (!tokens) throw base::Failure(base::ErrorKind::kUsage, "Sequence: a whole number of tokens is needed.");
      wish.sequence = *tokens;
    }
    read_ = read_launch_file(wish);
    QString words = QString("<b>%1</b>: %2")
                        .arg(QString::fromStdString(read_->software).toHtmlEscaped(),
                             QString::fromStdString(read_->words).toHtmlEscaped());
    for (const std::string& lost : read_->lost)
      words += "<br>Not taken over: " + QString::fromStdString(lost).toHtmlEscaped();
    said_->setText(words);
  } catch (const base::Failure& failure) {
    said_->setText(QString("<span style='color:%1'>%2</span>")
                       .arg(alarm_colour().name(), QString::fromStdString(failure.error().message).toHtmlEscaped()));
  }
  take_->setEnabled(read_.has_value());
}

}  // namespace trivium::gui
