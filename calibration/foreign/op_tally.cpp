#include "calibration/foreign/op_tally.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "calibration/measurements/statistics.h"

namespace trivium::calibration::foreign {
namespace {

using imports::Kernel;

constexpr std::size_t kExamples = 3;

std::string key_of(const RankRun& run, const Kernel& kernel) {
  const imports::KernelTrace& trace = *run.trace;
  std::string key = trace.name_of(kernel);
  std::int32_t at = kernel.launched_by;
  while (at >= 0 && trace.operators[static_cast<std::size_t>(at)].shapes < 0) {
    at = trace.operators[static_cast<std::size_t>(at)].parent;
  }
  if (at < 0) return key;
  const imports::Operator& op = trace.operators[static_cast<std::size_t>(at)];
  return key + fmt::format(" {}", trace.shapes[static_cast<std::size_t>(op.shapes)]);
}

}  // namespace

double median_of(std::vector<double> values) { return values.empty() ? 0 : median(std::move(values)); }

double Tally::count() const { return median_of(counts); }

double Tally::each_s() const {
  if (calls.empty()) return 0;
  std::vector<double> sorted = calls;
  std::ranges::sort(sorted);
  const std::size_t from = sorted.size() / 5, to = std::max(from + 1, sorted.size() - sorted.size() / 5);
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += sorted[i];
  return sum / static_cast<double>(to - from);
}

OpTally tally_of(const RankRun& run) {
  OpTally tally;
  std::map<std::pair<std::int32_t, std::int32_t>, Tally*> known;  // by name and by what launched it, of same shapes
  std::map<std::int32_t, std::pair<Tally*, std::size_t>> open;    // a call by its operator
  for (std::size_t i = 0; i < run.matches.size(); ++i) {
    const Match& match = run.matches[i];
    if (match.kind != Match::Kind::kOp && match.kind != Match::Kind::kUnmatched) continue;
    const Kernel& kernel = run.trace->kernels[i];
    const int step = run.step_at(kernel.start_s);
    if (step < 0) continue;
    if (run.trace->on_cores && !kernel.begins) {
      if (const auto call = open.find(kernel.launched_by); call != open.end()) {
        call->second.first->calls[call->second.second] += kernel.seconds;
        call->second.first->seconds[static_cast<std::size_t>(step)] += kernel.seconds;
      }
      continue;
    }
    const std::int32_t shapes =
        kernel.launched_by < 0 ? -1 : run.trace->operators[static_cast<std::size_t>(kernel.launched_by)].shapes;
    Tally*& of = known[{kernel.name, shapes < 0 ? -2 - kernel.launched_by : shapes}];
    if (of == nullptr) of = &tally[key_of(run, kernel)];
    if (of->counts.empty()) {
      of->counts.resize(run.steps.size());
      of->seconds.resize(run.steps.size());
      of->op = match.op.empty() ? run.trace->name_of(kernel) : match.op;
      of->m = kernel.m, of->n = kernel.n, of->k = kernel.k;
    }
    of->backward = of->backward || match.backward;
    of->counts[static_cast<std::size_t>(step)] += 1;
    of->seconds[static_cast<std::size_t>(step)] += kernel.seconds;
    if (of->first.size() < kExamples) of->first.push_back({kernel.start_s, kernel.start_s + kernel.seconds});
    of->calls.push_back(kernel.seconds);
    open[kernel.launched_by] = {of, of->calls.size() - 1};
  }
  return tally;
}

}  // namespace trivium::calibration::foreign
