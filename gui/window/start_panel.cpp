#include "gui/window/start_panel.h"

#include <fmt/format.h>

#include <QCompleter>
#include <QFormLayout>
#include <QVBoxLayout>
#include <algorithm>

#include "base/json_reader.h"
#include "base/readable.h"
#include "base/units.h"
#include "gui/look/theme.h"
#include "gui/model/count_text.h"
#include "gui/model/plan_controls.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "models/model.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

const QStringList& example_clusters() {
  static const QStringList kExamples{"dgx-a100-80gb:128",        "dgx-a100-80gb:1",
                                     "dgx-a100-40gb:16",         "dgx1-v100-32gb:64",
                                     "dgx-h100-80gb:32",         "dgx-a100-80gb:16+dgx1-v100-32gb:16",
                                     "selene-dgx-a100-80gb:384", "this-machine"};
  return kExamples;
}

constexpr int kSpacing = 3;
constexpr int kMostShown = 60;  // letters of what was typed, in a complaint

std::int64_t whole_number(const QString& typed, std::int64_t low, std::int64_t high, const QString& what) {
  const std::optional<std::int64_t> number = parse_count(typed.toStdString());
  if (!number || *number < low || *number > high) {
    throw base::Failure(base::ErrorKind::kUsage, QString("%1: a whole number from %2 to %3 is needed, not “%4”")
                                                     .arg(what, text(count_text(low)), text(count_text(high)))
                                                     .arg(typed.left(kMostShown))
                                                     .toStdString());
  }
  return *number;
}

/// The same where nothing stands for 0.
std::int64_t whole_number_or_none(const QString& typed, std::int64_t high, const QString& what) {
  return typed.isEmpty() ? 0 : whole_number(typed, 0, high, what);
}

constexpr std::int64_t kMostTokens = 1'000'000'000'000'000;

}  // namespace

