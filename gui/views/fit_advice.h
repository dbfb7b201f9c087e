// Below a plan that does not fit: what would make it fit, with a button each.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <QWidget>
#include <memory>

#include "gui/document.h"
#include "gui/model/ways_to_fit.h"

namespace trivium::gui {

/// Hidden where the plan fits. Looks while it is seen, on a thread of its own. Lives on the GUI thread.
class FitAdvice : public QWidget {
 public:
  explicit FitAdvice(Document& document, QWidget* parent = nullptr);

  /// Only a view that is seen looks for anything.
  void set_wanted(bool wanted);
  bool is_busy() const { return busy_; }
  const std::vector<WayToFit>& ways() const { return ways_; }
  const QLabel& title() const { return *title_; }
  /// One a way, in their order; pressed, the document's job becomes the way's.
  const std::vector<QPushButton*>& buttons() const { return buttons_; }

 private:
  void ask();
  void clear();
  void show_ways(std::vector<WayToFit> ways);
  void use(std::size_t way);

  Document& document_;
  QLabel* title_;
  QVBoxLayout* rows_;
  std::vector<QPushButton*> buttons_;
  std::vector<WayToFit> ways_;
  bool wanted_ = false, busy_ = false;
  std::shared_ptr<const Evaluation> asked_;
  Background<std::shared_ptr<const Evaluation>, std::vector<WayToFit>> thinker_;
};

}  // namespace trivium::gui
