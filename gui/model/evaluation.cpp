#include "gui/model/evaluation.h"

#include <chrono>

#include "gui/model/display_name.h"
#include "simulator/prepare.h"
#include "simulator/simulate.h"

namespace trivium::gui {
namespace {

void fill(Evaluation& evaluation, const std::stop_token& stop) {
  const program::Job& job = evaluation.scenario.file.job;
  const hardware::Cluster& cluster = evaluation.scenario.cluster;
  const bool full = evaluation.depth == Depth::kFull;
  const auto prepared = simulator::prepare(job, cluster, {.fits = false, .ordered = full}, stop);
  if (!prepared) {
    evaluation.refusal = display_name(prepared.error().message);
    return;
  }
  const simulator::SimulationOptions how{full ? simulator::Granularity::kOp : simulator::Granularity::kSegment, true};
  auto simulated = simulator::simulate(prepared.value(), how, stop);
  if (!simulated) {
    evaluation.refusal = display_name(simulated.error().message);
    return;
  }
  evaluation.memory = prepared.value().memory();
  if (const auto& too_big = prepared.value().too_big()) evaluation.overflow = too_big->reason;
  evaluation.figures = std::move(simulated).value();
  evaluation.timeline = std::make_shared<const program::Timeline>(std::move(evaluation.figures.timeline));
  evaluation.figures.timeline = {};
  evaluation.program = prepared.value().shared_program();
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
