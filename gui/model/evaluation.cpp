#include "gui/model/evaluation.h"

#include <chrono>

#include "gui/model/display_name.h"
#include "simulator/predict/predict.h"

namespace trivium::gui {
namespace {

using simulator::Granularity;

/// By segments in the order of readiness: what a control shows for a moment, while it is turned.
base::Result<simulator::Prediction> preview(const program::Job& job, const hardware::Cluster& cluster,
                                            const std::stop_token& stop) {
  auto prepared = simulator::prepare(job, cluster, {.fits = false, .ordered = false}, stop);
  if (!prepared) return prepared.error();
  auto simulated = simulator::simulate(prepared.value(), {Granularity::kSegment, true}, stop);
  if (!simulated) return simulated.error();
  return simulator::Prediction{std::move(simulated).value(), std::move(prepared).value()};
}

void fill(Evaluation& evaluation, const std::stop_token& stop) {
  const program::Job& job = evaluation.scenario.file.job;
  const hardware::Cluster& cluster = evaluation.scenario.cluster;
  const bool full = evaluation.depth == Depth::kFull;
  auto predicted = full
                       ? simulator::predict(job, cluster, {.fits = false, .simulation = {Granularity::kOp, true}}, stop)
                       : preview(job, cluster, stop);
  if (!predicted) {
    evaluation.refusal = display_name(predicted.error().message);
    return;
  }
  auto& [figures, prepared] = predicted.value();
  evaluation.memory = prepared.memory();
  if (const auto& too_big = prepared.too_big()) evaluation.overflow = too_big->reason;
  evaluation.figures = std::move(figures);
  evaluation.timeline = std::make_shared<const program::Timeline>(std::move(evaluation.figures.timeline));
  evaluation.figures.timeline = {};
  evaluation.program = prepared.shared_program();
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
