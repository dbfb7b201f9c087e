#include "calibration/foreign/foreign_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/refuse.h"
#include "calibration/measurements/chrome_events.h"
#include "calibration/measurements/gzip.h"
#include "calibration/measurements/kineto.h"
#include "calibration/measurements/nsight.h"
#include "calibration/measurements/trivium_trace.h"

namespace trivium::calibration::foreign {
namespace {

using base::refuse;
using imports::KernelTrace;

KernelTrace read_chrome(const std::string& text, const std::string& path) {
  const imports::ChromeTrace trace = imports::read_chrome_trace(text, path);
  if (imports::is_run_trace(trace)) refuse(path, "is a trace of our own run; `trivium validate` compares those");
  try {
    return imports::read_kineto(trace, imports::OnCores::kTaken);
  } catch (const nlohmann::json::exception&) {
    refuse(path, "a member has another type than PyTorch's profiler gives it; was it edited?");
  }
}

void read_one(const std::string& path, ForeignRun& run) {
  std::string text = base::read_file(path);
  const bool packed = imports::is_gzip(text);
  if (packed) text = imports::unpacked(text, path);
  const imports::FileText content(text);
  if (content.is_empty()) refuse(path, "is empty");
  if (imports::is_chrome_trace(content)) {
    run.traces.push_back(read_chrome(text, path));
  } else if (imports::is_nsight(content)) {
    if (packed) refuse(path, "is compressed; gunzip it first");
    for (KernelTrace& trace : imports::read_nsight_processes(path)) run.traces.push_back(std::move(trace));
  } else if (imports::is_training_log(content)) {
    run.logs.push_back(imports::read_training_log(text, path));
  } else {
    refuse(path,
           "is no trace of PyTorch's profiler (\"traceEvents\"), no export of Nsight Systems (SQLite) and no log of "
           "Megatron-LM or DeepSpeed");
  }
}

void sort_by_rank(std::vector<KernelTrace>& traces) {
  std::set<int> ranks;
  for (const KernelTrace& trace : traces) {
    if (!trace.rank) return;
    if (!ranks.insert(*trace.rank).second)
      refuse(trace.file, fmt::format("is of rank {}, as another trace is", *trace.rank));
  }
  std::sort(traces.begin(), traces.end(), [](const KernelTrace& a, const KernelTrace& b) { return *a.rank < *b.rank; });
}

}  // namespace

ForeignRun read_foreign(const std::vector<std::string>& files) {
  ForeignRun run;
  for (const std::string& file : files) read_one(file, run);
  if (run.traces.empty())
    refuse(files.front(), "is a log: it tells how long iterations took, not what ran; give a trace");
  sort_by_rank(run.traces);
  return run;
}

}  // namespace trivium::calibration::foreign
