#include "simulator/predict/prepare.h"

#include <utility>
#include <variant>

#include "simulator/cost/supported.h"

namespace trivium::simulator {
namespace {

base::Error refusal(const program::Infeasible& why) { return {base::ErrorKind::kNoPlan, why.reason, why.rule}; }

}  // namespace

base::Result<Prepared> prepare(const program::Job& job, const hardware::Cluster& cluster, const PrepareOptions& options,
                               const std::stop_token& stop) {
  if (stop.stop_requested()) return cancelled();
  if (const auto no = program::check(job)) return refusal(*no);
  if (const auto no = unsupported_by(job, cluster)) return refusal(*no);
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) return refusal(*no);
  return prepare(std::get<program::Program>(std::move(lowered)), cluster, options, stop);
}

base::Result<Prepared> prepare(program::Program lowered, const hardware::Cluster& cluster,
                               const PrepareOptions& options, const std::stop_token& stop) {
  if (stop.stop_requested()) return cancelled();
  const auto program = std::make_shared<program::Program>(std::move(lowered));
  const auto placed = std::make_shared<const PlacedCluster>(*program, cluster);
  Prepared prepared;
  prepared.program_ = program;
  prepared.memory_ = memory_of(*program, *placed);
  prepared.too_big_ = out_of_memory(prepared.memory_);
  if (prepared.too_big_ && options.fits) return refusal(*prepared.too_big_);
  prepared.costed_ = std::make_shared<const CostedProgram>(cost(*program, placed));
  if (const auto no = too_long(*prepared.costed_)) return refusal(*no);
  if (!options.ordered) return prepared;
  for (program::Role& role : program->roles) role.order.clear();
  auto ready_first = list_schedule(*prepared.costed_, Granularity::kSegment, stop);
  if (!ready_first) return ready_first.error();
  prepared = in_order_of(std::move(prepared), ready_first.value());
  return options.verified ? verify(std::move(prepared)) : prepared;
}

Prepared in_order_of(Prepared unordered, ListSchedule& ready_first) {
  issue_in_order_of(*unordered.program_, ready_first);
  return unordered;
}

base::Result<Prepared> verify(Prepared ordered) {
  auto verified = program::VerifiedProgram::of(ordered.program_);
  if (!verified) return verified.error();
  ordered.verified_ = std::move(verified).value();
  return ordered;
}

}  // namespace trivium::simulator
