// How long a person waits: from a knob to its figures, and for a picture of a thousand devices.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QPixmap>

#include "gui/model/evaluation.h"
#include "gui/model/knobs.h"
#include "gui/model/memory_curve.h"
#include "gui/views/cluster_canvas.h"

namespace trivium::gui {
namespace {

/// A knob of GPT-3 175B on 1,024 GPUs turned to and fro, figures and the memory curve of a stage taken.
void BM_KnobToFigures(benchmark::State& state) {
  Scenario scenario = example_scenario();
  bool full = true;
  for (auto _ : state) {
    scenario = turn(std::move(scenario), "recompute", full ? "selective" : "full", true);
    full = !full;
    const Evaluation evaluation = evaluate(scenario, Depth::kQuick);
    benchmark::DoNotOptimize(memory_curve(evaluation, 0));
  }
}
BENCHMARK(BM_KnobToFigures)->Unit(benchmark::kMillisecond);

/// The cluster of 1,024 GPUs painted at 1600 x 900.
void BM_ClusterPaint(benchmark::State& state) {
  ClusterCanvas canvas;
  canvas.resize(1600, 900);
  const Scenario scenario = example_scenario();
  canvas.set_cluster(scenario.cluster);
  canvas.set_evaluation(std::make_shared<const Evaluation>(evaluate(scenario, Depth::kQuick)));
  canvas.fit();
  QPixmap picture(canvas.size());
  for (auto _ : state) canvas.render(&picture);
}
BENCHMARK(BM_ClusterPaint)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trivium::gui

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
