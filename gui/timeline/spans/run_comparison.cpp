#include "gui/timeline/spans/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "base/cancellation_point.h"
#include "base/error.h"
#include "base/seconds.h"
#include "calibration/measurements/run_events.h"
#include "calibration/validate/validate.h"
#include "gui/timeline/spans/program_spans.h"
#include "gui/timeline/spans/store_builder.h"
#include "program/lower/lower.h"
#include "simulator/predict/predict.h"

namespace trivium::gui {
namespace {

using base::kSecondsPerPs;
using program::Event;

constexpr std::array<double, kErrorHues - 1> kErrorBounds{-0.5, -0.2, -0.05, 0.05, 0.2, 0.5};

struct Prediction {
  hardware::Cluster on_time;  ///< the cluster, as if no host were ever late: measured events tell that apart
  std::shared_ptr<const program::Program> program;
  simulator::Simulation simulation;
  simulator::CostedProgram costed;  ///< there
};

[[noreturn]] void refuse(const std::string& why) {
  throw base::Failure(base::ErrorKind::kInput, "cannot compare: " + why);
}

void predict(const program::PlanFile& plan, const hardware::Cluster& cluster, Prediction& prediction,
             const std::stop_token& stop) {
  const base::CancellationPoint cancellation(stop);
  auto predicted = simulator::predict(
      plan.job, cluster, {.fits = false, .simulation = {simulator::Granularity::kOp, /*timeline=*/true}}, stop);
  cancellation.look();
  if (!predicted) refuse(predicted.error().message);
  prediction.program = predicted.value().prepared.shared_program();
  prediction.simulation = std::move(predicted.value().simulation);
  prediction.on_time = cluster;
  for (hardware::NodeGroup& group : prediction.on_time.groups) group.node.collective_skew = base::Seconds(0);
  prediction.costed = simulator::cost(*prediction.program, prediction.on_time);
}

/// Lengths of the recorded steps, as their events say.
std::map<int, std::int64_t> step_lengths(const program::Timeline& timeline) {
  std::map<int, std::int64_t> lengths;
  for (const Event& event : timeline.events) lengths[event.step] = std::max(lengths[event.step], event.end_ps);
  return lengths;
}

/// Seconds of the steps that have events: as recorded, or as long as the events.
std::map<int, double> step_seconds(const program::RunRecord& record, const std::map<int, std::int64_t>& lengths) {
  std::map<int, double> seconds;
  for (const auto& [step, length] : lengths) seconds[step] = static_cast<double>(length) * kSecondsPerPs;
  for (const program::StepRecord& step : record.steps) {
    const auto known = seconds.find(static_cast<int>(step.step));
    if (known != seconds.end() && step.seconds > 0) known->second = step.seconds;
  }
  return seconds;
}

int typical_step(const std::map<int, double>& seconds, double run_s) {
  std::vector<std::pair<double, int>> sorted;
  for (const auto& [step, length] : seconds) {
    if (step > 0 || seconds.size() == 1) sorted.emplace_back(length, step);
  }
  std::sort(sorted.begin(), sorted.end());
  const double wanted = run_s > 0 ? run_s : sorted[(sorted.size() - 1) / 2].first;
  return std::min_element(
             sorted.begin(), sorted.end(),
             [&](const auto& a, const auto& b) { return std::abs(a.first - wanted) < std::abs(b.first - wanted); })
      ->second;
}

class Comparer {
 public:
  Comparer(const Prediction& prediction, const program::Program& recorded, const std::stop_token& stop)
      : predicted_(prediction), recorded_(recorded), stop_(stop), cancellation_(stop) {
    root_ = builder_.add_row(kNoRow, RowKind::kCluster, "", 0);
    builder_.add_step(0);
    for (int c = 0; c < kErrorHues; ++c) {
      errors_[static_cast<std::size_t>(c)] = builder_.category(error_words(c), kErrorHue + c);
    }
    const auto& events = prediction.simulation.timeline.events;
    for (std::size_t e = 0; e < events.size(); ++e) {
      cancellation_.step();
      by_rank_[events[e].rank].push_back(e);
    }
  }

  RunComparison compare(const program::Timeline& measured, int step) {
    for (const Event& event : measured.events) {
      cancellation_.step();
      if (event.step == step) add_measured(event);
    }
    result_.predicted_ps = predicted_.simulation.iteration_ps;
    result_.spans = builder_.build(stop_);
    return std::move(result_);
  }

