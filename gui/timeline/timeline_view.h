// Ranks by time.
#pragma once

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTabWidget>
#include <QTimer>
#include <QToolButton>
#include <QWidget>
#include <filesystem>
#include <vector>

#include "gui/background.h"
#include "gui/look/fitted_splitter.h"
#include "gui/timeline/breakdown_panel.h"
#include "gui/timeline/flame_view.h"
#include "gui/timeline/hit_list.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/named_timeline.h"
#include "gui/timeline/op_table.h"
#include "gui/timeline/timeline_canvas.h"

namespace trivium::gui {

/// Shows timelines below each other on one scale, with search, folding, the breakdown and the ops of what is selected,
/// and the critical path. Timelines are laid out on a thread of their own; the newest wins. Lives on the GUI thread.
class TimelineView : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);

  /// Replaces what is shown once it is laid out (`shown` says when); none: `why_none`, else a hint what to do.
  void set_timelines(std::vector<NamedTimeline> timelines, const QString& why_none = {});
  /// Says that what is shown is of another plan than the one that is simulated now.
  void set_outdated();
  /// Shows a Chrome or Perfetto trace. What was shown goes at once; errors come as `failed`.
  void open_trace(const std::filesystem::path& path);
  bool is_busy() const { return busy_; }

  TimelineCanvas& canvas() { return *canvas_; }
  const BreakdownPanel& panel() const { return *panel_; }
  OpTable& ops() { return *ops_; }
  FlameView& flame() { return *flame_; }
  Minimap& minimap() { return *minimap_; }
  /// Below the canvas: the table of ops or the flame view.
  QTabWidget& below() { return *below_; }
  FittedSplitter& halves() { return *halves_; }
  QLineEdit& row_filter() { return *row_filter_; }
  /// The spans of what is selected, or of everything. Errors: Failure(kUsage) where they are too many, or none.
  std::string selection_csv() const;
  QLineEdit& search_field() { return *search_; }
  /// Of all that was found, by time; chosen ones are selected. Filled when it opens.
  HitList& hits() { return *hits_; }
  QToolButton& list_button() { return *list_; }
  const QLabel& search_result() const { return *found_; }
  const QLabel& note() const { return *note_; }  ///< how many spans, or what there is to know of them
  std::size_t matches() const;

 Q_SIGNALS:
  void save_wanted();  ///< of the spans that are selected
  void shown();
  void failed(const QString& why);

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Request {
    std::vector<NamedTimeline> timelines;
    std::filesystem::path trace;  ///< instead of timelines
  };
  struct Answer {
    std::vector<SceneTimeline> timelines;
    std::vector<QString> names;
    std::vector<WorkOf> works;
    QString error, note;
    QString file;  ///< "run.json: " of a trace
  };
  static Answer lay_out(const Request& request, const std::stop_token& stop);
  static QString hint();
  QHBoxLayout* make_bar();
  QToolButton* make_rows_button();
  void set_up_search();
  void set_up_halves();
  void set_up_history();
  void post(Request request);
  void take(Answer answer);
  void search();
  void go_to_match(int direction);
  void list_hits();
  void fold(RowKind kind);
  void show_only_selected();
  void update_panel();
  void update_below(int timeline, const QString& what);
  QString words_of_range(const SpanStore& store) const;
  bool lists(std::uint32_t span) const;
  void go_to_next(std::uint32_t like);
  QString describe_selected() const;

  TimelineCanvas* canvas_;
  BreakdownPanel* panel_;
  Minimap* minimap_;
  FittedSplitter* halves_;  // the canvas above the ops
  int wanted_below_ = 0;    // pixels, of what was listed last
  QTabWidget* below_;
  OpTable* ops_;
  FlameView* flame_;
  QLineEdit *search_, *row_filter_;
  QLabel *found_, *note_;
  QToolButton* list_;
  HitList* hits_;
  QToolButton *back_, *forward_;
  QTimer search_soon_;
  std::vector<std::shared_ptr<const std::vector<std::uint32_t>>> matches_;
  std::vector<std::shared_ptr<const CriticalPath>> paths_;
  std::vector<QString> names_;
  std::vector<WorkOf> works_;
  std::shared_ptr<const SpanStore> listed_;  // what stands below is of
  std::optional<Stretch> listed_stretch_;
  int listed_timeline_ = 0;
  QWidget* listed_by_ = nullptr;
  bool busy_ = false;
  Background<Request, Answer> layout_;
};

}  // namespace trivium::gui
