#include "runtime/executor/step_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace trivium::runtime {
namespace {

using program::Event;

// Bytes of rank `root`, known to all afterwards.
void share(Communicator& communicator, int world, std::vector<Event>& events, int root) {
  auto count = static_cast<std::int64_t>(events.size());
  communicator.broadcast(world, &count, sizeof count, root);
  events.resize(static_cast<std::size_t>(count));
  if (count > 0) communicator.broadcast(world, events.data(), count * static_cast<std::int64_t>(sizeof(Event)), root);
}

// A collective cannot begin before its last member came: what the others spent until then is waiting.
void mark_waits(const program::Program& program, program::Timeline& timeline) {
  std::map<std::tuple<int, int, int, int>, std::int64_t> last_start;  // step, task, op, first member of the group
  const auto key_of = [&](const Event& e) -> std::optional<std::tuple<int, int, int, int>> {
    const program::Role& role = program.role_of(e.rank);
    const program::Task& task = role.tasks[static_cast<std::size_t>(e.task)];
    const program::Op& op = program.body_of(task).ops[static_cast<std::size_t>(e.op)];
    if (!program::is_communication(op.kind)) return std::nullopt;
    if (task.transfer >= 0) {  // both ends share the transfer's number
      program::Coordinates at = program.mesh.coordinates(e.rank);
      at.pipeline = 0;
      return std::tuple{e.step, -1 - task.transfer, 0, program.mesh.rank(at)};
    }
    if (op.group == program::Group::kModel || op.group == program::Group::kWorld ||
        op.group == program::Group::kEmbedding) {
      return std::tuple{e.step, static_cast<int>(op.group), e.op, program.mesh.members(op.group, e.rank).front()};
    }
    return std::tuple{e.step, e.task, e.op + 16, program.mesh.members(op.group, e.rank).front()};
  };
  for (const Event& e : timeline.events) {
    if (const auto key = key_of(e)) {
      auto& latest = last_start[*key];
      latest = std::max(latest, e.start_ps);
    }
  }
  for (Event& e : timeline.events) {
    if (const auto key = key_of(e))
      e.wait_ps = std::clamp<std::int64_t>(last_start[*key] - e.start_ps, 0, e.end_ps - e.start_ps);
  }
}

}  // namespace

std::vector<Event>* StepTimeline::next() {
  if (steps_ == 0) return nullptr;
  if (std::ssize(kept_) == steps_) kept_.pop_front();
  return &kept_.emplace_back();
}

program::Timeline StepTimeline::gathered(const program::Program& program, Communicator& communicator, int world) const {
  program::Timeline timeline;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    for (const std::vector<Event>& mine : kept_) {
      std::vector<Event> events = rank == communicator.rank() ? mine : std::vector<Event>{};
      share(communicator, world, events, rank);
      if (communicator.rank() == 0) timeline.events.insert(timeline.events.end(), events.begin(), events.end());
    }
  }
  mark_waits(program, timeline);
  return timeline;
}

}  // namespace trivium::runtime
