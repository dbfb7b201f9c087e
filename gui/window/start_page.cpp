#include "gui/window/start_page.h"

#include <QCompleter>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/marked.h"
#include "gui/look/theme.h"
#include "gui/model/count_text.h"
#include "hardware_profiles/load.h"
#include "models/load.h"

namespace trivium::gui {
namespace {

constexpr int kPageWidth = 900, kWidePage = 1320;  // pixels, with two columns and with three
constexpr int kWide = 1350;                        // pixels of the window from which on there are three
// On larger windows than this the page grows with its letters, up to so many times their size.
constexpr double kUsualWidth = 1780, kUsualHeight = 960, kMostGrowth = 1.5;
constexpr double kHeading = 1.15;                      // letters of headings
constexpr double kAbove = 0.4;                         // of what is free
constexpr int kBetween = 36, kBelow = 18, kTight = 6;  // pixels between parts
constexpr int kMostNodes = 12500;                      // of eight devices
constexpr int kUsualNodes = 8;
constexpr std::int64_t kMostSamples = 1 << 24;

struct Example {
  const char* title;
  const char* words;
  Scenario (*make)();
};
constexpr Example kExamples[] = {
    {"GPT-3 175B on 1,024 A100", "The split of Narayanan et al. 2021: where its time goes, and what beats it.",
     example_scenario},
    {"GPT-3 13B on A100 and V100 nodes", "Unlike nodes in one job: which stages go where.", mixed_example},
    {"A tiny GPT on this machine", "Small enough to be run at once, and compared with its prediction.", local_example}};

QComboBox* choice(const QString& name) {
  auto* box = new QComboBox;
  box->setAccessibleName(name);
  box->setEditable(true);
  box->setInsertPolicy(QComboBox::NoInsert);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(18);
  box->completer()->setFilterMode(Qt::MatchContains);
  box->completer()->setCompletionMode(QCompleter::PopupCompletion);
  return box;
}

}  // namespace

StartPage::StartPage(QWidget* parent)
    : QWidget(parent),
      model_(choice("Model to plan")),
      kind_(choice("Kind of node")),
      nodes_(new QSpinBox),
      batch_(new QLineEdit("256")),
      plan_own_(new PrimaryButton("Search for its best plan")),
      wrong_(new QLabel),
      recent_(new QListWidget),
      earlier_(new QPushButton("Work that was not saved, of an earlier window")) {
  setAccessibleName("Start");
  page_ = new QWidget(this);
  auto* rows = new QVBoxLayout(page_);
  rows->addWidget(heading("What do you want to plan?"));
  rows->addSpacing(10);
  auto* columns = new QHBoxLayout;
  rows->addLayout(columns, 1);
  jobs_ = new QBoxLayout(QBoxLayout::TopToBottom);
  jobs_->setSpacing(kBelow);
  jobs_->addLayout(make_own());
  jobs_->addLayout(make_examples());
  columns->addLayout(jobs_, 1);
  columns->addSpacing(kBetween);
  columns->addLayout(make_files(), 1);
  columns_ = columns;
  set_letters(1);
  setMinimumSize(page_->minimumSizeHint());  // of two columns in usual letters
}

QLabel* StartPage::heading(const QString& words) {
  auto* label = new QLabel(words);
  headings_.push_back(label);
  return label;
}

void StartPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place();
}

void StartPage::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) place();
}

