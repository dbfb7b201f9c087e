#include "calibration/foreign/long_gaps.h"

#include <algorithm>
#include <optional>

#include "calibration/foreign/meaning.h"

namespace trivium::calibration::foreign {
namespace {

constexpr double kLongShare = 0.01, kLongSeconds = 1e-3;

/// When an iteration's model begins and ends to work, and its optimizer.
struct Landmarks {
  double model_begin_s, model_end_s, optimizer_end_s;
};

bool is_model_work(const Match& match) {
  return match.kind == Match::Kind::kOp && (is_product(match.op) || match.op.starts_with("embedding") ||
                                            match.op.starts_with("attention") || match.op.starts_with("norm"));
}

Landmarks landmarks_of(const RankRun& run, const std::vector<std::size_t>& kernels, const TimeSpan& step) {
  Landmarks marks{step.end_s, step.begin_s, step.begin_s};
  for (const std::size_t i : kernels) {
    const imports::Kernel& kernel = run.trace->kernels[i];
    const Match& match = run.matches[i];
    const double end = kernel.start_s + kernel.seconds;
    if (match.op == "adamw" && match.kind == Match::Kind::kOp)
      marks.optimizer_end_s = std::max(marks.optimizer_end_s, end);
    if (!is_model_work(match) && match.kind != Match::Kind::kCollective) continue;
    marks.model_begin_s = std::min(marks.model_begin_s, kernel.start_s);
    if (is_model_work(match)) marks.model_end_s = std::max(marks.model_end_s, end);
  }
  return marks;
}

/// The innermost range of the trainer around a gap that is not an iteration.
std::string range_around(const RankRun& run, const TimeSpan& gap) {
  const imports::Operator* innermost = nullptr;
  for (const imports::Operator& op : run.trace->operators) {
    if (!op.is_range || op.is_collective || op.begin_s > gap.begin_s + 1e-6 || op.end_s < gap.end_s - 1e-6) continue;
    if (run.trace->name_of(op).starts_with("ProfilerStep")) continue;
    if (innermost == nullptr || op.end_s - op.begin_s < innermost->end_s - innermost->begin_s) innermost = &op;
  }
  return innermost == nullptr ? "" : run.trace->name_of(*innermost);
}

}  // namespace

std::vector<Gap> long_gaps_of(const RankRun& run, const Intervals& gaps) {
  std::vector<std::vector<std::size_t>> kernels(run.steps.size());
  for (std::size_t i = 0; i < run.matches.size(); ++i) {
    const int step = run.step_at(run.trace->kernels[i].start_s);
    if (step >= 0) kernels[static_cast<std::size_t>(step)].push_back(i);
  }
  std::vector<Landmarks> marks;
  for (std::size_t i = 0; i < run.steps.size(); ++i) marks.push_back(landmarks_of(run, kernels[i], run.steps[i]));
  std::vector<Gap> list;
  for (const TimeSpan& gap : gaps.spans()) {
    const int step = run.step_at(gap.begin_s);
    if (step < 0) continue;
    const auto at = static_cast<std::size_t>(step);
    if (gap.seconds() < std::max(kLongSeconds, kLongShare * run.steps[at].seconds())) continue;
    Gap each{step, gap, Gap::Place::kWithin, range_around(run, gap)};
    const double middle = (gap.begin_s + gap.end_s) / 2;
    const double optimized = std::max(marks[at].optimizer_end_s, marks[at].model_end_s);
    if (middle <= marks[at].model_begin_s) each.place = Gap::Place::kBeforeForward;
    if (middle >= optimized) each.place = Gap::Place::kAfterOptimizer;
    list.push_back(std::move(each));
  }
  return list;
}

}  // namespace trivium::calibration::foreign
