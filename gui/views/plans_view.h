// Plans: search them, sort and filter them, see them in a picture, keep some and compare.
#pragma once

#include <QComboBox>
#include <QElapsedTimer>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTabWidget>
#include <QTableView>
#include <QTableWidget>
#include <QWidget>

#include "gui/document.h"
#include "gui/model/space_words.h"
#include "gui/plot/scatter_chart.h"
#include "gui/views/plans_model.h"
#include "gui/views/two_plans_view.h"

namespace trivium::gui {

class PlansView : public QWidget {
 public:
  explicit PlansView(Document& document, QWidget* parent = nullptr);

  /// Begins a search of the document's scenario; one under way is dropped.
  void search();
  /// Ends the search with the best so far.
  void cancel();
  bool is_searching() const { return searching_; }
  /// Keeps a plan of the table, or the document's own, to compare with. At most kMostPinned.
  void pin(int row);
  void pin_current();
  void unpin_all();
  void set_pinned(const std::vector<program::Plan>& plans);
  std::vector<program::Plan> pinned() const;
  /// Makes a plan of the table the document's.
  void use(int row);
  /// Says why a plan of the table is slower than the best.
  void explain_why_not(int row);
  /// The same for the document's plan, whether or not the search looked at it: which rule or how much memory rules it
  /// out, or how much slower it is than the best of the table and where.
  void explain_why_not_current();
  QLabel& why() { return *why_; }
  /// "the fastest of 1,290,424 plans with tensor parallel 8 held" where the document's plan is what the last search
  /// answered for its job; else empty.
  QString answer_words() const;

  /// No plan of the search at hand, or of the last one, takes less; 0: that is not known.
  double bound_s() const { return progress_now_.bound_s; }

  /// Pinned plans and the first of the table, named: what the document's plan can be compared with.
  std::vector<TwoPlansView::Choice> choices() const;
  const std::vector<PlanRow>& plans() const { return model_.rows(); }
  const std::vector<PlanRow>& pinned_rows() const { return pins_; }
  QTableView& table() { return *table_; }
  QTableWidget& comparison() { return *comparison_; }
  QLineEdit& filter() { return *filter_; }
  QLabel& status() { return *status_; }
  QTableWidget& rejected() { return *rejected_; }
  ScatterChart& scatter() { return *scatter_; }

  static constexpr int kMostPinned = 4;
  /// Called when the pinned plans change.
  std::function<void()> on_pins;
  /// Called when a search has answered.
  std::function<void()> on_answer;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Found {
    planner::SearchResult result;
    Scenario scenario;
  };
  void set_up_table();
  void set_up_row_actions();
  void set_up_below();
  QHBoxLayout* make_search_row();
  QHBoxLayout* make_buttons();
  QWidget* make_picture();
  void show_result(const Found& found);
  /// The best so far, while the search goes on.
  void show_interim(const std::vector<std::pair<program::Plan, double>>& ranking);
  void show_progress(std::int64_t done, std::int64_t all, double best_s);
  void show_bound(double bound_s);
  /// What the last search gave; first, where it answers another job than the document's, which.
  void show_status();
  QString who_beats_the_answer() const;
  void show_pins();
  void show_new_pins();  ///< that the user chose: the project changes with them
  /// Columns of the comparison share what room there is; names take as many lines as they need.
  void fit_pins();
  void show_scatter();
  int selected() const;
  QString row_text(int row) const;  ///< its cells with tabs between them: a table's row elsewhere
  int source_row(const QModelIndex& index) const { return proxy_.mapToSource(index).row(); }
  Found run(const Scenario& scenario, const std::stop_token& stop);

  Document& document_;
  PlansModel model_;
  QSortFilterProxyModel proxy_;
  std::vector<PlanRow> pins_;
  int fitted_width_ = 0;  // of the comparison
  Scenario searched_;     // what the table answers
  QPushButton *search_, *cancel_;
  QProgressBar* progress_;
  QLabel* status_;
  QElapsedTimer begun_;
  SearchProgress progress_now_;
  QString found_words_, answer_words_;  // of the last search
  QLineEdit* filter_;
  QTableView* table_;
  ScatterChart* scatter_;
  QComboBox* against_;
  QTableWidget *comparison_, *rejected_;
  QLabel* why_;
  QTabWidget* below_;
  bool searching_ = false;
  Background<Scenario, Found> searcher_;  // ends before what it shows
  Background<std::vector<std::pair<program::Plan, Scenario>>, std::vector<PlanRow>> pinner_;
  struct WhyRequest {
    program::Plan chosen, other;
    Scenario scenario;  ///< that was searched
  };
  Background<WhyRequest, QString> asker_;
};

}  // namespace trivium::gui
