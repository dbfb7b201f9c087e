#include "calibration/foreign/rank_times.h"

#include <algorithm>

#include "calibration/foreign/long_gaps.h"

namespace trivium::calibration::foreign {
namespace {

using imports::Kernel;

/// What other ranks tell of a collective: until when it waited, and for whom.
struct Wait {
  double until_s = 0;  ///< on the shared clock
  int rank = -1;       ///< -1: nobody; it came last itself
};

/// By kernel of one run.
using Waits = std::map<std::size_t, Wait>;

std::vector<Waits> waits_in(const std::vector<RankRun>& runs, const std::vector<Rendezvous>& rendezvous) {
  std::vector<Waits> waits(runs.size());
  for (const Rendezvous& each : rendezvous) {
    const auto last = std::ranges::max_element(each.members, {}, &Rendezvous::Member::begin_s);
    for (const Rendezvous::Member& member : each.members) {
      const bool is_last = &member == &*last;
      waits[member.run][member.kernel] = {std::clamp(last->begin_s, member.begin_s, member.end_s),
                                          is_last ? -1 : runs[last->run].rank};
    }
  }
  return waits;
}

class Accountant {
 public:
  Accountant(const RankRun& run, const Waits& waits) : run_(run), waits_(waits) {}

  RankTimes times() {
    times_.rank = run_.rank;
    times_.iteration_s = run_.mean_step_s();
    for (std::size_t i = 0; i < run_.matches.size(); ++i) {
      const Kernel& kernel = run_.trace->kernels[i];
      if (run_.step_at(kernel.start_s) >= 0) add(kernel, run_.matches[i], i);
    }
    divide_time();
    per_iteration();
    return std::move(times_);
  }

 private:
  void add(const Kernel& kernel, const Match& match, std::size_t place) {
    const TimeSpan span{kernel.start_s, kernel.start_s + kernel.seconds};
    switch (match.kind) {
      case Match::Kind::kHost:
        return;
      case Match::Kind::kCollective:
        return add_collective(kernel, match, place);
      case Match::Kind::kOp:
        add_to(times_.ops[match.op], kernel, kernel.seconds, match);
        times_.matched_s += kernel.seconds;
        break;
      case Match::Kind::kUnmatched:
        add_to(times_.unmatched[run_.trace->name_of(kernel)], kernel, kernel.seconds, match);
        times_.unmatched_s += kernel.seconds;
    }
    compute_.push_back(span);
  }

  void add_to(MeasuredOp& op, const Kernel& kernel, double seconds, const Match& match) {
    if (kernel.begins) op.count += 1;
    op.seconds += seconds;
    if (match.unfused) op.unfused_s += seconds;
    if (match.recomputed) op.recomputed_s += seconds;
    if (match.unsplit) op.unsplit_s += seconds;
    if (kernel.m > 0 && kernel.begins) op.flops += 2 * kernel.batch * kernel.m * kernel.n * kernel.k;
    double& most = longest_[&op];
    if (seconds > most) most = seconds, op.longest = run_.trace->name_of(kernel);
  }

  void add_collective(const Kernel& kernel, const Match& match, std::size_t place) {
    const double end = kernel.start_s + kernel.seconds;
    double from = kernel.start_s;
    if (const auto wait = waits_.find(place); wait != waits_.end()) {
      from = std::clamp(wait->second.until_s - run_.shift_s, kernel.start_s, end);
      if (wait->second.rank >= 0) waited_[wait->second.rank].push_back({kernel.start_s, from});
    }
    MeasuredOp& op = times_.ops[match.op];
    add_to(op, kernel, end - from, match);
    op.bytes += kernel.bytes;
    moved_[match.op].push_back({from, end});
  }

