#include "simulator/replay/instruction_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "program/ir/text.h"
#include "simulator/replay/body_template.h"

namespace trivium::simulator {
namespace {

/// How far every stream is known to be: all its instructions up to this place have ended; -1: nothing known.
using Known = std::array<std::int32_t, kStreams>;

class InstructionWriter {
 public:
  InstructionWriter(const CostedProgram& costed, int role, const ReplayOptions& options, std::vector<Channel>& channels)
      : program_(*costed.program), role_(program_.roles[static_cast<std::size_t>(role)]) {
    templates_.resize(program_.bodies.size());
    std::vector<char> made(program_.bodies.size(), 0);
    for (const program::Task& task : role_.tasks) {
      const auto body = static_cast<std::size_t>(task.body);
      if (made[body] == 0)
        templates_[body] = make_template(costed, role, task.body, options, channels, instructions_.steps);
      made[body] = 1;
      first_.push_back(count_);
      count_ += static_cast<std::int32_t>(templates_[body].steps.size());
      for (const TemplateStep& step : templates_[body].steps) streams_.push_back(step.stream);
    }
  }

  base::Result<InstructionStreams> write() {
    place_steps();
    known_.assign(static_cast<std::size_t>(count_), unknown());
    marks_.assign(static_cast<std::size_t>(count_), {});
    for (auto& known : now_) known.fill(-1);
    for (const program::Issue& issue : role_.order) {
      const auto [begin, end] = template_of(issue.task).segments[static_cast<std::size_t>(issue.segment)];
      if (begin == end) continue;
      collect_task_producers(issue);
      for (std::int32_t i = begin; i < end; ++i) {
        if (auto wrong = link(issue, i)) return *wrong;
      }
    }
    emit();
    count_in_flight();
    return std::move(instructions_);
  }

 private:
  struct Marks {
    std::uint8_t waits = 0, signals = 0;
  };

  static Known unknown() {
    Known known;
    known.fill(-1);
    return known;
  }

  const BodyTemplate& template_of(std::int32_t task) const {
    return templates_[static_cast<std::size_t>(role_.tasks[static_cast<std::size_t>(task)].body)];
  }
  std::int32_t node(std::int32_t task, std::int32_t step) const {
    return first_[static_cast<std::size_t>(task)] + step;
  }
  std::int32_t& place(std::int32_t n) { return places_[static_cast<std::size_t>(n)]; }

  // Streams in host order.
  void place_steps() {
    places_.assign(static_cast<std::size_t>(count_), std::numeric_limits<std::int32_t>::max());
    for (const program::Issue& issue : role_.order) {
      const BodyTemplate& body = template_of(issue.task);
      const auto [begin, end] = body.segments[static_cast<std::size_t>(issue.segment)];
      for (std::int32_t i = begin; i < end; ++i) {
        auto& stream = order_[static_cast<std::size_t>(body.steps[static_cast<std::size_t>(i)].stream)];
        place(node(issue.task, i)) = static_cast<std::int32_t>(stream.size());
        stream.push_back({issue.task, i});
      }
    }
  }

  // What all steps of the segment wait for: the last steps of what the task depends on, on every stream.
  void collect_task_producers(const program::Issue& issue) {
    task_producers_.clear();
    for (const program::Dependency& d : role_.tasks[static_cast<std::size_t>(issue.task)].after) {
      if (d.before != issue.segment) continue;
      const BodyTemplate& body = template_of(d.task);
      const LastSteps& last =
          d.segment == program::kWholeTask ? body.last_of_all : body.last[static_cast<std::size_t>(d.segment)];
      for (const std::int32_t step : last) {
        if (step >= 0) task_producers_.push_back(node(d.task, step));
      }
    }
  }

  // Turns what a step waits for into signals, leaving out what follows from others or from what its stream waited for
  // before.
  std::optional<base::Error> link(const program::Issue& issue, std::int32_t i) {
    const BodyTemplate& body = template_of(issue.task);
    const TemplateStep& step = body.steps[static_cast<std::size_t>(i)];
    const auto stream = static_cast<std::size_t>(step.stream);
    const std::int32_t me = node(issue.task, i);
    producers_ = task_producers_;
    for (const std::int32_t before : step.after) producers_.push_back(node(issue.task, before));
    std::sort(producers_.begin(), producers_.end());
    producers_.erase(std::unique(producers_.begin(), producers_.end()), producers_.end());
    Known& known = now_[stream];
    for (const std::int32_t p : producers_) {
      const std::size_t from = stream_of(p);
      if (from == stream && place(p) >= place(me)) return turned_round(issue.task, p);
      if (from == stream || place(p) <= known[from]) continue;
      const bool follows = std::any_of(producers_.begin(), producers_.end(), [&](std::int32_t other) {
        return other != p && known_[static_cast<std::size_t>(other)][from] >= place(p);
      });
      if (follows) continue;
      marks_[static_cast<std::size_t>(me)].waits |= static_cast<std::uint8_t>(1U << from);
      marks_[static_cast<std::size_t>(p)].signals |= static_cast<std::uint8_t>(1U << stream);
      signals_.at(from * kStreams + stream).push_back({place(p), place(me)});
    }
    for (const std::int32_t p : producers_) {
      if (stream_of(p) == stream) continue;
      const Known& theirs = known_[static_cast<std::size_t>(p)];
      for (std::size_t s = 0; s < kStreams; ++s) known[s] = std::max(known[s], theirs[s]);
      known[stream_of(p)] = std::max(known[stream_of(p)], place(p));
    }
    known[stream] = place(me);
    known_[static_cast<std::size_t>(me)] = known;
    return std::nullopt;
  }

