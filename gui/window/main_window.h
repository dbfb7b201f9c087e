// The window: views of one document side by side.
#pragma once

#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QMenu>
#include <QStackedWidget>
#include <QTabWidget>
#include <QTimer>

#include "gui/background.h"
#include "gui/document.h"
#include "gui/look/command_field.h"
#include "gui/model/project.h"
#include "gui/timeline/compare_view.h"
#include "gui/timeline/timeline_view.h"
#include "gui/views/cluster_view.h"
#include "gui/views/explain_view.h"
#include "gui/views/links_view.h"
#include "gui/views/memory_view.h"
#include "gui/views/plans_view.h"
#include "gui/views/two_plans_view.h"
#include "gui/views/what_if_view.h"
#include "gui/window/headline.h"
#include "gui/window/plan_controls_panel.h"
#include "gui/window/run_panel.h"
#include "gui/window/start_page.h"
#include "gui/window/start_panel.h"
#include "gui/window/validation_panel.h"
#include "planner/launch/launch.h"

namespace trivium::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  /// In the order of the tabs.
  enum View { kCluster, kPlans, kTimeline, kMemory, kLinks, kExplain, kWhatIf, kCompare, kViews };
  static const QStringList& view_names();  ///< as on the command line: "cluster", "plans", …

  explicit MainWindow(QWidget* parent = nullptr);
  ~MainWindow() override;

  Document& document() { return document_; }
  ClusterView& cluster() { return *cluster_; }
  PlansView& plans() { return *plans_; }
  MemoryView& memory() { return *memory_; }
  TimelineView& timeline() { return *timeline_; }
  ExplainView& explain() { return *explain_; }
  LinksView& links() { return *links_; }
  WhatIfView& what_if() { return *what_if_; }
  CompareView& compare() { return *compare_; }
  TwoPlansView& two_plans() { return *two_plans_; }
  RunPanel& runs() { return *runs_; }
  ValidationPanel& validation() { return *validation_; }
  StartPanel& start_panel() { return *start_; }
  PlanControlsPanel& plan_controls() { return *plan_controls_; }
  Headline& headline() { return *headline_; }
  QLabel& banner() { return *banner_text_; }
  StartPage& start_page() { return *start_page_; }
  /// The command of `trivium` that predicts what is shown.
  CommandField& command() { return *command_; }

  void show_view(View view);
  /// Compares two plans side by side.
  void show_two_plans();
  /// How the views stand, as projects keep it.
  ViewState view_state() const;
  View view() const;
  QWidget& widget_of(View view);
  /// Whether the view shown has nothing left to compute.
  bool view_is_ready() const;

  /// A project, plan, search result, run record or trace. Says what is wrong with it in the banner and returns false.
  /// Undo brings back what stood here before.
  bool open(const QString& path);
  /// The same after a question where changes are not saved; false, too, where the answer was to stay.
  bool open_asking(const QString& path);
  bool save(const QString& path);
  bool load_record(const QString& path);
  /// Traces of other trainers: the timeline shows the first, Compare what their run loses against the plan.
  void open_traces(const QStringList& paths);
  /// Takes the shape of a new window with an example: no question, no way back.
  void begin_example(const Scenario& scenario);
  /// Other work in this window, after a question where changes are not saved; `words` name the step that Undo takes
  /// back. False: the answer was to stay.
  bool begin(const Scenario& scenario, const QString& words);
  /// What the last program left unsaved, where it did.
  bool restore_autosave();
  /// What an earlier window left that nobody took up.
  bool restore_earlier_work();
  /// Asks what the launch file of another trainer does not say, and begins with its plan.
  void import_launch_file(const QString& path);
  /// Where one begins: examples, an own cluster, files. Views and docks come back with the first choice.
  void show_start_page();
  bool shows_start_page() const { return pages_->currentWidget() == start_page_; }
  bool has_autosave() const;
  /// Neither work nor layout is kept from now on: it is a window that nobody sees.
  void keep_nothing() { keeps_nothing_ = true; }
  Project project() const;
  QStringList recent_files() const;

  bool export_picture(const QString& path);
  bool export_table(const QString& path);
  bool export_plan(const QString& path);
  /// The ops of what is selected in the timeline.
  bool export_ops(const QString& path);
  /// The spans of what is selected in the timeline, one by one.
  bool export_selection(const QString& path);
  bool export_trace(const QString& path);
  /// Written at once where Explain has computed all of it, else when that is done: the banner says so.
  bool export_report(const QString& path);
  bool is_reporting() const { return reporting_; }
  /// The file that launches the plan in another trainer; what that trainer cannot be told is said in the banner.
  bool export_launch(const QString& path, planner::launch::Trainer trainer);
  bool export_validation(const QString& path);
  /// Opens the panel that runs plans.
  void show_runs();
  /// Opens the panel that sets the run against the prediction.
  void validate();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  struct Work;
  Work work_at_hand() const;
  void show_work(const Work& work);
  void show_state(const ViewState& state);
  void show_state_of_timeline();
  /// Whether the work here may go: asks where changes are not saved.
  bool may_leave(const QString& what_next);
  /// Whether a run that goes on may end: asks.
  bool may_end_run();
  bool save_as_asked();
  void leave_start_page();
  void set_up_start_page();
  void ask_open();
  void ask_import();
  void ask_record();
  void note_change();
  void take_measured_machine();
  void keep_earlier_work();
  void make_menus();
  void make_export_menu(QMenu& file);
  void make_run_menu();
  void make_docks();
  void set_up_banner();
  void set_up_command();
  void copy_command();
  void copy_picture();
  QStringList title_of_picture() const;
  void connect_views();
  void open_dock(QDockWidget& dock);
  void refresh_timeline();
  void refresh_compare();
  void refresh_validation();
  /// What is shown of the plan before, and would look like this one's, goes or says so.
  void set_aside_results();
  void refresh_foreign();
  void set_foreign(const QStringList& files);
  void set_up_findings();
  std::optional<Comparison> comparison() const;
  QString why_no_comparison() const;  ///< empty where nothing is known but what to do
  void show_title();
  void say(const QString& words);
  void note_recent(const QString& path);
  void fill_recent();
  void autosave();
  /// The project as it stands in a file at `path`: with a copy of a record that would not outlive this window.
  Project kept_project(const std::string& path);
  bool guarded(const std::function<void()>& work);
  /// `words`: the step that Undo takes back; empty: there is no way back.
  void take(const Project& project, const QString& path, const QString& words);
  QString ask_file(const QString& title, const QString& filter);

  Document document_;
  QStackedWidget* pages_;
  StartPage* start_page_;
  QWidget* banner_;
  QLabel* banner_text_;
  CommandField* command_;
  Headline* headline_;
  QTabWidget* tabs_;
  ClusterView* cluster_;
  PlansView* plans_;
  TimelineView* timeline_;
  MemoryView* memory_;
  LinksView* links_;
  ExplainView* explain_;
  WhatIfView* what_if_;
  QTabWidget* compare_pages_;
  CompareView* compare_;
  TwoPlansView* two_plans_;
  StartPanel* start_;
  PlanControlsPanel* plan_controls_;
  RunPanel* runs_;
  ValidationPanel* validation_;
  QDockWidget *start_dock_ = nullptr, *plan_controls_dock_ = nullptr, *run_dock_ = nullptr, *validation_dock_ = nullptr;
  struct Report {
    QString path;
    std::shared_ptr<const Evaluation> evaluation;
    std::vector<PlanRow> plans;
    std::string cluster_png;  ///< in base 64
  };
  struct WrittenReport {
    QString path, error;
  };
  static WrittenReport compute_report(const Report& report, const std::stop_token& stop);
  bool reporting_ = false;
  Background<Report, WrittenReport> reporter_;
  QMenu* recent_ = nullptr;
  QTimer autosave_timer_;
  QString path_;    // of the project; empty: not saved yet
  QString record_;  // of the run that is compared
  QString kept_;    // the record whose copy is stored with the unsaved work
  std::shared_ptr<const program::RunRecord> run_;
  std::shared_ptr<const Evaluation> drawn_;      // what the timeline shows
  std::shared_ptr<const Evaluation> compared_;   // what the comparison shows, with run_
  QStringList foreign_;                          // traces that Compare sets against the plan
  std::shared_ptr<const Evaluation> explained_;  // what it set them against
  QString trace_;                                // the file that the timeline shows until the plan changes
  bool changed_ = false;                         // since it was saved
  bool autosave_is_ours_ = false;
  bool keeps_nothing_ = false;
  std::optional<ViewState> state_to_come_;  // of the timeline, once it is laid out
  std::uint64_t run_work_ = 0;              // the work whose run goes on
  std::vector<QDockWidget*> docks_away_;    // while the start page is shown
};

}  // namespace trivium::gui
