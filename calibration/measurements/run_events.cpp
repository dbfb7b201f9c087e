#include "calibration/measurements/run_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/cancellation_point.h"
#include "base/refuse.h"
#include "calibration/measurements/quantities.h"
#include "calibration/measurements/statistics.h"
#include "program/lower/lower.h"

namespace trivium::calibration {
namespace {

[[noreturn]] void refuse(const program::RunRecord& record, const program::Event& event, const std::string& what) {
  base::refuse(record.file, fmt::format("event of step {}, rank {}, task {}, op {}: {}; the record was not made of "
                                        "this plan, or by another version",
                                        event.step, event.rank, event.task, event.op, what));
}

/// Warm-up: the first step of the run, unless nothing else was kept.
bool is_warm_up(const program::Event& event, bool others) { return event.step == 0 && others; }

bool has_later_steps(const program::RunRecord& record) {
  return std::any_of(record.timeline.events.begin(), record.timeline.events.end(),
                     [](const program::Event& e) { return e.step > 0; });
}

const program::Task& task_of(const program::Program& program, const program::RunRecord& record,
                             const program::Event& event) {
  if (event.rank < 0 || event.rank >= program.mesh.size()) refuse(record, event, "there is no such rank");
  const program::Role& role = program.role_of(event.rank);
  if (event.task < 0 || event.task >= static_cast<std::int32_t>(role.tasks.size()))
    refuse(record, event, "there is no such task");
  return role.tasks[static_cast<std::size_t>(event.task)];
}

const program::Op& op_of(const program::Program& program, const program::RunRecord& record, const program::Task& task,
                         const program::Event& event) {
  const program::Body& body = program.body_of(task);
  if (event.op < 0 || event.op >= static_cast<std::int32_t>(body.ops.size()))
    refuse(record, event, "there is no such op");
  return body.ops[static_cast<std::size_t>(event.op)];
}

/// Ends of everything but transfers, by (step, rank).
using Ends = std::map<std::pair<int, int>, std::vector<std::int64_t>>;

/// Whether the receive found its rank early, and idle from the partner's arrival to the end. Else the span ends when
/// the rank next looked, or holds no wake-up.
bool is_awaited(const program::Event& event, const Ends& ends) {
  if (event.wait_ps == 0) return false;
  const auto found = ends.find({event.step, event.rank});
  if (found == ends.end()) return true;
  const auto next = std::upper_bound(found->second.begin(), found->second.end(), event.start_ps + event.wait_ps);
  return next == found->second.end() || *next > event.end_ps;
}

/// One rendezvous of a group: step, task (or the group, where its members are at different tasks), op, first member.
using RendezvousKey = std::tuple<int, int, int, int>;

RendezvousKey rendezvous_of(const program::Program& program, const program::Event& event, const program::Op& op) {
  using program::Group;
  const int first = program.mesh.members(op.group, event.rank).front();
  const bool over_stages = op.group == Group::kModel || op.group == Group::kWorld || op.group == Group::kEmbedding;
  return {event.step, over_stages ? -1 - static_cast<int>(op.group) : event.task, event.op, first};
}

bool is_collective(const program::Op& op) { return program::is_communication(op.kind) && !is_transfer(op); }

/// The shortest time that a member of each collective took after the last one's arrival.
std::map<RendezvousKey, double> own_times(const program::Program& program, const program::RunRecord& record,
                                          base::CancellationPoint& cancellation) {
  std::map<RendezvousKey, double> times;
  for (const program::Event& event : record.timeline.events) {
    cancellation.step();
    const program::Op& op = op_of(program, record, task_of(program, record, event), event);
    if (!is_collective(op)) continue;
    const auto took = std::max(0.0, static_cast<double>(event.end_ps - event.start_ps - event.wait_ps));
    const auto [at, fresh] = times.try_emplace(rendezvous_of(program, event, op), took);
    if (!fresh) at->second = std::min(at->second, took);
  }
  return times;
}

}  // namespace

bool is_transfer(const program::Op& op) {
  return op.kind == program::OpKind::kSend || op.kind == program::OpKind::kRecv;
}

std::vector<OpEvent> op_events(const program::Program& program, const program::RunRecord& record,
                               const std::stop_token& stop) {
  base::CancellationPoint cancellation(stop);
  const bool later = has_later_steps(record);
  Ends ends;
  for (const program::Event& event : record.timeline.events) {
    cancellation.step();
    if (task_of(program, record, event).transfer < 0) ends[{event.step, event.rank}].push_back(event.end_ps);
  }
  for (auto& [key, times] : ends) std::sort(times.begin(), times.end());
  const std::map<RendezvousKey, double> own = own_times(program, record, cancellation);
  std::vector<OpEvent> result;
  for (const program::Event& event : record.timeline.events) {
    cancellation.step();
    if (is_warm_up(event, later)) continue;
    const program::Task& task = task_of(program, record, event);
    const program::Op& op = op_of(program, record, task, event);
    const auto span = static_cast<double>(event.end_ps - event.start_ps), wait = static_cast<double>(event.wait_ps);
    const double work = is_collective(op) ? own.at(rendezvous_of(program, event, op)) : std::max(0.0, span - wait);
    result.push_back({event.step, event.rank, &op, work * kSecondsPerPs, (span - work) * kSecondsPerPs,
                      task.transfer < 0 || is_awaited(event, ends), &task});
  }
  return result;
}

double measured_iteration(const program::RunRecord& record) {
  if (record.steps.empty()) base::refuse(record.file, "it has no steps; nothing was measured");
  std::vector<double> seconds;
  for (const program::StepRecord& step : record.steps) seconds.push_back(step.seconds);
  if (seconds.size() > 1) seconds.erase(seconds.begin());  // warms caches
  return median(std::move(seconds));
}

double host_gap(const program::Program& program, const program::RunRecord& record) {
  std::map<int, const program::Event*> last;  // by rank
  std::vector<double> gaps;
  for (const program::Event& event : record.timeline.events) {
    const program::Task& task = task_of(program, record, event);
    const program::Event*& before = last[event.rank];
    const bool follows = before != nullptr && before->step == event.step && before->task == event.task &&
                         before->op + 1 == event.op && task.transfer < 0;
    if (follows && event.start_ps >= before->end_ps) {
      gaps.push_back(static_cast<double>(event.start_ps - before->end_ps) * kSecondsPerPs);
    }
    before = &event;
  }
  return median(std::move(gaps));
}

program::Program program_of(const program::RunRecord& record) {
  auto lowered = program::lower(record.job);
  if (const auto* no = std::get_if<program::Infeasible>(&lowered)) {
    base::refuse(record.file, "its plan cannot be lowered: " + no->reason);
  }
  return std::get<program::Program>(std::move(lowered));
}

}  // namespace trivium::calibration