 private:
  enum Part { kPredicted, kMeasured, kError };

  void add_measured(const Event& event) {
    const program::Task* task = task_of(recorded_, event);
    const program::Op* op = op_of(recorded_, event);
    result_.measured_ps = std::max(result_.measured_ps, event.end_ps);
    add_predicted_rank(event.rank);
    add_span(event, recorded_, event.rank, kMeasured);
    const double predicted = task != nullptr && op != nullptr ? predicted_seconds(event, *task, *op) : -1;
    if (predicted < 0) {
      ++result_.unmatched;
      return;
    }
    if (calibration::is_transfer(*op)) return;
    MatchedOp matched{event.rank, category_of(*task, op, event.lane), op->kind,    predicted,
                      0,          event.start_ps + event.wait_ps,     event.end_ps};
    matched.measured_s =
        static_cast<double>(std::max<std::int64_t>(0, matched.end_ps - matched.start_ps)) * kSecondsPerPs;
    add_error(event, matched);
    result_.ops.push_back(matched);
  }

  /// -1 where the prediction has no such op: the record was made of another plan.
  double predicted_seconds(const Event& event, const program::Task& task, const program::Op& op) const {
    const program::Program& program = *predicted_.program;
    const program::Task* predicted = task_of(program, event);
    const program::Op* predicted_op = op_of(program, event);
    if (predicted == nullptr || predicted_op == nullptr) return -1;
    if (predicted->kind != task.kind || predicted->micro_batch != task.micro_batch || predicted_op->kind != op.kind)
      return -1;
    const auto role = static_cast<std::size_t>(predicted_.program->role_index(event.rank));
    const auto& bodies = predicted_.costed.op_ps[role];
    return static_cast<double>(bodies[static_cast<std::size_t>(predicted->body)][static_cast<std::size_t>(event.op)]) *
           kSecondsPerPs;
  }

  // One rank simulates a stage; every measured rank of the stage is compared with it.
  void add_predicted_rank(int rank) {
    if (rank < 0 || rank >= predicted_.program->mesh.size() || !predicted_ranks_.emplace(rank, true).second) return;
    for (const std::size_t e : by_rank_[predicted_.program->representative(predicted_.program->role_of(rank))]) {
      cancellation_.step();
      add_span(predicted_.simulation.timeline.events[e], *predicted_.program, rank, kPredicted);
    }
  }

  void add_span(const Event& event, const program::Program& program, int rank, Part part) {
    const program::Task* task = task_of(program, event);
    const program::Op* op = op_of(program, event);
    NewSpan span;
    span.row = row(rank, lane_of(event, op), part);
    span.start_ps = event.start_ps;
    span.end_ps = std::max(event.start_ps, event.end_ps);
    name(program, event, span);
    const std::int64_t wait = std::clamp<std::int64_t>(event.wait_ps, 0, span.end_ps - span.start_ps);
    if (wait > 0) {
      NewSpan waiting = span;
      waiting.end_ps = span.start_ps + wait;
      waiting.category = builder_.category(Category::kWaiting);
      builder_.add(waiting);
      span.start_ps += wait;
    }
    span.category = builder_.category(task != nullptr ? category_of(*task, op, event.lane) : Category::kOther);
    builder_.add(span);
  }

  void add_error(const Event& event, const MatchedOp& op) {
    const double error = op.measured_s > 0 ? op.predicted_s / op.measured_s - 1 : 0;
    NewSpan span;
    span.row = row(event.rank, lane_of(event, op_of(recorded_, event)), kError);
    span.start_ps = op.start_ps;
    span.end_ps = op.end_ps;
    const SpanName words = span_name(recorded_, event);
    span.title = builder_.title(
        fmt::format("{}{:.0f} % {} {}", error < 0 ? "−" : "+", std::abs(100 * error), words.title, words.detail));
    span.category = errors_[static_cast<std::size_t>(error_class(error))];
    builder_.add(span);
  }

  /// Collectives of a machine without separate lanes run on the compute lane, but are shown side by side here.
  static program::Lane lane_of(const Event& event, const program::Op* op) {
    return op != nullptr ? op->lane : event.lane;
  }

  void name(const program::Program& program, const Event& event, NewSpan& span) {
    const SpanName words = span_name(program, event);
    span.title = builder_.title(words.title);
    span.detail = builder_.detail(words.detail);
  }

