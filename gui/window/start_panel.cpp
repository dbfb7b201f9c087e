#include "gui/window/start_panel.h"

#include <fmt/format.h>

#include <QCompleter>
#include <QFileInfo>
#include <QFormLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/readable.h"
#include "base/units.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/alteration.h"
#include "gui/model/count_text.h"
#include "gui/model/plan_controls.h"
#include "gui/window/row_scroll.h"
#include "hardware_profiles/load.h"
#include "models/load.h"
#include "models/model.h"
#include "models/validate.h"
#include "planner/space/trainers.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

const QStringList& example_clusters() {
  static const QStringList kExamples{"dgx-a100-80gb:128",        "dgx-a100-80gb:1",
                                     "dgx-a100-40gb:16",         "dgx1-v100-32gb:64",
                                     "dgx-h100-80gb:32",         "dgx-a100-80gb:16+dgx1-v100-32gb:16",
                                     "selene-dgx-a100-80gb:384", "this-machine"};
  return kExamples;
}

constexpr int kSpacing = 3, kMargin = 9;
constexpr int kMostInNote = 180;  // letters of what is wrong; the rest is in the hint
constexpr int kMostShown = 60;    // letters of what was typed, in a complaint

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
      model_(new Marked<QComboBox>),
      cluster_(new Marked<QComboBox>),
      trainer_(new Marked<QComboBox>),
      ignore_memory_(new QCheckBox("Also plans that do not fit")),
      about_(new QLabel),
      verdict_(new QLabel),
      altered_(new QLabel),
      unmeasured_(new QWidget),
      measure_(new QPushButton("Measure this machine")),
      search_(new PrimaryButton("Search for the best plan")) {
  set_up_choices();
  set_up_trainers();
  about_->setWordWrap(true);
  about_->setAccessibleName("Size of the model");
  verdict_->setWordWrap(true);
  verdict_->setAccessibleName("Whether this can be planned");
  search_->setToolTip("Every plan of the space is refused, proved slower or simulated (Ctrl+F)");
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->setVerticalSpacing(kSpacing);
  add_row(*form, "model", "Model", model_);
  add_row(*form, "cluster", "Cluster", cluster_);
  form->addRow(make_cluster_notes());
  add_row(*form, "trainer", "Plan for", trainer_);
  add_field(*form, "global_batch", "Global batch", "Samples per optimizer step");
  add_field(*form, "sequence", "Sequence", "Tokens per sample");
  add_field(*form, "mtp", "MTP modules", "Multi-token prediction: one more token each, predicted at the end; none: 0");
  add_field(*form, "total_tokens", "Total tokens", "Of the whole training: 300 billion, 1.5e12; none: not said");
  add_field(*form, "ranks", "Devices", "That a search may use; none: all");
  add_field(*form, "memory", "Device memory", "What a device has, with its unit: 80 GiB");
  add_field(*form, "fixed", "Hold fixed", "What a search leaves alone, comma separated: tensor parallel, ZeRO stage");
  auto* rows = new QWidget;
  auto* rows_layout = new QVBoxLayout(rows);
  rows_layout->setSpacing(kSpacing);
  rows_layout->addLayout(form);
  rows_layout->addWidget(ignore_memory_);
  rows_layout->addWidget(about_);
  rows_layout->addStretch();
  auto* scroll = new RowScroll;  // so that a low screen cuts nothing off
  scroll->setWidget(rows);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* below = new QVBoxLayout;
  below->setContentsMargins(kMargin, 0, kMargin, kMargin);
  below->addWidget(verdict_);
  below->addWidget(search_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(kSpacing);
  layout->addWidget(scroll, 1);
  layout->addLayout(below);
  layout->addStretch();
  connect(ignore_memory_, &QCheckBox::toggled, this, [this](bool on) {
    if (showing_) return;
    edit(
        "ignore_memory", [&](Scenario s) { return s.ignore_memory = on, s; }, "memory limit");
  });
  connect(&document_, &Document::scenario_changed, this, [this] { show_scenario(); });
  connect(&document_, &Document::evaluated, this, [this] { show_verdict(); });
}

void StartPanel::set_up_choices() {
  for (const std::string& name : models::shipped_models()) model_->addItem(text(name));
  cluster_->addItems(example_clusters());
  for (const std::string& name : hardware::shipped_profiles()) cluster_->addItem(text(name) + ":1");
  for (QComboBox* box : std::initializer_list<QComboBox*>{model_, cluster_}) {
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
  for (const auto& [box, name] : {std::pair<QComboBox*, QString>{model_, "model"}, {cluster_, "cluster"}}) {
    connect(box, &QComboBox::activated, this, [this, name = name] { apply(name); });
    connect(box->lineEdit(), &QLineEdit::editingFinished, this, [this, name = name] { apply(name); });
  }
}

// An answer for the runtime that ran on several GPUs: of Trivium's own nobody has measured that.
void StartPanel::set_up_trainers() {
  for (const planner::TrainerSpace& space : planner::trainer_spaces()) {
    const std::string name(space.trainer);
    trainer_->addItem(text(trainer_words(name)), text(name));
  }
  trainer_->addItem(text(trainer_words("")), QString());
  trainer_->setAccessibleName("Plan for");
  trainer_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // long names widen nothing
  trainer_->setMinimumContentsLength(12);
  trainer_->setToolTip(
      "Whose plans a search looks for, and as whose runtime they are priced; Trivium's own has never run "
      "on several GPUs");
  connect(trainer_, &QComboBox::activated, this, [this] { apply("trainer"); });
}

// A plan of another stack, out of a file, was searched for no trainer.
void StartPanel::show_trainer() {
  const Scenario& scenario = document_.scenario();
  const std::string& stack = scenario.file.job.plan.stack;
  const bool own = scenario.trainer.empty() && stack != program::Plan().stack;
  trainer_->setPlaceholderText("stack " + text(stack));
  trainer_->setCurrentIndex(own ? -1 : trainer_->findData(text(scenario.trainer)));
}

QWidget* StartPanel::make_cluster_notes() {
  altered_->setWordWrap(true);
  altered_->setAccessibleName("How the cluster was altered");
  altered_->setTextInteractionFlags(Qt::TextBrowserInteraction);
  altered_->hide();
  connect(altered_, &QLabel::linkActivated, this, [this](const QString& stock) {
    edit(
        "cluster", [&](Scenario s) { return with_cluster(std::move(s), stock.toStdString()); }, "cluster " + stock);
  });
  auto* words =
      new QLabel("This machine has not been measured: figures come from a generic processor and may be far off.");
  words->setWordWrap(true);
  measure_->setToolTip("Runs trivium profile --quick: under 20 seconds in which nothing else should run here");
  auto* rows = new QVBoxLayout(unmeasured_);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->addWidget(words);
  rows->addWidget(measure_);
  unmeasured_->hide();
  auto* both = new QWidget;
  auto* column = new QVBoxLayout(both);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(kSpacing);
  column->addWidget(altered_);
  column->addWidget(unmeasured_);
  return both;
}

void StartPanel::add_row(QFormLayout& form, const QString& name, const QString& words, QWidget* field) {
  auto* note = notes_[name] = new QLabel;
  note->setWordWrap(true);
  note->setAccessibleName("What is wrong with " + words.toLower());
  note->hide();
  auto* both = new QWidget;
  auto* column = new QVBoxLayout(both);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(field);
  column->addWidget(note);
  auto* label = new QLabel(words);
  label->setBuddy(field);
  label->setToolTip(field->toolTip());
  form.addRow(label, both);
}

void StartPanel::add_field(QFormLayout& form, const QString& name, const QString& words, const QString& help) {
  auto* edit = new Marked<QLineEdit>;
  edit->setAccessibleName(words);
  edit->setToolTip(help);
  if (name == "fixed") edit->setPlaceholderText("tensor parallel, ZeRO stage");
  if (name == "total_tokens") edit->setPlaceholderText("such as 300 billion");
  fields_[name] = edit;
  add_row(form, name, words, edit);
  connect(edit, &QLineEdit::editingFinished, this, [this, name] { apply(name); });
  connect(edit, &QLineEdit::textEdited, this, [this, name] { check(name); });
}

void StartPanel::apply(const QString& name) {
  if (showing_) return;
  if (name == "model") {
    const std::string wanted = model_->currentText().trimmed().toStdString();
    if (wanted == document_.scenario().file.job.model.name) return say(name, "");
    return edit(
        name, [&](Scenario s) { return with_model(std::move(s), wanted); }, "model " + text(wanted));
  }
  if (name == "trainer") {
    const std::string wanted = trainer_->currentData().toString().toStdString();
    return edit(
        name, [&](Scenario s) { return with_trainer(std::move(s), wanted); }, "plan for " + trainer_->currentText());
  }
  if (name == "cluster") {
    const std::string wanted = cluster_->currentText().trimmed().toStdString();
    if (wanted == document_.scenario().cluster.name) return say(name, "");
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
  if (name == "mtp") {
    const std::int64_t modules = whole_number_or_none(typed, models::kMostModules, "MTP modules");
    s.file.job.model = models::with_modules(std::move(s.file.job.model), modules);
  }
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
    return with_cluster(std::move(s), named_by_its_nodes(std::move(cluster)));
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
    say(name, "");
  } catch (const base::Failure& failure) {
    say(name, text(failure.error().message));
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
                      next.fixed == now.fixed && next.ranks == now.ranks && next.ignore_memory == now.ignore_memory &&
                      next.trainer == now.trainer && next.file.job.plan.stack == now.file.job.plan.stack;
    if (!same) document_.edit(std::move(next), words, name);
    say(name, "");
  } catch (const base::Failure& failure) {
    say(name, text(failure.error().message));
  }
}

void StartPanel::show_scenario() {
  showing_ = true;
  const Scenario& scenario = document_.scenario();
  const program::Job& job = scenario.file.job;
  model_->setCurrentText(text(job.model.name));
  cluster_->setCurrentText(text(scenario.cluster.name));
  cluster_->setToolTip(text(scenario.cluster.name) + "\nNAME:N, A:16+B:16, this-machine, or FILE.json");
  if (!cluster_->hasFocus()) cluster_->lineEdit()->setCursorPosition(0);  // long names show how they begin
  const auto counted_or_none = [](std::int64_t count) { return count == 0 ? QString() : text(count_text(count)); };
  fields_.at("global_batch")->setText(text(count_text(job.training.global_batch)));
  fields_.at("sequence")->setText(text(count_text(job.training.sequence)));
  fields_.at("mtp")->setText(counted_or_none(job.model.mtp_depth()));
  fields_.at("mtp")->setPlaceholderText("none");
  fields_.at("total_tokens")->setText(counted_or_none(job.training.total_tokens));
  fields_.at("ranks")->setText(counted_or_none(scenario.ranks));
  fields_.at("ranks")->setPlaceholderText(QString("all %1").arg(text(count_text(scenario.cluster.devices()))));
  fields_.at("memory")->setText(text(base::to_text(scenario.cluster.groups.at(0).node.device.memory)));
  show_trainer();
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
  clear_notes();
  show_alteration();
  show_verdict();
}

void StartPanel::refresh() { show_scenario(); }

void StartPanel::show_alteration() {
  const Scenario& scenario = document_.scenario();
  const std::optional<Alteration> altered =
      scenario.file.cluster.is_string() ? std::nullopt : alteration(scenario.cluster);
  altered_->setVisible(altered.has_value());
  if (altered) {
    QStringList changes;
    for (const std::string& change : altered->changes) changes << text(change).toHtmlEscaped();
    const QString stock = text(altered->stock).toHtmlEscaped();
    altered_->setText(QString("Altered: %1. <a href='%2'>Back to %2</a>").arg(changes.join("; "), stock));
  }
  const auto& groups = scenario.cluster.groups;
  const bool is_here = scenario.file.cluster.is_string() &&
                       scenario.file.cluster.get<std::string>().find("this-machine") != std::string::npos;
  unmeasured_->setVisible(is_here && !groups.empty() && !QFileInfo::exists(text(hardware::this_machine_path())));
}

QString StartPanel::wrong(const QString& name) const {
  const QLabel& note = *notes_.at(name);
  return note.isHidden() ? QString() : note.toolTip();
}

bool StartPanel::is_marked(const QString& name) const {
  if (name == "model") return model_->is_wrong();
  if (name == "trainer") return trainer_->is_wrong();
  return name == "cluster" ? cluster_->is_wrong() : fields_.at(name)->is_wrong();
}

void StartPanel::clear_notes() {
  for (const auto& [name, note] : notes_) say(name, "");
}

void StartPanel::say(const QString& name, const QString& problem) {
  const auto found = notes_.find(name);
  if (found == notes_.end()) return;
  QLabel& note = *found->second;
  const QString brief = problem.size() > kMostInNote ? problem.left(kMostInNote) + "…" : problem;
  note.setText(QString("<span style='color:%1'>%2</span>").arg(alarm_colour().name(), brief.toHtmlEscaped()));
  note.setToolTip(problem);
  note.setVisible(!problem.isEmpty());
  const bool wrong = !problem.isEmpty();
  if (name == "model") return model_->set_wrong(wrong);
  if (name == "trainer") return trainer_->set_wrong(wrong);
  if (name == "cluster") return cluster_->set_wrong(wrong);
  fields_.at(name)->set_wrong(wrong);
}

void StartPanel::show_verdict() {
  const auto& evaluation = document_.evaluation();
  if (!evaluation) return verdict_->clear();
  if (!evaluation->runs()) {
    verdict_->setText("This plan cannot run: " + text(evaluation->refusal).toHtmlEscaped());
  } else if (!evaluation->overflow.empty()) {
    verdict_->setText("This plan does not fit: " + text(evaluation->overflow).toHtmlEscaped());
  } else {
    verdict_->setText("This plan can run on its cluster.");
  }
}

}  // namespace trivium::gui
