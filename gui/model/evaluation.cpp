#include "gui/model/evaluation.h"

#include <chrono>

#include "gui/model/spoken.h"
#include "program/lower/lower.h"
#include "simulator/stoppable.h"

namespace trivium::gui {
namespace {

void fill(Evaluation& evaluation, const std::stop_token& stop) {
  const program::Job& job = evaluation.scenario.file.job;
  const hardware::Cluster& cluster = evaluation.scenario.cluster;
  const auto checked = program::check(job);
  if (const auto* no = std::get_if<program::Infeasible>(&checked)) {
    evaluation.refusal = spoken(no->reason);
    return;
  }
  if (const auto no = simulator::unsupported_by(job, cluster)) {
    evaluation.refusal = spoken(no->reason);
    return;
  }
  auto lowered = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) {
    evaluation.refusal = spoken(no->reason);
    return;
  }
  auto program = std::get<program::Program>(std::move(lowered));
  const bool full = evaluation.depth == Depth::kFull;
  if (full) {
    auto ordered = simulator::order(std::move(program), cluster, stop);
    if (!ordered) {
      evaluation.refusal = spoken(ordered.error().message);
      return;
    }
    program = std::move(ordered).value();
  }
  const simulator::SimulationOptions how{full ? simulator::Granularity::kOp : simulator::Granularity::kSegment, true};
  auto simulated = simulator::simulate(program, cluster, how, stop);
  if (!simulated) {
    evaluation.refusal = spoken(simulated.error().message);
    return;
  }
  evaluation.memory = simulator::memory_of(program, cluster);
  if (const auto no = simulator::out_of_memory(evaluation.memory)) evaluation.overflow = no->reason;
  evaluation.figures = std::move(simulated).value();
  evaluation.timeline = std::make_shared<const program::Timeline>(std::move(evaluation.figures.timeline));
  evaluation.figures.timeline = {};
  evaluation.program = std::make_shared<const program::Program>(std::move(program));
}

}  // namespace

Evaluation evaluate(const Scenario& scenario, Depth depth, const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  Evaluation evaluation;
  evaluation.scenario = scenario;
  evaluation.depth = depth;
  fill(evaluation, stop);
  evaluation.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return evaluation;
}

}  // namespace trivium::gui
