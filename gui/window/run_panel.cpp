#include "gui/window/run_panel.h"

#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QStandardPaths>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/readable.h"
#include "gui/look/text.h"
#include "gui/look/theme.h"
#include "gui/model/display_name.h"
#include "gui/model/sample_text.h"
#include "gui/window/temporary_folder.h"
#include "program/plan/job_json.h"

namespace trivium::gui {
namespace {

constexpr int kPatienceMs = 3000;
constexpr int kLeastHeight = 60;  // pixels of a curve, so that a small screen holds it below any view
constexpr int kAroundDots = 24;   // of the button beside the text, which else is as wide as one with a word
constexpr int kMostSteps = 1'000'000;
constexpr int kMostLogLines = 2000;
constexpr int kInterrupted = 130;
constexpr std::size_t kSampleBytes = std::size_t{256} << 10;
constexpr const char* kChooseText = "Choose a text to train on first.";
constexpr const char* kIntro = "Runs the plan on this machine's CPU cores.";

/// Keeps every second point, and the last: as many as a picture can show however long a run is.
void thin(std::vector<QPointF>& points) {
  std::size_t kept = 0;
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (p % 2 == 0 || p + 1 == points.size()) points[kept++] = points[p];
  }
  points.resize(kept);
}

}  // namespace

QString RunPanel::trivium_program() {
  const QString beside = QCoreApplication::applicationDirPath() + "/trivium";
  if (QFileInfo(beside).isExecutable()) return beside;
  return QStandardPaths::findExecutable("trivium");
}

RunPanel::RunPanel(Document& document, QWidget* parent)
    : QWidget(parent),
      document_(document),
      folder_(temporary_folder_template()),
      corpus_(new QLineEdit),
      checkpoint_(new QLineEdit),
      steps_(new QSpinBox),
      start_(new QPushButton("Run")),
      resume_(new QPushButton("Resume")),
      stop_(new QPushButton("Stop")),
      choose_(new QPushButton("…")),
      sample_(new QPushButton("Sample")),
      state_(new QLabel(kIntro)),
      refusal_(new QLabel),
      whose_(new QLabel),
      loss_(new LineChart("Loss by step")),
      speed_(new LineChart("Throughput by step")),
      log_(new QPlainTextEdit) {
  whose_->setAccessibleName("Whose curves these are");
  whose_->setWordWrap(true);
  whose_->hide();
  refusal_->setAccessibleName("Why the plan cannot run here");
  refusal_->setWordWrap(true);
  refusal_->hide();
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(make_controls());
  layout->addWidget(whose_);
  layout->addWidget(make_charts(), 1);
  follow_process();
  connect(&document_, &Document::scenario_changed, this, [this] {
    show_whose();
    show_whether_it_runs();
  });
  connect(&document_, &Document::evaluated, this, [this] {
    show_whether_it_runs();
    if (!losses_.empty()) draw_steps();
  });
}

// What to train on, how long, where checkpoints go, and how it stands.
QHBoxLayout* RunPanel::make_controls() {
  set_up_corpus();
  checkpoint_->setAccessibleName("Folder of checkpoints");
  checkpoint_->setPlaceholderText("Checkpoints: none");
  checkpoint_->setToolTip("Folder that checkpoints are kept in; none: none are kept");
  resume_->setToolTip("Goes on where the last checkpoint in the folder stands");
  for (QWidget* widget : std::initializer_list<QWidget*>{checkpoint_, resume_}) widget->hide();
  steps_->setAccessibleName("Steps");
  steps_->setRange(1, kMostSteps);
  steps_->setValue(20);
  steps_->setSuffix(" steps");
  steps_->setToolTip("Of the whole training: a resumed run ends there too");
  stop_->setEnabled(false);
  state_->setAccessibleName("State of the run");
  state_->setWordWrap(true);
  connect(start_, &QPushButton::clicked, this, [this] { start(); });
  connect(resume_, &QPushButton::clicked, this, [this] { resume(); });
  connect(stop_, &QPushButton::clicked, this, [this] { stop(); });
  auto* row = new QHBoxLayout;
  row->addWidget(corpus_, 4);
  row->addWidget(choose_);
  row->addWidget(sample_);
  row->addWidget(steps_);
  row->addWidget(checkpoint_, 4);
  row->addWidget(start_);
  row->addWidget(resume_);
  row->addWidget(stop_);
  row->addWidget(state_, 5);
  row->addWidget(refusal_, 5);
  return row;
}

