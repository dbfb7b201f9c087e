// A run judged: predicted against measured by op kind and by rank.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <memory>
#include <optional>

#include "calibration/validate/validate.h"
#include "gui/background.h"
#include "gui/timeline/compare_view.h"

namespace trivium::gui {

/// What `trivium validate` says of the plan and the run that was loaded: the iteration and the memory of the fullest
/// rank, then op kinds and ranks, the worst first. Computed on a thread of its own while the panel is seen. Lives on
/// the GUI thread.
class ValidationPanel : public QWidget {
 public:
  explicit ValidationPanel(QWidget* parent = nullptr);

  /// None: `why_none`, else a hint what to do.
  void set_case(std::optional<Comparison> asked, const QString& why_none = {});
  bool is_busy() const { return busy_; }
  const std::optional<calibration::Validation>& validation() const { return validation_; }
  QTreeWidget& table() { return *table_; }
  QLabel& summary() { return *summary_; }
  /// Writes the groups as .csv or all of it as .json. Errors: Failure(kUsage) for another ending or where nothing is
  /// validated, Failure(kRuntime) where it cannot be written.
  void save(const std::string& path) const;

  std::function<void()> on_export;
  std::function<void()> on_load;  ///< a run record is wanted

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void say(const QString& words);
  void fit_words();
  struct Answer {
    std::optional<calibration::Validation> validation;
    QString error;
  };
  void ask();
  void show_answer(Answer answer);
  void add_group(const char* by, const QString& title);

  std::optional<Comparison> asked_;
  std::optional<calibration::Validation> validation_;
  QLabel* summary_;
  QTreeWidget* table_;
  QPushButton *export_, *load_;
  bool busy_ = false, stale_ = false;
  Background<Comparison, Answer> work_;
};

}  // namespace trivium::gui
