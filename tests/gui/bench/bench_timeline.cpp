// How long a timeline takes to repaint at every zoom, and a trace to load. The goals: a million spans in 16 ms, ten
// million in 33 ms, a trace of a million spans loaded in a second.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <QApplication>
#include <filesystem>
#include <fstream>
#include <map>

#include "gui/timeline/spans/trace_file.h"
#include "gui/timeline/timeline_canvas.h"
#include "tests/gui/timeline/made_spans.h"

namespace {

using namespace trivium::gui;

constexpr int kLanes = 64;

/// Spans on 64 lanes of 32 devices, or (`wide`) on 2,048 lanes of 1,024 devices.
std::shared_ptr<const SpanStore> spans(std::int64_t count, bool wide) {
  static std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const SpanStore>> made;
  auto& store = made[{count, wide}];
  if (!store) {
    made.clear();  // ten million take half a gigabyte
    MadeSpans how;
    how.devices_per_node = 8;
    how.nodes = wide ? 128 : kLanes / 16;
    how.spans_per_lane = static_cast<int>(count / (how.nodes * how.devices_per_node * 2));
    how.mean_ps = 1'000'000;
    return made[{count, wide}] = make_spans(how);
  }
  return store;
}

/// What the wheel does to a window: another stretch of time, drawn anew.
void repaint(benchmark::State& state, QSize size, bool wide) {
  const auto store = spans(state.range(0), wide);
  const std::int64_t zoom = state.range(1);
  TimelineCanvas canvas;
  canvas.resize(size);
  canvas.show();
  canvas.set_timelines({{store, std::make_shared<CriticalPath>(critical_path(*store)), nullptr}}, {"bench"});
  canvas.layout_of_rows().set_all_folded(RowKind::kNode, wide);
  canvas.layout_of_rows().set_all_folded(RowKind::kDevice, wide);
  canvas.rows_changed();
  QApplication::processEvents();  // the window is there from now on
  const std::int64_t length = (store->end() - store->begin()) / zoom, begin = store->end() / 3;
  std::int64_t shift = 0;
  for (auto _ : state) {
    shift = (shift + length / 50) % length;
    const std::int64_t at = zoom == 1 ? shift / 1000 : begin + shift;
    canvas.show_time(at, at + length);
    canvas.viewport()->repaint();
  }
  state.counters["rows"] = static_cast<double>(canvas.layout_of_rows().rows().size());
}

void load_trace(benchmark::State& state) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "trivium-bench-trace.json";
  const std::int64_t count = state.range(0);
  {
    std::ofstream file(path);
    file << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (std::int64_t i = 0; i < count; ++i) {  // as `trivium simulate --trace` writes them
      file
          << fmt::format(
                 R"({{"ph":"X","name":"backward mb{} layer {} matmul wgrad","cat":"matmul_wgrad","pid":{},"tid":0,"ts":{}.000123,"dur":5.250000,"args":{{"step":0,"task":{},"op":{},"wait_us":0.000000}}}})",
                 i % 192, i % 96, i % 16, i / 16 * 6, i % 1000, i % 40)
          << (i + 1 < count ? ",\n" : "\n");
    }
    file << "]}\n";
  }
  for (auto _ : state) benchmark::DoNotOptimize(read_trace(path));
  state.counters["MB"] = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  std::filesystem::remove(path);
}

void find_path(benchmark::State& state) {
  const auto store = spans(state.range(0), false);
  for (auto _ : state) benchmark::DoNotOptimize(critical_path(*store));
}

void zooms(benchmark::internal::Benchmark* bench, std::int64_t count) {
  for (const std::int64_t zoom : {1, 3, 10, 30, 100, 1000, 10'000, 100'000}) bench->Args({count, zoom});
  bench->ArgNames({"spans", "zoom"})->Unit(benchmark::kMillisecond)->MinTime(0.3);
}

}  // namespace

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  const QSize usual(1600, 900), large(2560, 1440);
  for (const std::int64_t count : {1'000'000, 10'000'000}) {
    zooms(benchmark::RegisterBenchmark("repaint/1600x900", repaint, usual, false), count);
    zooms(benchmark::RegisterBenchmark("repaint/2560x1440", repaint, large, false), count);
    zooms(benchmark::RegisterBenchmark("repaint/1600x900/1024_devices_folded", repaint, usual, true), count);
    zooms(benchmark::RegisterBenchmark("repaint/2560x1440/1024_devices_folded", repaint, large, true), count);
  }
  benchmark::RegisterBenchmark("load_trace", load_trace)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("critical_path", find_path)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