// In the middle, a little above it; on a large window with its three parts side by side, in larger letters.
void StartPage::place() {
  const double grown = std::clamp(std::min(width() / kUsualWidth, height() / kUsualHeight), 1.0, kMostGrowth);
  const bool wide = width() >= kWide;
  set_letters(grown);
  jobs_->setDirection(wide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  jobs_->setSpacing(wide ? kBetween : kBelow);
  jobs_->setStretch(0, wide ? 1 : 0);
  jobs_->setStretch(1, 1);
  columns_->setStretch(0, wide ? 2 : 1);
  for (QLayout* changed : std::initializer_list<QLayout*>{jobs_, columns_, page_->layout()}) changed->invalidate();
  const int across = std::min(width(), static_cast<int>((wide ? kWidePage : kPageWidth) * grown));
  const int needed = page_->layout()->hasHeightForWidth() ? page_->layout()->totalHeightForWidth(across)
                                                          : page_->layout()->totalSizeHint().height();
  const int high = std::min(height(), needed);
  page_->setGeometry((width() - across) / 2, static_cast<int>((height() - high) * kAbove), across, high);
}

void StartPage::set_letters(double grown) {
  QFont letters = font();
  letters.setPointSizeF(letters.pointSizeF() * grown);
  page_->setFont(letters);
  letters.setBold(true);
  letters.setPointSizeF(letters.pointSizeF() * kHeading);
  for (QLabel* label : headings_) label->setFont(letters);
}

QLayout* StartPage::make_own() {
  for (const std::string& name : models::shipped_models()) model_->addItem(QString::fromStdString(name));
  model_->setCurrentText("llama3-8b");
  model_->setToolTip("A shipped model, a file, or a Hugging Face config.json");
  list_kinds();
  kind_->setCurrentText("h100-8x");
  kind_->setToolTip("A shipped kind of node, one of your own, or FILE.json; links and memory are edited in Cluster");
  nodes_->setAccessibleName("Nodes");
  nodes_->setRange(1, kMostNodes);
  nodes_->setValue(kUsualNodes);
  batch_->setAccessibleName("Global batch");
  wrong_->setAccessibleName("What is wrong with it");
  wrong_->setWordWrap(true);
  wrong_->hide();
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow("Model", model_);
  form->addRow("Kind of node", kind_);
  form->addRow("Nodes", nodes_);
  form->addRow("Global batch", batch_);
  form->setSpacing(kTight);
  auto* rows = new QVBoxLayout;
  rows->setSpacing(kTight);
  rows->addWidget(heading("My cluster"));
  rows->addLayout(form);
  rows->addWidget(wrong_);
  rows->addWidget(plan_own_);
  rows->addStretch(1);
  connect(plan_own_, &QPushButton::clicked, this, [this] { plan_own_cluster(); });
  connect(batch_, &QLineEdit::returnPressed, this, [this] { plan_own_cluster(); });
  return rows;
}

QLayout* StartPage::make_examples() {
  auto* rows = new QVBoxLayout;
  rows->setSpacing(kTight);
  rows->addWidget(heading("Examples"));
  for (const Example& example : kExamples) {
    auto* button = new QPushButton(example.title);
    auto* words = new QLabel(example.words);
    words->setWordWrap(true);
    rows->addWidget(button);
    rows->addWidget(words);
    rows->addSpacing(4);
    examples_.push_back(button);
    connect(button, &QPushButton::clicked, this, [this, &example] {
      if (on_example) on_example(example.make(), QString("example ") + example.title);
    });
  }
  rows->addStretch(1);
  return rows;
}

QLayout* StartPage::make_files() {
  auto* rows = new QVBoxLayout;
  rows->addWidget(heading("Files"));
  auto* browse = new QPushButton("Open a project, plan, run or trace …");
  auto* imported = new QPushButton("Import from Megatron-LM, DeepSpeed or torchtitan …");
  imported->setToolTip("A launch script, a log, a JSON or a TOML: the plan in it, on a cluster that you name");
  recent_->setAccessibleName("Recent files");
  rows->addWidget(browse);
  rows->addWidget(imported);
  rows->addWidget(earlier_);
  rows->addSpacing(4);
  rows->addWidget(new QLabel("Opened before"));
  rows->addWidget(recent_, 1);
  connect(browse, &QPushButton::clicked, this, [this] {
    if (on_browse) on_browse();
  });
  connect(imported, &QPushButton::clicked, this, [this] {
    if (on_import) on_import();
  });
  connect(earlier_, &QPushButton::clicked, this, [this] {
    if (on_earlier) on_earlier();
  });
  const auto open_item = [this](const QListWidgetItem* item) {
    if (on_open && item->data(Qt::UserRole).isValid()) on_open(item->data(Qt::UserRole).toString());
  };
  connect(recent_, &QListWidget::itemActivated, this, open_item);
  connect(recent_, &QListWidget::itemClicked, this, open_item);
  return rows;
}

void StartPage::list_kinds() {
  const QString chosen = kind_->currentText();
  kind_->clear();
  for (const auto& names : {hardware::user_profiles(), hardware::shipped_profiles()}) {
    for (const std::string& name : names) kind_->addItem(QString::fromStdString(name));
  }
  if (kind_->findText("this-machine") < 0) kind_->addItem("this-machine");
  kind_->setCurrentText(chosen);
}

// Files of one name are told apart by their folders.
void StartPage::set_recent(const QStringList& files) {
  const auto name_of = [](const QString& file) { return QFileInfo(file).fileName(); };
  recent_->clear();
  for (const QString& file : files) {
    const QFileInfo info(file);
    const bool alone = std::ranges::count(files, info.fileName(), name_of) == 1;
    auto* item = new QListWidgetItem(alone ? info.fileName() : file, recent_);
    item->setData(Qt::UserRole, file);
    item->setToolTip(file);
  }
  if (files.isEmpty()) (new QListWidgetItem("Nothing yet.", recent_))->setFlags(Qt::NoItemFlags);
}

void StartPage::set_earlier(bool there_is) { earlier_->setVisible(there_is); }

void StartPage::plan_own_cluster() {
  wrong_->hide();
  try {
    const std::optional<std::int64_t> batch = parse_count(batch_->text().toStdString());
    if (!batch || *batch < 1 || *batch > kMostSamples) {
      throw base::Failure(base::ErrorKind::kUsage, "Global batch: a whole number, 1 or more, is needed.");
    }
    const QString kind = kind_->currentText().trimmed();
    const bool counted = kind != "this-machine" && !kind.contains(".json");
    const Scenario scenario =
        own_scenario(model_->currentText().trimmed().toStdString(),
                     (counted ? QString("%1:%2").arg(kind).arg(nodes_->value()) : kind).toStdString(), *batch);
    if (on_own) on_own(scenario);
  } catch (const base::Failure& failure) {
    wrong_->setText(QString("<span style='color:%1'>%2</span>")
                        .arg(alarm_colour().name(), QString::fromStdString(failure.error().message).toHtmlEscaped()));
    wrong_->show();
  }
}

}  // namespace trivium::gui
