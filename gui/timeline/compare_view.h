// Predicted above measured.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "gui/timeline/named_timeline.h"
#include "hardware_profiles/hardware.h"
#include "program/plan_file.h"
#include "program/run_record.h"

namespace trivium::gui {

/// A plan, what was predicted of it and what its run measured.
struct Comparison {
  program::PlanFile plan;
  hardware::Cluster cluster;
  NamedTimeline predicted;
  std::shared_ptr<const program::RunRecord> record;
};

/// Shows a comparison; without one, a hint what to do. Lives on the GUI thread.
class CompareView : public QWidget {
 public:
  explicit CompareView(QWidget* parent = nullptr);

  void set_comparison(std::optional<Comparison> comparison);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::optional<Comparison> comparison_;
};

}  // namespace trivium::gui
