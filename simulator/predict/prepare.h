// From a job to a Program that may run: the one way, with the checks in one order.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "hardware_profiles/hardware.h"
#include "program/lower/lower.h"
#include "program/verify/verified.h"
#include "simulator/cost/costed_program.h"
#include "simulator/memory/memory.h"
#include "simulator/placement/placed_cluster.h"
#include "simulator/schedule/engine.h"

namespace trivium::simulator {

struct PrepareOptions {
  bool fits = true;      ///< refuse what does not fit the devices or their hosts
  bool ordered = true;   ///< false: communication stays in the order that the Program has, or in that of readiness
  bool verified = true;  ///< false: for the thousands of plans that a search looks at; its answers are verified
};

/// A job that passed every check: lowered, placed on a cluster, its ops costed there, its communication in order,
/// verified. Only prepare() makes one. Copies share the Program and its costs. The cluster must outlive it.
class Prepared {
 public:
  const program::Program& program() const { return *program_; }
  std::shared_ptr<const program::Program> shared_program() const { return program_; }
  /// What a backend runs. Precondition: PrepareOptions::verified and ordered.
  const program::VerifiedProgram& verified() const { return verified_.value(); }
  const CostedProgram& costed() const { return *costed_; }
  const hardware::Cluster& cluster() const { return costed_->placed->given(); }
  const std::vector<StageMemory>& memory() const { return memory_; }  ///< by role
  /// Why it does not fit, where that was not asked for.
  const std::optional<program::Infeasible>& too_big() const { return too_big_; }

 private:
  friend base::Result<Prepared> prepare(program::Program lowered, const hardware::Cluster& cluster,
                                        const PrepareOptions& options, const std::stop_token& stop);
  friend Prepared in_order_of(Prepared unordered, ListSchedule& ready_first);
  friend base::Result<Prepared> verify(Prepared ordered);
  Prepared() = default;

  std::shared_ptr<program::Program> program_;
  std::optional<program::VerifiedProgram> verified_;
  std::shared_ptr<const CostedProgram> costed_;
  std::vector<StageMemory> memory_;
  std::optional<program::Infeasible> too_big_;
};

/// Errors: kNoPlan with the rule where the plan cannot be on the cluster ("memory": it does not fit); kRuntime where
/// the Program deadlocks or is not sound; kInterrupted where `stop` was asked for.
base::Result<Prepared> prepare(const program::Job& job, const hardware::Cluster& cluster,
                               const PrepareOptions& options = {}, const std::stop_token& stop = {});

/// The same of a job that was lowered already. Precondition: it can be on the cluster.
base::Result<Prepared> prepare(program::Program lowered, const hardware::Cluster& cluster,
                               const PrepareOptions& options = {}, const std::stop_token& stop = {});

/// The same with its communication in the order in which list_schedule() found it ready, by segments. Precondition:
/// nothing else shares the Program.
Prepared in_order_of(Prepared unordered, ListSchedule& ready_first);

/// The same, checked by the verifier. Errors: kRuntime with the faults.
base::Result<Prepared> verify(Prepared ordered);

}  // namespace trivium::simulator
