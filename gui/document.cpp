#include "gui/document.h"

#include <QUndoCommand>

namespace trivium::gui {
namespace {

constexpr int kMostSteps = 1000;  // that can be undone

}  // namespace

/// From one scenario to the next, and back.
class ScenarioStep : public QUndoCommand {
 public:
  ScenarioStep(Document& document, Scenario after, const QString& words, QString field)
      : QUndoCommand(words),
        document_(document),
        before_(document.scenario_),
        after_(std::make_shared<const Scenario>(std::move(after))),
        field_(std::move(field)) {}

  void undo() override { document_.set(before_); }
  void redo() override { document_.set(after_); }
  int id() const override { return field_.isEmpty() ? -1 : 1; }
  bool mergeWith(const QUndoCommand* next) override {
    const auto* step = static_cast<const ScenarioStep*>(next);
    if (step->field_ != field_) return false;
    after_ = step->after_;
    setText(step->text());
    return true;
  }

 private:
  Document& document_;
  std::shared_ptr<const Scenario> before_, after_;
  QString field_;
};

/// From one work to another, and back.
class WorkStep : public QUndoCommand {
 public:
  WorkStep(Document& document, Scenario after, const QString& words, Document::Turns turns)
      : QUndoCommand(words),
        document_(document),
        before_(document.scenario_),
        after_(std::make_shared<const Scenario>(std::move(after))),
        work_before_(document.work_),
        work_after_(++document.works_),
        turns_(std::move(turns)) {}

  void undo() override { turn(work_before_, before_, false); }
  void redo() override { turn(work_after_, after_, true); }

 private:
  void turn(std::uint64_t work, const std::shared_ptr<const Scenario>& scenario, bool forth) {
    turns_.before(forth);
    document_.work_ = work;
    document_.set(scenario);
    turns_.after(forth);
  }

  Document& document_;
  std::shared_ptr<const Scenario> before_, after_;
  std::uint64_t work_before_, work_after_;
  Document::Turns turns_;
};

Document::Document(QObject* parent)
    : QObject(parent),
      scenario_(std::make_shared<const Scenario>()),
      quick_(
          [](const Request& request, const std::stop_token& stop) {
            return Answer{evaluate(*request.scenario, Depth::kQuick, stop), request.version};
          },
          [this](Answer answer) {
            evaluated_version_ = answer.version;
            std::shared_ptr<const Evaluation> former = evaluation_;
            take(std::move(answer.evaluation));
            // Not before: the quick answer has the processor to itself.
            if (version_ == answer.version) full_.post({scenario_, version_, std::move(former)});
          }),
      full_(
          [](const Request& request, const std::stop_token& stop) {
            request.former.reset();  // before the next needs room
            return Answer{evaluate(*request.scenario, Depth::kFull, stop), request.version};
          },
          [this](Answer answer) {
            evaluated_version_ = answer.version;
            take(std::move(answer.evaluation));
          }) {
  history_.setUndoLimit(kMostSteps);
}

bool Document::settled() const { return is_current() && evaluation_->depth == Depth::kFull; }

void Document::edit(Scenario scenario, const QString& words, const QString& field) {
  history_.push(new ScenarioStep(*this, std::move(scenario), words, field));
}

void Document::reset(Scenario scenario) {
  history_.clear();
  work_ = ++works_;
  set(std::make_shared<const Scenario>(std::move(scenario)));
}

void Document::replace(Scenario scenario, const QString& words, Turns turns) {
  history_.push(new WorkStep(*this, std::move(scenario), words, std::move(turns)));
}

void Document::set(std::shared_ptr<const Scenario> scenario) {
  scenario_ = std::move(scenario);
  ++version_;
  full_.cancel();
  quick_.post({scenario_, version_, nullptr});
  Q_EMIT scenario_changed();
}

void Document::take(Evaluation evaluation) {
  evaluation_ = std::make_shared<const Evaluation>(std::move(evaluation));
  Q_EMIT evaluated();
}

}  // namespace trivium::gui
