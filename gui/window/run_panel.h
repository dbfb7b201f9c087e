// Runs the plan on this machine as a child of its own, so that neither program can take the other down.
#pragma once

#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTemporaryDir>
#include <QWidget>
#include <functional>
#include <optional>

#include "gui/document.h"
#include "gui/plot/line_chart.h"
#include "program/record/run_record.h"

namespace trivium::gui {

class RunPanel : public QWidget {
 public:
  explicit RunPanel(Document& document, QWidget* parent = nullptr);
  ~RunPanel() override;

  QLineEdit& corpus() { return *corpus_; }
  QSpinBox& steps() { return *steps_; }
  QLineEdit& checkpoint() { return *checkpoint_; }
  QLabel& state() { return *state_; }
  QPushButton& run_button() { return *start_; }
  QPushButton& resume_button() { return *resume_; }
  /// Why the document's plan cannot run here, in place of the state; empty where it can.
  const QLabel& refusal() const { return *refusal_; }
  /// Told whenever it may have changed why the plan cannot run on this machine; empty: it can.
  std::function<void(const QString& why)> on_refusal;
  LineChart& loss() { return *loss_; }
  LineChart& speed() { return *speed_; }
  /// Which plan the curves are of, and whether it is another than the document's.
  const QLabel& whose() const { return *whose_; }
  /// Writes a text to train on next to the unsaved work and selects it.
  QPushButton& sample() { return *sample_; }
  static constexpr std::size_t kMostPoints = 8192;  ///< that a curve has
  QString record_path() const { return record_; }
  /// Whether a file goes when this panel does: records of runs that nobody kept.
  bool is_passing(const QString& file) const { return file.startsWith(folder_.path() + '/'); }
  bool is_running() const { return process_.state() != QProcess::NotRunning; }

  /// Starts `trivium run` with the document's plan. Does nothing while one runs.
  void start();
  /// Goes on where the last checkpoint in the folder stands. Says why where it cannot.
  void resume();
  /// Whether the command line program keeps checkpoints; known soon after the panel was first seen.
  bool keeps_checkpoints() const { return keeps_checkpoints_; }
  /// Asks the run to end after its step; it still writes its record.
  void stop();
  /// Draws the steps of a record that was loaded. Does nothing while a run goes on.
  void show_record(const program::RunRecord& record, const QString& name);
  /// Fits the machine's profile to a run record and writes it, by `trivium calibrate`.
  void calibrate(const QString& record, const QString& profile);

  /// Measures this machine by `trivium profile --quick`.
  void measure();
  /// "step 120 of 3,000": how far a run is.
  QString progress_words() const;
  /// What goes with a run that is ended now.
  QString what_ending_loses() const;

  /// A run has begun.
  std::function<void()> on_start;
  /// This machine has been measured.
  std::function<void()> on_profile;
  /// A run has left a record.
  std::function<void(const QString& record)> on_record;

  /// The command-line program next to this one, else the one on the path.
  static QString trivium_program();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QHBoxLayout* make_controls();
  void set_up_corpus();
  QSplitter* make_charts();
  void follow_process();
  void ask_for_checkpoints();
  void begin(bool resumed);
  void launch(const QStringList& arguments);
  void read_steps();
  void forget_steps();
  void choose_sample();
  void say(const QString& words);
  void show_whose();
  QString why_not() const;
  void show_whether_it_runs();
  bool shows_the_documents_plan() const;
  void add_step(double step, double loss, double tokens_per_s);
  void draw_steps();
  void finish(int code, bool crashed);

  Document& document_;
  QTemporaryDir folder_;
  QProcess process_;
  QByteArray pending_;
  QProcess probe_;  // asks the program what it can do
  bool keeps_checkpoints_ = false;
  QLineEdit *corpus_, *checkpoint_;
  QSpinBox* steps_;
  QPushButton *start_, *resume_, *stop_, *choose_, *sample_;
  QLabel *state_, *refusal_, *whose_;
  LineChart *loss_, *speed_;
  QPlainTextEdit* log_;
  std::vector<QPointF> losses_, speeds_;  // of all steps, or of some that lie among them
  qint64 seen_steps_ = 0;
  QString record_;
  std::optional<program::Job> drawn_;  // that the curves are of
  QString drawn_name_;                 // of its record; empty: of the run here
  bool measures_ = false;              // what goes on is a measurement of this machine
  int runs_ = 0;
};

}  // namespace trivium::gui