  std::int32_t row(int rank, program::Lane lane, Part part) {
    const auto [device, new_device] = devices_.try_emplace(rank, kNoRow);
    if (new_device) device->second = builder_.add_row(root_, RowKind::kDevice, rank_name(recorded_, rank), rank);
    const auto [known, fresh] = rows_.try_emplace({rank, lane, part}, kNoRow);
    if (fresh) {
      static constexpr std::array<std::string_view, 3> kParts{"predicted", "measured", "error"};
      const bool alone = recorded_.mesh.group_size(program::Group::kData) < 2;  // what is left ties the embeddings
      const std::string_view lane_words = alone && lane == program::Lane::kData ? "tied embedding" : name_of(lane);
      const std::string lane_name = fmt::format("{} {}", lane_words, kParts[static_cast<std::size_t>(part)]);
      const bool primary = lane == program::Lane::kCompute && part == kMeasured;
      known->second =
          builder_.add_row(device->second, RowKind::kLane, lane_name, static_cast<int>(lane) * 3 + part, primary);
    }
    return known->second;
  }

  const Prediction& predicted_;
  const program::Program& recorded_;
  std::stop_token stop_;
  base::CancellationPoint cancellation_;
  RunComparison result_;
  StoreBuilder builder_;
  std::int32_t root_ = kNoRow;
  std::array<std::uint8_t, kErrorHues> errors_{};
  std::map<int, std::vector<std::size_t>> by_rank_;
  std::map<int, bool> predicted_ranks_;
  std::map<int, std::int32_t> devices_;
  std::map<std::tuple<int, program::Lane, Part>, std::int32_t> rows_;
};

}  // namespace

int error_class(double error) {
  return static_cast<int>(std::upper_bound(kErrorBounds.begin(), kErrorBounds.end(), error) - kErrorBounds.begin());
}

std::string error_words(int error_class) {
  static constexpr std::array<std::string_view, kErrorHues> kWords{
      "predicted under half", "20 % to 50 % too short", "5 % to 20 % too short", "within 5 %",
      "5 % to 20 % too long", "20 % to 50 % too long",  "over 50 % too long"};
  return std::string(kWords.at(static_cast<std::size_t>(error_class)));
}

RunComparison compare_run(const program::PlanFile& plan, const hardware::Cluster& cluster,
                          const program::RunRecord& record, int step, const std::stop_token& stop) {
  const auto lengths = step_lengths(record.timeline);
  if (lengths.empty()) refuse("the run record holds no events; record the run with `trivium run PLAN --record FILE`");
  if (step >= 0 && !lengths.contains(step)) refuse(fmt::format("the run record holds no events of step {}", step));
  Prediction prediction;
  predict(plan, cluster, prediction, stop);
  const program::Program recorded = calibration::program_of(record);
  const std::map<int, double> seconds = step_seconds(record, lengths);
  const double run_s = record.steps.empty() ? 0 : calibration::measured_iteration(record);
  const int shown = step >= 0 ? step : typical_step(seconds, run_s);
  RunComparison result = Comparer(prediction, recorded, stop).compare(record.timeline, shown);
  result.step = shown;
  result.step_s = seconds.at(shown);
  result.run_s = run_s;
  result.run_steps = static_cast<int>(record.steps.size()) - (record.steps.size() > 1 ? 1 : 0);
  for (const auto& [number, length] : lengths) result.steps.push_back(number);
  return result;
}

std::vector<ComparedGroup> groups_by_kind(const RunComparison& comparison, std::int64_t begin_ps, std::int64_t end_ps) {
  std::map<program::OpKind, ComparedGroup> groups;
  for (const MatchedOp& op : comparison.ops) {
    if (op.end_ps <= begin_ps || op.start_ps >= end_ps) continue;
    ComparedGroup& group = groups[op.kind];
    group.predicted_s += op.predicted_s;
    group.measured_s += op.measured_s;
    if (op.measured_s > 0) group.mape += std::abs(op.predicted_s / op.measured_s - 1);
    ++group.ops;
  }
  std::vector<ComparedGroup> sorted;
  for (auto& [kind, group] : groups) {
    group.name = std::string(name_of(kind));
    std::replace(group.name.begin(), group.name.end(), '_', ' ');
    group.mape /= static_cast<double>(group.ops);
    sorted.push_back(std::move(group));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ComparedGroup& a, const ComparedGroup& b) { return a.measured_s > b.measured_s; });
  return sorted;
}

}  // namespace trivium::gui
