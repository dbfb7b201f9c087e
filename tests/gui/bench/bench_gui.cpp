// How long a person waits: from a plan control to the picture, and from picture to picture while a cluster is panned.
// The goals: 100 ms for the one (GPT-3 175B on 1,024 GPUs), a 60th of a second for the other.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QKeyEvent>
#include <QTimer>
#include <cstdlib>
#include <filesystem>

#include "gui/model/evaluation.h"
#include "gui/model/plan_controls.h"
#include "gui/views/cluster_canvas.h"
#include "gui/window/main_window.h"

namespace trivium::gui {
namespace {

constexpr int kPatienceMs = 60'000;

void wait_until(const std::function<bool()>& done) {
  QElapsedTimer clock;
  clock.start();
  QTimer heartbeat;  // sleeps as the program does, but never for good
  heartbeat.start(1);
  while (!done() && clock.elapsed() < kPatienceMs) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

/// The example in the split that a search finds for it: interleaved over twelve virtual stages, 9,216 passes of chunks.
Scenario interleaved() {
  Scenario scenario = example_scenario();
  program::Plan& plan = scenario.file.job.plan;
  plan.tensor = 4;
  plan.sequence_parallel = true;
  plan.pipeline = 8;
  plan.virtual_stages = 12;
  plan.schedule = program::Schedule::kInterleaved;
  plan.data = 32;
  plan.zero_stage = 1;
  plan.recompute = program::Recompute::kNone;
  return scenario;
}

/// A plan control turned to and fro in a window that shows `view`: until the figures of the plan have come and the
/// view, its spans laid out, is painted. That the plan is simulated op by op as well is waited for between two turns.
void plan_control_to_picture(benchmark::State& state, MainWindow::View view, const Scenario& scenario) {
  MainWindow window;
  window.resize(1600, 900);
  window.begin_example(scenario);
  window.show_view(view);
  window.show();
  QComboBox& plan_control = window.plan_controls().plan_control("recompute");
  bool full = true;
  for (auto _ : state) {
    wait_until([&] { return window.view_is_ready(); });
    full = !full;
    QElapsedTimer clock;
    clock.start();
    plan_control.setCurrentText(full ? "full" : "selective");
    const program::Recompute wanted = window.document().scenario().file.job.plan.recompute;
    wait_until([&] {
      const auto& evaluation = window.document().evaluation();
      return evaluation->scenario.file.job.plan.recompute == wanted && !window.timeline().is_busy();
    });
    window.widget_of(view).repaint();
    state.SetIterationTime(static_cast<double>(clock.nsecsElapsed()) * 1e-9);
  }
  wait_until([&] { return window.view_is_ready(); });
}

/// The figures alone.
void plan_control_to_figures(benchmark::State& state) {
  Scenario scenario = example_scenario();
  bool full = true;
  for (auto _ : state) {
    full = !full;
    scenario = turn(std::move(scenario), "recompute", full ? "full" : "selective", true);
    benchmark::DoNotOptimize(evaluate(scenario, Depth::kQuick));
  }
}

/// The cluster of 1,024 GPUs panned by the arrow keys and painted, seen whole and two steps of the wheel nearer.
void pan_cluster(benchmark::State& state, QSize size, int nearer) {
  ClusterCanvas canvas;
  canvas.resize(size);
  const Scenario scenario = example_scenario();
  canvas.set_cluster(scenario.cluster);
  canvas.set_evaluation(std::make_shared<const Evaluation>(evaluate(scenario, Depth::kQuick)));
  canvas.show();
  QApplication::processEvents();  // the window is there from now on
  canvas.fit();
  const auto press = [&](Qt::Key key) {
    QKeyEvent event(QEvent::KeyPress, key, Qt::NoModifier);
    QApplication::sendEvent(&canvas, &event);
  };
  for (int i = 0; i < nearer; ++i) press(Qt::Key_Plus);
  canvas.select(0);
  bool left = true;
  for (auto _ : state) {
    press(left ? Qt::Key_Left : Qt::Key_Right);
    left = !left;
    canvas.repaint();
  }
}

}  // namespace
}  // namespace trivium::gui

int main(int argc, char** argv) {
  using namespace trivium::gui;
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  // What the windows would keep is kept elsewhere.
  const std::string home = (std::filesystem::temp_directory_path() / "trivium-bench-gui").string();
  for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME"}) setenv(name, home.c_str(), 1);
  const QApplication application(argc, argv);
  for (const MainWindow::View view : {MainWindow::kCluster, MainWindow::kTimeline, MainWindow::kMemory}) {
    const std::string name = "plan_control_to_picture/" + MainWindow::view_names()[view].toStdString();
    for (const auto& [plan, scenario] :
         {std::pair("TP8_PP16_DP8", example_scenario()), std::pair("TP4_PP8x12_DP32", interleaved())}) {
      benchmark::RegisterBenchmark((name + "/" + plan).c_str(), plan_control_to_picture, view, scenario)
          ->UseManualTime()
          ->Iterations(11)
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RegisterBenchmark("plan_control_to_figures", plan_control_to_figures)->Unit(benchmark::kMillisecond);
  for (const int nearer : {0, 3, 6}) {
    for (const QSize size : {QSize(1600, 900), QSize(2560, 1440)}) {
      const std::string name = "pan_cluster/" + std::to_string(size.width()) + "/nearer:" + std::to_string(nearer);
      benchmark::RegisterBenchmark(name.c_str(), pan_cluster, size, nearer)->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(home);
}