void RunPanel::set_up_corpus() {
  corpus_->setAccessibleName("Text to train on");
  corpus_->setPlaceholderText("Text or token file");
  choose_->setAccessibleName("Choose the text");
  choose_->setFixedWidth(fontMetrics().horizontalAdvance(choose_->text()) + kAroundDots);
  sample_->setAccessibleName("Train on a sample text");
  sample_->setToolTip("A text that Trivium makes: sums in words, 256 KiB. Enough to see that a run works and how fast");
  connect(corpus_, &QLineEdit::returnPressed, this, [this] { start(); });
  connect(corpus_, &QLineEdit::textChanged, this, [this] {
    if (state_->text() == kChooseText) state_->clear();
  });
  connect(choose_, &QPushButton::clicked, this, [this] {
    const QString file = QFileDialog::getOpenFileName(this, "Text to train on");
    if (!file.isEmpty()) corpus_->setText(file);
  });
  connect(sample_, &QPushButton::clicked, this, [this] { choose_sample(); });
}

QSplitter* RunPanel::make_charts() {
  log_->setReadOnly(true);
  log_->setMaximumBlockCount(kMostLogLines);
  log_->setAccessibleName("What the run says");
  log_->setPlaceholderText("What the run says comes here.");
  loss_->set_hint("The loss of every step comes here while a run goes on.");
  speed_->set_hint("Tokens per second come here.");
  auto* charts = new QSplitter(Qt::Horizontal);
  charts->setObjectName("run charts and log");
  for (QWidget* part : std::initializer_list<QWidget*>{loss_, speed_, log_}) {
    part->setMinimumHeight(kLeastHeight);
    charts->addWidget(part);
  }
  return charts;
}

void RunPanel::follow_process() {
  connect(&process_, &QProcess::readyReadStandardOutput, this, [this] { read_steps(); });
  connect(&process_, &QProcess::readyReadStandardError, this,
          [this] { log_->appendPlainText(QString::fromUtf8(process_.readAllStandardError()).trimmed()); });
  connect(&process_, &QProcess::finished, this,
          [this](int code, QProcess::ExitStatus status) { finish(code, status == QProcess::CrashExit); });
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;
    say("trivium could not be started: " + process_.errorString());
    show_whether_it_runs();
  });
}

RunPanel::~RunPanel() {
  probe_.disconnect(this);
  probe_.kill();
  probe_.waitForFinished(kPatienceMs);
  process_.disconnect(this);
  if (!is_running()) return;
  process_.terminate();
  if (!process_.waitForFinished(kPatienceMs)) {
    process_.kill();
    process_.waitForFinished(kPatienceMs);
  }
}

void RunPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ask_for_checkpoints();
}

void RunPanel::ask_for_checkpoints() {
  if (keeps_checkpoints_ || probe_.state() != QProcess::NotRunning || trivium_program().isEmpty()) return;
  probe_.disconnect(this);
  connect(&probe_, &QProcess::finished, this, [this] {
    const QByteArray help = probe_.readAllStandardOutput();
    keeps_checkpoints_ = help.contains("--checkpoint") && help.contains("--resume");
    checkpoint_->setVisible(keeps_checkpoints_);
    resume_->setVisible(keeps_checkpoints_);
  });
  probe_.start(trivium_program(), {"run", "--help"});
}

void RunPanel::start() { begin(false); }

void RunPanel::say(const QString& words) {
  state_->setText(words);
  state_->show();
}

void RunPanel::choose_sample() {
  const std::string path = (base::user_data() / "sample.txt").string();
  try {
    base::write_file_atomically(path, sample_text(kSampleBytes));
    corpus_->setText(text(path));
    say("The sample text is chosen: sums in words.");
  } catch (const base::Failure& failure) {
    say(text(failure.error().message));
  }
}

// As `trivium run` would refuse it.
QString RunPanel::why_not() const {
  if (!document_.has_begun()) return {};
  QStringList gpus;
  for (const hardware::NodeGroup& group : document_.scenario().cluster.groups) {
    if (group.node.device.kind != hardware::DeviceKind::kCpu) gpus << text(group.node.device.name);
  }
  gpus.removeDuplicates();
  if (!gpus.empty()) {
    return QString("This plan is for GPUs: %1. To run one here, choose the cluster this-machine.").arg(gpus.join(", "));
  }
  const auto& evaluation = document_.evaluation();
  if (!document_.is_current() || evaluation->runs()) return {};
  return "The plan cannot run: " + text(display_name(evaluation->refusal));
}

