#include "simulator/replay/stuck.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "program/ir/text.h"

namespace trivium::simulator {
namespace {

constexpr std::size_t kNamed = 4;  // ranks, and partners of each: enough to see where it hangs

class Explanation {
 public:
  Explanation(const program::Program& program, const ReplayProgram& compiled, const std::vector<Blocked>& blocked)
      : program_(program), cast_(compiled), blocked_(blocked) {}

  std::string text() const {
    std::set<std::int32_t> stuck;
    for (const Blocked& b : blocked_) stuck.insert(b.actor);
    std::string text =
        fmt::format("the simulation cannot proceed: {} of {} ranks are stuck", stuck.size(), cast_.topology.actors());
    // What waits for another stream of its own rank only follows from what that stream waits for.
    std::size_t named = 0;
    for (const bool at_joint : {true, false}) {
      if (!at_joint && named > 0) break;
      for (const Blocked& b : blocked_) {
        if ((b.awaited_stream < 0) != at_joint || named == kNamed) continue;
        text += (named++ == 0 ? ": " : "; ") + story(b);
      }
    }
    return text;
  }

 private:
  const Instruction& instruction(const Blocked& b) const {
    const auto role = static_cast<std::size_t>(cast_.topology.role[static_cast<std::size_t>(b.actor)]);
    return cast_.streams_by_role[role]
        .streams[static_cast<std::size_t>(b.stream)][static_cast<std::size_t>(b.instruction)];
  }

  std::string place(const Blocked& b) const {
    const auto actor = static_cast<std::size_t>(b.actor);
    const auto role = static_cast<std::size_t>(cast_.topology.role[actor]);
    const Instruction& in = instruction(b);
    const program::Task& task = program_.roles[role].tasks[static_cast<std::size_t>(in.task)];
    const Step& step = cast_.streams_by_role[role].steps[static_cast<std::size_t>(in.first_step)];
    std::string what = fmt::format("task {} ({}", in.task, describe(task));
    if (task.transfer >= 0) {
      what += fmt::format(", transfer {}", task.transfer);
    } else if (step.op >= 0) {
      const program::Op& op = program_.body_of(task).ops[static_cast<std::size_t>(step.op)];
      what += fmt::format(", op {} {}", step.op, name_of(op.kind));
    }
    return fmt::format("rank {} at {})", cast_.topology.rank[actor], what);
  }

  std::string story(const Blocked& b) const {
    const Instruction& in = instruction(b);
    if (b.awaited_stream >= 0) {
      return fmt::format("{} waits for its own {} lane", place(b),
                         name_of(static_cast<program::Lane>(b.awaited_stream)));
    }
    if (in.rendezvous == RendezvousKind::kTransfer) {
      return fmt::format("{} waits for {}", place(b), partner(cast_.topology.peer(b.actor, in.peer_role), b.stream));
    }
    const auto id =
        cast_.topology.communicator[static_cast<std::size_t>(b.actor * cast_.topology.channels + in.partner)];
    const Communicator& all = cast_.topology.communicators[static_cast<std::size_t>(id)];
    std::vector<std::string> missing;
    std::size_t count = 0;
    for (std::int32_t i = all.first; i < all.first + all.size; ++i) {
      const std::int32_t member = cast_.topology.members[static_cast<std::size_t>(i)];
      if (is_at(member, b.stream, in.partner)) continue;
      if (count++ < kNamed) missing.push_back(partner(member, b.stream));
    }
    const std::string more = count > kNamed ? fmt::format(" and {} more", count - kNamed) : "";
    return fmt::format("{} waits for {} of {} members: {}{}", place(b), count, all.size, fmt::join(missing, ", "),
                       more);
  }

  bool is_at(std::int32_t actor, std::int32_t stream, std::int32_t channel) const {
    for (const Blocked& b : blocked_) {
      if (b.actor != actor || b.stream != stream || b.awaited_stream >= 0) continue;
      return instruction(b).rendezvous == RendezvousKind::kCollective && instruction(b).partner == channel;
    }
    return false;
  }

  std::string partner(std::int32_t actor, std::int32_t stream) const {
    for (const Blocked& b : blocked_) {
      if (b.actor != actor || b.stream != stream) continue;
      return place(b);
    }
    return fmt::format("rank {}, which has nothing left to do on that lane",
                       cast_.topology.rank[static_cast<std::size_t>(actor)]);
  }

  const program::Program& program_;
  const ReplayProgram& cast_;
  const std::vector<Blocked>& blocked_;
};

}  // namespace

std::string why_stuck(const program::Program& program, const ReplayProgram& compiled,
                      const std::vector<Blocked>& blocked) {
  return Explanation(program, compiled, blocked).text();
}

}  // namespace trivium::simulator