  std::size_t stream_of(std::int32_t n) const {
    return static_cast<std::size_t>(streams_[static_cast<std::size_t>(n)]);
  }

  base::Error turned_round(std::int32_t task, std::int32_t producer) const {
    const auto other =
        static_cast<std::int32_t>(std::upper_bound(first_.begin(), first_.end(), producer) - first_.begin() - 1);
    const auto name = [&](std::int32_t t) { return describe(role_.tasks[static_cast<std::size_t>(t)]); };
    return {
        base::ErrorKind::kRuntime,
        fmt::format("the simulation cannot proceed: rank {} at task {} ({}) waits for task {} ({}), which its order "
                    "puts later on the same lane",
                    program_.representative(role_), task, name(task), other, name(other))};
  }

  // Runs of steps that nothing waits for or is waited for by in between become one instruction.
  void emit() {
    for (std::size_t s = 0; s < kStreams; ++s) {
      auto& stream = instructions_.streams[s];
      for (const auto& [task, i] : order_[s]) {
        const TemplateStep& step = template_of(task).steps[static_cast<std::size_t>(i)];
        const Marks marks = marks_[static_cast<std::size_t>(node(task, i))];
        const std::int64_t ps = instructions_.steps[static_cast<std::size_t>(step.place)].ps;
        if (!stream.empty()) {
          Instruction& last = stream.back();
          const bool goes_on = last.task == task && last.rendezvous == RendezvousKind::kNone &&
                               step.rendezvous == RendezvousKind::kNone && marks.waits == 0 && last.signals == 0 &&
                               last.first_step + last.steps == step.place &&
                               last.steps < std::numeric_limits<std::uint16_t>::max();
          if (goes_on) {
            last.ps += ps;
            ++last.steps;
            last.signals = marks.signals;
            continue;
          }
        }
        Instruction in;
        in.ps = ps;
        in.task = task;
        in.first_step = step.place;
        in.steps = 1;
        in.waits = marks.waits;
        in.signals = marks.signals;
        in.rendezvous = step.rendezvous;
        if (step.rendezvous == RendezvousKind::kCollective || step.rendezvous == RendezvousKind::kCopy)
          in.partner = step.channel;
        if (step.rendezvous == RendezvousKind::kTransfer) {
          const program::Task& work = role_.tasks[static_cast<std::size_t>(task)];
          in.partner = work.transfer;
          in.peer_role = static_cast<std::int16_t>(role_.replica_kind * program_.mesh.pipeline() + work.peer_stage);
        }
        stream.push_back(in);
      }
    }
  }

  // A signal may come to a full ring only if it never can: at the n-th signal, those whose takers are known to have
  // taken theirs are gone.
  void count_in_flight() {
    for (std::size_t from = 0; from < kStreams; ++from) {
      for (std::size_t to = 0; to < kStreams; ++to) {
        const auto& pairs = signals_[from * kStreams + to];
        std::size_t gone = 0, most = 0;
        for (std::size_t n = 0; n < pairs.size(); ++n) {
          const auto& [task, step] = order_[from][static_cast<std::size_t>(pairs[n].first)];
          const std::int32_t taken = known_[static_cast<std::size_t>(node(task, step))][to];
          while (gone < n && pairs[gone].second <= taken) ++gone;
          most = std::max(most, n + 1 - gone);
        }
        instructions_.in_flight[from][to] = static_cast<std::int32_t>(most);
      }
    }
  }

  const program::Program& program_;
  const program::Role& role_;
  InstructionStreams instructions_;
  std::vector<BodyTemplate> templates_;  // by body
  std::vector<std::int32_t> first_;      // by task: its first node
  std::int32_t count_ = 0;
  std::vector<std::int8_t> streams_;                                                // by node
  std::vector<std::int32_t> places_;                                                // by node: its place in its stream
  std::array<std::vector<std::pair<std::int32_t, std::int32_t>>, kStreams> order_;  // (task, step)
  std::vector<Known> known_;                                                        // by node: when it has ended
  std::vector<Marks> marks_;                                                        // by node
  std::array<Known, kStreams> now_{};
  std::array<std::vector<std::pair<std::int32_t, std::int32_t>>, kStreams * kStreams> signals_;  // places: giver, taker
  std::vector<std::int32_t> task_producers_, producers_;
};

}  // namespace

base::Result<InstructionStreams> write_instructions(const CostedProgram& costed, int role, const ReplayOptions& options,
                                                    std::vector<Channel>& channels) {
  return InstructionWriter(costed, role, options, channels).write();
}

}  // namespace trivium::simulator
