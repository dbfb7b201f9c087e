#include "program/verify/verify_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "program/ir/text.h"

namespace trivium::program {
namespace {

using Problems = std::vector<std::string>;

void check_ends(const Program& program, Problems& problems) {
  struct End {
    int stage, peer;
    std::int64_t elements;
    Pass pass;
    int boundary;  // position of the chunk before it
    int micro_batch;
  };
  std::map<int, std::vector<End>> sends, receives;
  for (const Role& role : program.roles) {
    for (const Task& task : role.tasks) {
      if (task.transfer < 0) continue;
      const Op& op = program.body_of(task).ops.front();
      const bool sends_it = task.kind == TaskKind::kSend;
      const int position = role.chunks[static_cast<std::size_t>(task.chunk)].position;
      const int boundary = sends_it == (op.pass == Pass::kForward) ? position : position - 1;
      (sends_it ? sends : receives)[task.transfer].push_back(
          {role.stage, task.peer_stage, op.elements, op.pass, boundary, task.micro_batch});
    }
  }
  for (const auto& [id, ends] : sends) {
    const auto& other = receives[id];
    if (ends.size() != 1 || other.size() != 1) {
      problems.push_back(fmt::format("transfer {} has {} sends and {} receives", id, ends.size(), other.size()));
    } else if (ends[0].stage != other[0].peer || ends[0].peer != other[0].stage ||
               ends[0].elements != other[0].elements) {
      problems.push_back(fmt::format("transfer {}: stage {} sends {} elements to {}, stage {} receives {} from {}", id,
                                     ends[0].stage, ends[0].elements, ends[0].peer, other[0].stage, other[0].elements,
                                     other[0].peer));
    } else if (ends[0].pass != other[0].pass || ends[0].boundary != other[0].boundary ||
               ends[0].micro_batch != other[0].micro_batch) {
      const auto what = [](const End& end) {
        return fmt::format("the {} of micro-batch {} after chunk {}", name_of(end.pass), end.micro_batch, end.boundary);
      };
      problems.push_back(fmt::format("transfer {}: stage {} sends {}, stage {} receives {}", id, ends[0].stage,
                                     what(ends[0]), other[0].stage, what(other[0])));
    }
  }
  for (const auto& [id, ends] : receives) {
    if (!sends.contains(id))
      problems.push_back(fmt::format("transfer {} is received by stage {} and never sent", id, ends[0].stage));
  }
}

/// Tasks of one role around its transfers.
class TransferChecker {
 public:
  TransferChecker(const Program& program, const Role& role, Problems& problems)
      : program_(program), role_(role), problems_(problems) {
    for (std::size_t id = 0; id < role.tasks.size(); ++id) {
      const Task& task = role.tasks[id];
      const bool runs = is_pass(task);
      if (!runs && task.kind != TaskKind::kRecv && task.kind != TaskKind::kGatherReceived) continue;
      tasks_.try_emplace({task.kind, runs ? Pass{} : pass_of(task), task.chunk, task.micro_batch}, id);
    }
  }

  void check() {
    for (std::size_t id = 0; id < role_.tasks.size(); ++id) {
      const Task& task = role_.tasks[id];
      if (task.kind == TaskKind::kGatherReceived) check_gather(id);
      if (is_pass(task)) check_passes_on(id);
      if (task.transfer < 0) continue;
      check_parts(id);
      const int pass = find(pass_of(task) == Pass::kForward ? TaskKind::kForward : TaskKind::kBackward, Pass{}, task);
      if (pass < 0) continue;  // check_counts says so
      check_frame(id, pass);
      if (task.kind == TaskKind::kSend) {
        check_wait(static_cast<int>(id), pass);
      } else if (op_of(task).parts == 1) {
        check_wait(pass, static_cast<int>(id));
      } else if (const int gather = find(TaskKind::kGatherReceived, pass_of(task), task); gather < 0) {
        say(id, "receives a part, and nothing gathers the others");
      } else {
        check_frame(static_cast<std::size_t>(gather), pass);
        check_wait(gather, static_cast<int>(id));
        check_wait(pass, gather);
      }
    }
  }

 private:
  static bool is_pass(const Task& task) { return task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward; }

