// What the simulator says of a scenario: everything the views show of one plan.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/scenario.h"
#include "program/ir/program.h"
#include "simulator/predict/simulate.h"

namespace trivium::gui {

/// How closely a plan is simulated.
enum class Depth {
  kQuick,  ///< whole segments, not ordered: what a plan control shows while it is turned
  kFull    ///< ordered and op by op: what the command line says
};

/// Immutable once made; shared between threads by pointer.
struct Evaluation {
  Scenario scenario;
  Depth depth = Depth::kQuick;
  std::string refusal;                                ///< why the plan cannot run at all; empty where it can
  std::string overflow;                               ///< why it does not fit; empty where it does
  std::shared_ptr<const program::Program> program;    ///< null with a refusal
  std::vector<simulator::StageMemory> memory;         ///< by stage; empty with a refusal
  simulator::Simulation figures;                      ///< without timeline
  std::shared_ptr<const program::Timeline> timeline;  ///< of every stage's representative rank; null with a refusal
  double seconds = 0;                                 ///< that evaluating took

  bool runs() const { return refusal.empty(); }
  bool fits() const { return runs() && overflow.empty(); }
};

/// A plan that does not fit is simulated all the same, as if memory had no end. Errors are values: `refusal`. Stopped
/// between two of its steps (lowering, ordering, simulating), it says so as a refusal.
Evaluation evaluate(const Scenario& scenario, Depth depth, const std::stop_token& stop = {});

}  // namespace trivium::gui
