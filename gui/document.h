// What is being worked on: the scenario with its history, and what the simulator says of it.
#pragma once

#include <QObject>
#include <QUndoStack>
#include <functional>
#include <memory>

#include "gui/background.h"
#include "gui/model/evaluation.h"

namespace trivium::gui {

/// The one source of truth of a window. Every edit goes through `edit` and can be undone. After each the plan is
/// simulated twice on threads of its own: quickly, then in full; `evaluated` comes for both. Lives on the GUI thread.
class Document : public QObject {
  Q_OBJECT

 public:
  explicit Document(QObject* parent = nullptr);

  const Scenario& scenario() const { return *scenario_; }
  /// The newest; null before the first.
  const std::shared_ptr<const Evaluation>& evaluation() const { return evaluation_; }
  /// Whether the newest evaluation is in full and of this very scenario.
  bool settled() const;
  /// Whether the newest evaluation, quick or in full, is of this very scenario.
  bool is_current() const { return evaluation_ && evaluated_version_ == version_; }
  QUndoStack& history() { return history_; }

  /// One undoable step. `field`: what it edits; steps in a row that edit the same field are one ("" : never joined).
  void edit(Scenario scenario, const QString& words, const QString& field = {});
  /// Begins anew: no history.
  void reset(Scenario scenario);
  /// Other work altogether, as one step that can be undone. `turns` is called before the
  /// scenario changes and after it has: with true for the way there, with false for the way back.
  struct Turns {
    std::function<void(bool forth)> before, after;
  };
  void replace(Scenario scenario, const QString& words, Turns turns);
  /// Which work the scenario belongs to: figures of different works are kept apart.
  std::uint64_t work() const { return work_; }
  bool has_begun() const { return version_ > 0; }

 Q_SIGNALS:
  void scenario_changed();
  void evaluated();

 private:
  friend class ScenarioStep;
  friend class WorkStep;
  void set(std::shared_ptr<const Scenario> scenario);
  void take(Evaluation evaluation);

  std::shared_ptr<const Scenario> scenario_;  // shared with the steps that lead here and from here
  std::uint64_t version_ = 0;
  std::uint64_t work_ = 0, works_ = 0;  // the one at hand, and how many there were
  std::uint64_t evaluated_version_ = 0;
  std::shared_ptr<const Evaluation> evaluation_;
  QUndoStack history_;
  struct Request {
    std::shared_ptr<const Scenario> scenario;
    std::uint64_t version = 0;
    /// What was shown before: where nothing else needs it, the thread that works takes it down, not the one that
    /// paints.
    mutable std::shared_ptr<const Evaluation> former;
  };
  struct Answer {
    Evaluation evaluation;
    std::uint64_t version = 0;
  };
  Background<Request, Answer> quick_, full_;
};

}  // namespace trivium::gui