  // The input of a pass comes from another stage, or from the previous or next chunk on this one.
  void check_passes_on(std::size_t id) {
    const Task& task = role_.tasks[id];
    const bool forward = task.kind == TaskKind::kForward;
    const int chunks = static_cast<int>(role_.chunks.size());
    const ChunkTemplate& kind =
        program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(task.chunk)].kind)];
    if (forward ? kind.embedding : kind.head) return;
    int from = forward ? role_.chunks[static_cast<std::size_t>(task.chunk)].input_from : -1;
    for (int other = 0; !forward && other < chunks; ++other) {
      if (role_.chunks[static_cast<std::size_t>(other)].input_from == task.chunk) from = other;
    }
    const int received = find(TaskKind::kRecv, forward ? Pass::kForward : Pass::kBackward, task);
    if (from < 0 && received < 0) return say(id, "starts from nothing: no transfer, and no chunk of the stage");
    if (from < 0) return;
    if (received >= 0) return say(id, "receives what lies on its stage");
    Task like = task;
    like.chunk = static_cast<std::int16_t>(from);
    if (const int before = find(task.kind, Pass{}, like); before >= 0) check_wait(static_cast<int>(id), before);
  }

  const Op& op_of(const Task& task) const { return program_.body_of(task).ops.front(); }
  Pass pass_of(const Task& task) const { return op_of(task).pass; }
  const Task& task_at(int id) const { return role_.tasks[static_cast<std::size_t>(id)]; }

  int find(TaskKind kind, Pass pass, const Task& like) const {
    const auto found = tasks_.find({kind, pass, like.chunk, like.micro_batch});
    return found == tasks_.end() ? -1 : static_cast<int>(found->second);
  }

  void say(std::size_t id, const std::string& what) {
    problems_.push_back(fmt::format("{} {}", name_task(role_, id), what));
  }

  void check_wait(int waiter, int awaited) {
    const auto& after = task_at(waiter).after;
    if (std::any_of(after.begin(), after.end(), [&](const Dependency& d) { return d.task == awaited; })) return;
    say(static_cast<std::size_t>(waiter),
        fmt::format("does not wait for task {} ({})", awaited, describe(task_at(awaited))));
  }

  void check_frame(std::size_t id, int pass) {
    const int frame = role_.tasks[id].frame, wanted = task_at(pass).frame;
    if (frame != wanted) say(id, fmt::format("is in frame {}, its pass in frame {}", frame, wanted));
  }

  // A transfer moves the whole buffer, or every tensor rank its part of it.
  void check_parts(std::size_t id) {
    const Task& task = role_.tasks[id];
    const Op& op = op_of(task);
    const auto& buffers = program_.kind_of(program_.body_of(task)).buffers;
    const Buffer& whole = buffers[static_cast<std::size_t>(task.kind == TaskKind::kSend ? op.in[0] : op.out[0])];
    const bool of_ranks = op.parts == 1 || op.parts == program_.mesh.tensor();
    if (of_ranks && op.elements * op.parts == whole.elements) return;
    say(id, fmt::format("moves {} of the {} elements of \"{}\" as one of {} parts of {} tensor ranks", op.elements,
                        whole.elements, whole.name, op.parts, program_.mesh.tensor()));
  }

  // All parts, of what the receive before it put there.
  void check_gather(std::size_t id) {
    const Task& task = role_.tasks[id];
    const Op& op = op_of(task);
    const int received = find(TaskKind::kRecv, op.pass, task);
    if (received < 0 || op_of(task_at(received)).parts == 1) return say(id, "gathers what came whole, or never came");
    const Op& part = op_of(task_at(received));
    if (op.kind == OpKind::kAllGather && op.group == Group::kTensor && op.in[0] == part.out[0] &&
        op.out[0] == part.out[0] && op.elements == part.elements * part.parts) {
      return;
    }
    say(id, fmt::format("gathers {} elements, not the parts that task {} ({}) received", op.elements, received,
                        describe(task_at(received))));
  }

  const Program& program_;
  const Role& role_;
  Problems& problems_;
  // Passes, receives and their gathers by kind, pass (of a receive or gather), chunk and micro-batch; the first.
  std::map<std::tuple<TaskKind, Pass, int, int>, std::size_t> tasks_;
};

}  // namespace

void check_transfers(const Program& program, std::vector<std::string>& problems) {
  check_ends(program, problems);
  for (const Role& role : program.roles) TransferChecker(program, role, problems).check();
}

}  // namespace trivium::program
