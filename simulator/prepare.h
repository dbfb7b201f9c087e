// From a job to a Program that may run: the one way, with the checks in one order.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"
#include "simulator/memory/memory.h"

namespace trivium::simulator {

/// A job that passed every check: lowered, its communication in order, verified.
struct Prepared {
  program::Program program;
  std::vector<StageMemory> memory;
  std::optional<program::Infeasible> too_big;  ///< why it does not fit, where that was not asked for
};

struct PrepareOptions {
  bool fits = true;      ///< refuse what does not fit the devices or their hosts
  bool ordered = true;   ///< false: communication in the order of readiness, for plays by segments
  bool verified = true;  ///< false: for the thousands of plans that a search looks at; its answers are verified
};

/// Errors: kNoPlan with the rule where the plan cannot be on the cluster ("memory": it does not fit); kRuntime where
/// the Program deadlocks or is not sound; kInterrupted where `stop` was asked for.
base::Result<Prepared> prepare(const program::Job& job, const hardware::Cluster& cluster,
                               const PrepareOptions& options = {}, const std::stop_token& stop = {});

/// The same of a job that was lowered already and can be on the cluster.
base::Result<Prepared> prepare(program::Program lowered, const hardware::Cluster& cluster,
                               const PrepareOptions& options = {}, const std::stop_token& stop = {});

}  // namespace trivium::simulator