StartPanel::StartPanel(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      model_(new QComboBox),
      cluster_(new QComboBox),
      ignore_memory_(new QCheckBox("Also plans that do not fit")),
      about_(new QLabel),
      verdict_(new QLabel),
      search_(new QPushButton("&Search the best plan")) {
  for (const std::string& name : models::shipped_models()) model_->addItem(text(name));
  cluster_->addItems(example_clusters());
  for (const std::string& name : hardware::shipped_profiles()) cluster_->addItem(text(name) + ":1");
  for (QComboBox* box : {model_, cluster_}) {
    box->setEditable(true);
    box->setInsertPolicy(QComboBox::NoInsert);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(16);
    box->completer()->setFilterMode(Qt::MatchContains);
    box->completer()->setCompletionMode(QCompleter::PopupCompletion);
  }
  model_->setAccessibleName("Model");
  model_->setToolTip("A shipped model, a file, or a Hugging Face config.json");
  cluster_->setAccessibleName("Cluster");
  cluster_->setToolTip("NAME:N, A:16+B:16, this-machine, or FILE.json");
  about_->setWordWrap(true);
  about_->setAccessibleName("Size of the model");
  verdict_->setWordWrap(true);
  verdict_->setAccessibleName("Whether this can be planned");
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->setVerticalSpacing(kSpacing);
  form->addRow("&Model", model_);
  form->addRow("&Cluster", cluster_);
  add_field(*form, "global_batch", "Global &batch", "Samples per optimizer step");
  add_field(*form, "sequence", "Se&quence", "Tokens per sample");
  add_field(*form, "total_tokens", "Tota&l tokens", "Of the whole training: 300 B, 1.5e12; none: not said");
  add_field(*form, "ranks", "&Devices", "That a search may use; none: all");
  add_field(*form, "memory", "Device m&emory", "What a device has, with its unit: 80 GiB");
  add_field(*form, "fixed", "&Hold fixed", "What a search leaves alone, comma separated: tensor parallel, ZeRO stage");
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(ignore_memory_);
  layout->addWidget(about_);
  layout->addWidget(verdict_);
  layout->setSpacing(kSpacing);
  layout->addWidget(search_);
  layout->addStretch();
  connect(model_, &QComboBox::activated, this, [this] { apply("model"); });
  connect(model_->lineEdit(), &QLineEdit::editingFinished, this, [this] { apply("model"); });
  connect(cluster_, &QComboBox::activated, this, [this] { apply("cluster"); });
  connect(cluster_->lineEdit(), &QLineEdit::editingFinished, this, [this] { apply("cluster"); });
  connect(ignore_memory_, &QCheckBox::toggled, this, [this](bool on) {
    if (showing_) return;
    edit(
        "ignore_memory", [&](Scenario s) { return s.ignore_memory = on, s; }, "memory limit");
  });
  connect(&document_, &Document::scenario_changed, this, [this] { show_scenario(); });
  connect(&document_, &Document::evaluated, this, [this] { say(""); });
}

void StartPanel::add_field(QFormLayout& form, const QString& name, const QString& words, const QString& help) {
  auto* edit = new QLineEdit;
  QString plain = words;
  edit->setAccessibleName(plain.remove('&'));
  edit->setToolTip(help);
  if (name == "fixed") edit->setPlaceholderText("tensor parallel, ZeRO stage");
  if (name == "total_tokens") edit->setPlaceholderText("not said: 300 B");
  form.addRow(words, edit);
  fields_[name] = edit;
  connect(edit, &QLineEdit::editingFinished, this, [this, name] { apply(name); });
  connect(edit, &QLineEdit::textEdited, this, [this, name] { check(name); });
}

void StartPanel::apply(const QString& name) {
  if (showing_) return;
  if (name == "model") {
    const std::string wanted = model_->currentText().trimmed().toStdString();
    if (wanted == document_.scenario().file.job.model.name) return say("");
    return edit(
        name, [&](Scenario s) { return with_model(std::move(s), wanted); }, "model " + text(wanted));
  }
  if (name == "cluster") {
    const std::string wanted = cluster_->currentText().trimmed().toStdString();
    if (wanted == document_.scenario().cluster.name) return say("");
    return edit(
        name,
        [&](Scenario s) {
          s = with_cluster(std::move(s), wanted);
          s.ranks = 0;
          return turn(std::move(s), "tensor", std::to_string(s.file.job.plan.tensor), true);
        },
        "cluster " + text(wanted));
  }
  edit(
      name, [&](Scenario s) { return with_typed(name, std::move(s)); },
      field(name).accessibleName() + " " + field(name).text().trimmed());
}

/// What stands in a field, taken into the scenario. Errors: Failure in words.
Scenario StartPanel::with_typed(const QString& name, Scenario s) const {
  const QString typed = field(name).text().trimmed();
  program::Training& training = s.file.job.training;
  if (name == "global_batch") training.global_batch = whole_number(typed, 1, 1 << 24, "Global batch");
  if (name == "sequence") training.sequence = whole_number(typed, 1, 1 << 24, "Sequence");
  if (name == "total_tokens") training.total_tokens = whole_number_or_none(typed, kMostTokens, "Total tokens");
  if (name == "ranks") s.ranks = static_cast<int>(whole_number_or_none(typed, s.cluster.devices(), "Devices"));
  if (name == "memory") {
    const base::Bytes memory = base::parse_bytes(typed.toStdString()).value_or_throw();
    if (!(memory.value() > 0)) throw base::Failure(base::ErrorKind::kInput, "Device memory must be above zero");
    const bool same = std::all_of(s.cluster.groups.begin(), s.cluster.groups.end(),
                                  [&](const auto& group) { return group.node.device.memory == memory; });
    if (same) return s;
    hardware::Cluster cluster = s.cluster;
    for (hardware::NodeGroup& group : cluster.groups) {
      group.node.device.memory = memory;
      group.node.sources["/device/memory"] = "edited by hand";
    }
    return with_cluster(std::move(s), std::move(cluster));
  }
  if (name == "fixed") {
    s.fixed.clear();
    for (const QString& word : typed.split(',', Qt::SkipEmptyParts)) {
      const std::string one = field_called(word.trimmed().toStdString());
      const std::vector<std::string>& fields = program::plan_fields();
      if (std::find(fields.begin(), fields.end(), one) == fields.end()) {
        const std::string near = base::nearest(one, fields);
        throw base::Failure(base::ErrorKind::kUsage,
                            fmt::format("\"{}\" is no field of a plan{}", word.trimmed().left(kMostShown).toStdString(),
                                        near.empty() ? "" : fmt::format("; did you mean \"{}\"?", words_of(near))));
      }
      s.fixed.insert(one);
    }
  }
  return s;
}

void StartPanel::check(const QString& name) {
  if (showing_) return;
  try {
    with_typed(name, document_.scenario());
    say("");
  } catch (const base::Failure& failure) {
    say(text(failure.error().message));
  }
}

void StartPanel::edit(const QString& name, const std::function<Scenario(Scenario)>& change, const QString& words) {
  const Scenario& now = document_.scenario();
  try {
    Scenario next = change(now);
    const bool same = next.file.job.training.global_batch == now.file.job.training.global_batch &&
                      next.file.job.training.sequence == now.file.job.training.sequence &&
                      next.file.job.training.total_tokens == now.file.job.training.total_tokens &&
                      next.file.job.model == now.file.job.model && next.file.cluster == now.file.cluster &&
                      next.fixed == now.fixed && next.ranks == now.ranks && next.ignore_memory == now.ignore_memory;
    if (!same) document_.edit(std::move(next), words, name);
    say("");
  } catch (const base::Failure& failure) {
    say(text(failure.error().message));
  }
}

void StartPanel::show_scenario() {
  showing_ = true;
  const Scenario& scenario = document_.scenario();
  const program::Job& job = scenario.file.job;
  model_->setCurrentText(text(job.model.name));
  cluster_->setCurrentText(text(scenario.cluster.name));
  cluster_->setToolTip(text(scenario.cluster.name));
  if (!cluster_->hasFocus()) cluster_->lineEdit()->setCursorPosition(0);  // long names show how they begin
  const auto counted_or_none = [](std::int64_t count) { return count == 0 ? QString() : text(count_text(count)); };
  fields_.at("global_batch")->setText(text(count_text(job.training.global_batch)));
  fields_.at("sequence")->setText(text(count_text(job.training.sequence)));
  fields_.at("total_tokens")->setText(counted_or_none(job.training.total_tokens));
  fields_.at("ranks")->setText(counted_or_none(scenario.ranks));
  fields_.at("ranks")->setPlaceholderText(QString("all %1").arg(text(count_text(scenario.cluster.devices()))));
  fields_.at("memory")->setText(text(base::to_text(scenario.cluster.groups.at(0).node.device.memory)));
  QStringList fixed;
  for (const std::string& name : scenario.fixed) fixed << text(words_of(name));
  fields_.at("fixed")->setText(fixed.join(", "));
  ignore_memory_->setChecked(scenario.ignore_memory);
  const models::ParameterCount count = models::count_parameters(job.model);
  const auto counted = [](int n, const char* one) {
    return QString("%1 %2%3").arg(text(base::integer(n)), one, n == 1 ? "" : "s");
  };
  about_->setText(QString("%1 parameters, %2 on %3")
                      .arg(text(base::integer(static_cast<double>(count.total))),
                           counted(scenario.cluster.devices(), "device"), counted(scenario.cluster.nodes(), "node")));
  showing_ = false;
  say("");
}

void StartPanel::say(const QString& problem) {
  if (!problem.isEmpty()) {
    verdict_->setText(QString("<span style='color:%1'>%2</span>").arg(alarm_colour().name(), problem.toHtmlEscaped()));
    return;
  }
  const auto& evaluation = document_.evaluation();
  if (!evaluation) return verdict_->clear();
  if (!evaluation->runs()) {
    verdict_->setText("This plan cannot run: " + text(evaluation->refusal).toHtmlEscaped());
  } else if (!evaluation->overflow.empty()) {
    verdict_->setText("This plan does not fit: " + text(evaluation->overflow).toHtmlEscaped());
  } else {
    verdict_->setText("This plan can run.");
  }
}

}  // namespace trivium::gui