void RunPanel::show_whether_it_runs() {
  const QString why = why_not();
  refusal_->setText(why);
  refusal_->setVisible(!why.isEmpty());
  state_->setHidden(!why.isEmpty() && state_->text() == kIntro);  // the reason stands in its place
  start_->setEnabled(why.isEmpty() && !is_running());
  resume_->setEnabled(why.isEmpty() && !is_running());
  stop_->setEnabled(is_running());
  if (on_refusal) on_refusal(why);
}

bool RunPanel::shows_the_documents_plan() const {
  const program::Job& now = document_.scenario().file.job;
  return drawn_ && drawn_->model == now.model && program::to_json(drawn_->training) == program::to_json(now.training) &&
         program::to_json(drawn_->plan) == program::to_json(now.plan);
}

// Curves stay where the plan changes: whose they are is said, and that it is no longer the one on the left.
void RunPanel::show_whose() {
  whose_->setVisible(drawn_.has_value());
  if (!drawn_) return;
  QString words = drawn_name_.isEmpty() ? QString() : drawn_name_ + ": ";
  words += QString("%1, %2").arg(text(drawn_->model.name), text(display_name(program::summary(drawn_->plan))));
  words = words.toHtmlEscaped();
  if (!shows_the_documents_plan()) {
    words += QString(" – <span style='color:%1'>not the plan on the left</span>").arg(alarm_colour().name());
  }
  whose_->setText("Curves of " + words);
}

void RunPanel::resume() {
  if (!keeps_checkpoints_) {
    say("The program trivium next to this one keeps no checkpoints.");
    return;
  }
  if (!QFileInfo(checkpoint_->text().trimmed()).isDir()) {
    say("Give the folder that a run kept its checkpoints in.");
    checkpoint_->setFocus();
    return;
  }
  begin(true);
}

void RunPanel::begin(bool resumed) {
  if (is_running() || !why_not().isEmpty()) return;  // which is said
  if (corpus_->text().trimmed().isEmpty()) {
    say(kChooseText);
    corpus_->setFocus();
    return;
  }
  if (!resumed) forget_steps();
  loss_->set_lines({}, {}, {}, 0, false);
  speed_->set_lines({}, {}, {}, 0, true);
  const QString plan = folder_.filePath("plan.json");
  record_ = folder_.filePath(QString("run-%1.json").arg(++runs_));
  try {
    base::write_file_atomically(plan.toStdString(), program::to_json(document_.scenario().file).dump(2) + "\n");
  } catch (const base::Failure& failure) {
    say(text(failure.error().message));
    return;
  }
  QStringList arguments{
      "run",      plan,    "--corpus", corpus_->text().trimmed(), "--steps", QString::number(steps_->value()),
      "--record", record_, "--json"};
  const QString folder = checkpoint_->text().trimmed();
  if (keeps_checkpoints_ && !folder.isEmpty()) arguments << "--checkpoint" << folder;
  if (resumed) arguments << "--resume";
  drawn_ = document_.scenario().file.job;
  drawn_name_.clear();
  show_whose();
  if (on_start) on_start();
  launch(arguments);
}

void RunPanel::measure() {
  if (is_running()) return;
  record_.clear();
  launch({"profile", "--quick"});
  measures_ = is_running();
}

QString RunPanel::progress_words() const {
  if (record_.isEmpty()) return measures_ ? "this machine is being measured." : "a profile is being fitted.";
  return QString("%1 of %2 steps done.")
      .arg(text(base::integer(static_cast<double>(seen_steps_))), text(base::integer(steps_->value())));
}

QString RunPanel::what_ending_loses() const {
  const QString folder = checkpoint_->text().trimmed();
  if (record_.isEmpty()) return "It has to begin anew then.";
  return keeps_checkpoints_ && !folder.isEmpty() ? "It can be resumed from its last checkpoint in " + folder + "."
                                                 : "No checkpoints are kept: what it has learned and measured goes.";
}

void RunPanel::calibrate(const QString& record, const QString& profile) {
  if (is_running()) return;
  record_.clear();
  launch({"calibrate", record, "-o", profile});
}

void RunPanel::launch(const QStringList& arguments) {
  const QString program = trivium_program();
  if (program.isEmpty()) {
    say("The program trivium is neither next to this one nor on the PATH.");
    return;
  }
  pending_.clear();
  log_->appendPlainText("+ trivium " + arguments.join(' '));
  start_->setEnabled(false);
  resume_->setEnabled(false);
  stop_->setEnabled(true);
  say("Starting …");
  process_.start(program, arguments);
}