  /// What several claim at once counts once: kernels first, then waits, then what moves.
  void divide_time() {
    const Intervals steps(run_.steps);
    Intervals busy = Intervals(std::move(compute_)).within(steps);
    times_.compute_s = busy.seconds();
    times_.steps.resize(run_.steps.size());
    share_out(busy, &StepTimes::compute_s);
    for (auto& [rank, spans] : waited_) {
      const Intervals own = claim(std::move(spans), steps, busy);
      times_.waits_s[rank] = own.seconds();
      share_out(own, &StepTimes::wait_s);
      for (const TimeSpan& span : own.spans()) {
        const int step = run_.step_at(span.begin_s);
        if (step >= 0) times_.steps[static_cast<std::size_t>(step)].waits_s[rank] += span.seconds();
      }
    }
    for (auto& [op, spans] : moved_) {
      const Intervals own = claim(std::move(spans), steps, busy);
      times_.exposed_s[op] = own.seconds();
      share_out(own, &StepTimes::transfer_s);
    }
    const Intervals idle = steps.without(busy);
    times_.idle_s = idle.seconds();
    times_.gaps = static_cast<double>(idle.spans().size());
    divide_idle(idle);
    std::map<int, double> longest;
    for (const TimeSpan& gap : idle.spans()) {
      double& of = longest[run_.step_at(gap.begin_s)];
      of = std::max(of, gap.seconds());
    }
    for (const auto& [step, seconds] : longest) times_.longest_gap_s += seconds;
    for (std::size_t i = 0; i < run_.steps.size(); ++i) times_.steps[i].seconds = run_.steps[i].seconds();
  }

  /// Adds the parts of spans that lie in each iteration. Spans lie within iterations, which may touch.
  void share_out(const Intervals& spans, double StepTimes::*member) {
    std::size_t step = 0;
    for (TimeSpan span : spans.spans()) {
      while (step < run_.steps.size() && run_.steps[step].end_s <= span.begin_s) ++step;
      for (std::size_t at = step; at < run_.steps.size() && run_.steps[at].begin_s < span.end_s; ++at) {
        const double end = std::min(span.end_s, run_.steps[at].end_s);
        times_.steps[at].*member += std::max(0.0, end - std::max(span.begin_s, run_.steps[at].begin_s));
      }
    }
  }

  /// On cores the framework's own time is told from time outside of any operator.
  void divide_idle(const Intervals& idle) {
    Intervals gaps = idle;
    if (run_.trace->on_cores) {
      std::vector<TimeSpan> inside;
      for (const imports::Operator& op : run_.trace->operators) {
        if (op.parent < 0 && !op.is_range) inside.push_back({op.begin_s, op.end_s});
        if (op.parent >= 0 && !op.is_range && run_.trace->operators[static_cast<std::size_t>(op.parent)].is_range)
          inside.push_back({op.begin_s, op.end_s});
      }
      const Intervals operators(std::move(inside));
      share_out(idle.within(operators), &StepTimes::host_s);
      gaps = idle.without(operators);
    }
    share_out(gaps, &StepTimes::gap_s);
    times_.long_gaps = long_gaps_of(run_, gaps);
  }

  static Intervals claim(std::vector<TimeSpan> spans, const Intervals& steps, Intervals& busy) {
    Intervals own = Intervals(std::move(spans)).within(steps).without(busy);
    busy = busy.with(own);
    return own;
  }

  void per_iteration() {
    const auto steps = static_cast<double>(std::max<std::size_t>(1, run_.steps.size()));
    for (auto* ops : {&times_.ops, &times_.unmatched}) {
      for (auto& [name, op] : *ops) {
        for (double* value : {&op.count, &op.seconds, &op.unfused_s, &op.recomputed_s, &op.flops, &op.bytes})
          *value /= steps;
      }
    }
    for (auto& [rank, seconds] : times_.waits_s) seconds /= steps;
    for (auto& [op, seconds] : times_.exposed_s) seconds /= steps;
    for (double* value : {&times_.matched_s, &times_.unmatched_s, &times_.compute_s, &times_.idle_s, &times_.gaps,
                          &times_.longest_gap_s})
      *value /= steps;
  }

  const RankRun& run_;
  const Waits& waits_;
  RankTimes times_;
  std::vector<TimeSpan> compute_;
  std::map<int, std::vector<TimeSpan>> waited_;
  std::map<std::string, std::vector<TimeSpan>> moved_;
  std::map<const MeasuredOp*, double> longest_;  // seconds
};

}  // namespace

std::vector<RankTimes> times_of(const std::vector<RankRun>& runs) {
  const std::vector<Waits> waits = waits_in(runs, rendezvous_of(runs));
  std::vector<RankTimes> times;
  for (std::size_t i = 0; i < runs.size(); ++i) times.push_back(Accountant(runs[i], waits[i]).times());
  return times;
}

}  // namespace trivium::calibration::foreign
