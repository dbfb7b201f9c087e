#include "calibration/fit/calibrate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "calibration/fit/fit_parts.h"
#include "calibration/fit/gpu_models.h"
#include "program/lower/lower.h"

namespace trivium::calibration {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw base::Failure(base::ErrorKind::kInput, "calibrate: " + what);
}

/// Measurements of GPUs say nothing about cores.
void check_kind(const hardware::Node& base, const Measurements& measurements) {
  if (base.device.kind == hardware::DeviceKind::kGpu) return;
  const std::string remedy = " says nothing about " + base.device.name + "; give --base a profile of its machine";
  if (!measurements.collectives.empty()) refuse(measurements.collectives.front().file + " (nccl-tests)" + remedy);
  if (!measurements.topologies.empty()) refuse(measurements.topologies.front().file + " (nvidia-smi)" + remedy);
  if (!measurements.traces.empty()) refuse(measurements.traces.front().trace.file + remedy);
}

/// Measurements of one GPU say nothing about another; names that tell no model pass.
void check_model(const hardware::Node& base, const std::string& device, const std::string& file) {
  const GpuModel *measured = gpu_model_in(device), *fitted = gpu_model_in(base.device.name);
  if (measured == nullptr || fitted == nullptr || measured == fitted) return;
  refuse(fmt::format("{} was measured on {}, which says nothing about {}; give --base a profile of its machine", file,
                     device, base.device.name));
}

std::vector<program::RunRecord> with_a_core_each(Fit& fit, std::span<const program::RunRecord> records) {
  std::vector<program::RunRecord> kept;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const int ranks = records[i].job.plan.ranks();
    if (fit.node.device.kind == hardware::DeviceKind::kCpu && ranks > fit.node.devices) {
      fit.report.push_back(
          fmt::format("run {}: passed over: {} ranks took turns on {} cores", i + 1, ranks, fit.node.devices));
    } else {
      kept.push_back(records[i]);
    }
  }
  return kept;
}

}  // namespace

void note(Fit& fit, FittedNumber number) {
  if (number.determined) fit.node.sources[number.pointer] = number.from;
  fit.numbers.push_back(std::move(number));
}

Fit calibrate(const hardware::Node& base, const Measurements& measurements) {
  if (measurements.empty()) refuse("nothing to learn from; give at least one run record or measurement");
  check_kind(base, measurements);
  for (const imports::CollectiveTimes& each : measurements.collectives) check_model(base, each.device, each.file);
  for (const TracedJob& each : measurements.traces) check_model(base, each.trace.device, each.trace.file);
  Fit fit;
  fit.node = base;
  for (const imports::GpuTopology& topology : measurements.topologies) fit_topology(fit, topology);
  for (const imports::CollectiveTimes& times : measurements.collectives) {
    fit_collectives(fit, times.times,
                    fmt::format("trivium calibrate: nccl-tests in {}{}{}", times.file,
                                times.version.empty() ? "" : ", ", times.version));
    if (times.is_truncated) fit.report.push_back(times.file + ": ends early; what came before is used");
  }
  for (const TracedJob& traced : measurements.traces) fit_kernels(fit, traced);
  const std::vector<program::RunRecord> records = with_a_core_each(fit, measurements.records);
  if (!measurements.records.empty() && records.empty() && measurements.jobs.empty()) {
    refuse("every run has more ranks than the profile has cores; give one with a core for each rank");
  }
  if (!records.empty()) fit_runs(fit, records);
  if (!measurements.jobs.empty()) fit_jobs(fit, measurements.jobs);
  return fit;
}

Fit calibrate(const hardware::Node& base, std::span<const program::RunRecord> records) {
  Measurements measurements;
  measurements.records.assign(records.begin(), records.end());
  return calibrate(base, measurements);
}

std::vector<std::string> extrapolations(const Fit& fit, const program::Job& job) {
  constexpr double kFar = 2;
  auto lowered = program::lower(job);
  const auto* program = std::get_if<program::Program>(&lowered);
  if (program == nullptr) return {};
  std::map<program::RateKind, Reach> needed;
  for (const program::Body& body : program->bodies) {
    for (const program::Op& op : body.ops) {
      Reach& most = needed[program::rate_kind_of(op)];
      most.flops = std::max(most.flops, op.flops);
      most.bytes = std::max(most.bytes, op.bytes);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [kind, known] : fit.reach) {
    const auto found = needed.find(kind);
    if (found == needed.end()) continue;
    const double flops = known.flops > 0 ? found->second.flops / known.flops : 0;
    const double bytes = known.bytes > 0 ? found->second.bytes / known.bytes : 0;
    if (std::max(flops, bytes) <= kFar) continue;
    sentences.push_back(
        fmt::format("{}: the plan's largest is {:.1f} times the largest that was measured; its time is "
                    "extrapolated",
                    program::name_of(kind), std::max(flops, bytes)));
  }
  return sentences;
}

}  // namespace trivium::calibration