void RunPanel::stop() {
  if (!is_running()) return;
  say("Ending after this step …");
  process_.terminate();
}

void RunPanel::read_steps() {
  pending_ += process_.readAllStandardOutput();
  for (qsizetype end = 0; (end = pending_.indexOf('\n')) >= 0; pending_.remove(0, end + 1)) {
    const std::string line = pending_.left(end).toStdString();
    const nlohmann::json step = nlohmann::json::parse(line, nullptr, false);
    if (!step.is_object() || !step.contains("loss") || !step.contains("step")) {
      log_->appendPlainText(text(line));
      continue;
    }
    const double number = step.at("step").get<double>();
    add_step(number, step.at("loss").get<double>(), step.value("tokens_per_s", 0.0));
    say(QString("step %1 of %2: loss %3, %4 tokens/s")
            .arg(number + 1)
            .arg(steps_->value())
            .arg(losses_.back().y(), 0, 'f', 4)
            .arg(text(base::integer(speeds_.back().y()))));
  }
  draw_steps();
}

void RunPanel::show_record(const program::RunRecord& record, const QString& name) {
  if (is_running() || record.steps.empty()) return;
  forget_steps();
  for (const program::StepRecord& step : record.steps) {
    add_step(static_cast<double>(step.step), step.loss, step.tokens_per_s);
  }
  drawn_ = record.job;
  drawn_name_ = name;
  show_whose();
  say(QString("%1: %2 steps, loss from %3 to %4")
          .arg(name)
          .arg(seen_steps_)
          .arg(losses_.front().y(), 0, 'f', 4)
          .arg(losses_.back().y(), 0, 'f', 4));
  draw_steps();
}

void RunPanel::forget_steps() {
  losses_.clear();
  speeds_.clear();
  seen_steps_ = 0;
}

void RunPanel::add_step(double step, double loss, double tokens_per_s) {
  ++seen_steps_;
  losses_.emplace_back(step, loss);
  speeds_.emplace_back(step, tokens_per_s);
  if (losses_.size() <= kMostPoints) return;
  thin(losses_);
  thin(speeds_);
}

void RunPanel::draw_steps() {
  const auto whole = [](double value) { return QString::number(value, 'f', 0); };
  loss_->set_lines({{"loss", series_colour(0), losses_, false}}, {0, 1, "step", whole},
                   {0, 1, "loss", [](double value) { return QString::number(value, 'f', 2); }}, 0, false);
  std::vector<Line> lines{{"tokens/s", series_colour(2), speeds_, false}};
  const auto& evaluation = document_.evaluation();
  const bool same = document_.is_current() && shows_the_documents_plan();
  if (!speeds_.empty() && same && evaluation->runs() && evaluation->figures.tokens_per_s > 0) {
    const double predicted = evaluation->figures.tokens_per_s;
    lines.push_back({"predicted for the plan",
                     link_colour(palette()),
                     {{speeds_.front().x(), predicted}, {speeds_.back().x(), predicted}},
                     false});
  }
  speed_->set_lines(std::move(lines), {0, 1, "step", whole},
                    {0, 1, "tokens/s", [](double value) { return text(base::integer(value)); }}, 0, true);
}

void RunPanel::finish(int code, bool crashed) {
  show_whether_it_runs();
  const bool measured = std::exchange(measures_, false) && code == 0 && !crashed;
  log_->appendPlainText(QString::fromUtf8(process_.readAllStandardError()).trimmed());
  if (!crashed && !pending_.isEmpty()) log_->appendPlainText(QString::fromUtf8(pending_));
  const bool has_record = !record_.isEmpty() && QFileInfo::exists(record_);
  if (crashed) {
    say("The run crashed; this window did not.");
  } else if (code == 0) {
    say(has_record ? QString("Done: %1 steps recorded.").arg(seen_steps_) : QString("Done."));
  } else if (code == kInterrupted) {
    say(QString("Stopped after %1 steps.").arg(seen_steps_));
  } else {
    const QStringList lines = log_->toPlainText().trimmed().split('\n');
    say(QString("Ended with code %1: %2").arg(code).arg(lines.last()));
  }
  if (measured) say("This machine has been measured.");
  if (measured && on_profile) on_profile();
  if (!crashed && has_record && on_record) on_record(record_);
}

}  // namespace trivium::gui
