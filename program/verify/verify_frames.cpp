#include "program/verify/verify_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "program/ir/text.h"

namespace trivium::program {
namespace {

class FrameChecker {
 public:
  FrameChecker(const Program& program, const Role& role, std::vector<std::string>& problems)
      : program_(program), role_(role), problems_(problems) {}

  void check() {
    for (std::size_t id = 0; id < role_.tasks.size(); ++id) {
      const Task& task = role_.tasks[id];
      const Owner owner{task.chunk, task.micro_batch};
      const bool split = kind_of(task).backward_weights >= 0 && !is_whole_backward(program_, task);
      switch (task.kind) {
        case TaskKind::kForward:
          use_input(task, id);
          take(frames_, task, task.frame, owner, id);
          break;
        case TaskKind::kBackward:
          use_input(task, id);
          use(frames_, task, task.frame, owner, id);
          if (split) {
            take(delayed_, task, task.deferred_frame, owner, id);
          } else {
            free(frames_, task, task.frame, id);
          }
          break;
        case TaskKind::kBackwardWeights:
          use(frames_, task, task.frame, owner, id);
          use(delayed_, task, task.deferred_frame, owner, id);
          free(frames_, task, task.frame, id);
          free(delayed_, task, task.deferred_frame, id);
          break;
        case TaskKind::kRecv:
          if (program_.body_of(task).ops.front().pass == Pass::kForward) receive(task, id);
          break;
        default:
          break;
      }
    }
  }

 private:
  using Owner = std::pair<int, int>;  // chunk, micro-batch
  struct Frame {
    Owner owner{-1, -1};
    bool taken = false;
    int last = -1;  // the task that freed it
  };
  using Frames = std::map<std::pair<int, int>, Frame>;  // kind, number

  const ChunkTemplate& kind_of(const Task& task) const {
    return program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(task.chunk)].kind)];
  }

  Frame& at(Frames& frames, const Task& task, int number) { return at(frames, task.chunk, number); }
  Frame& at(Frames& frames, int chunk, int number) {
    return frames[{role_.chunks[static_cast<std::size_t>(chunk)].kind, number}];
  }

  // An input that the chunk before it left: in the frame of that chunk and micro-batch, which is still its own.
  void use_input(const Task& task, std::size_t id) {
    const int before = role_.chunks[static_cast<std::size_t>(task.chunk)].input_from;
    if ((before < 0) != (task.input_frame < 0)) return say(id, "has its input here and elsewhere, or nowhere");
    if (before < 0) return;
    const Frame& frame = at(frames_, before, task.input_frame);
    if (!frame.taken || frame.owner != Owner{before, task.micro_batch}) {
      say(id, fmt::format("reads its input in frame {}, which is not that of chunk {}", task.input_frame, before));
    }
  }

  void say(std::size_t id, const std::string& what) {
    problems_.push_back(fmt::format("stage {} task {} ({}) {}", role_.stage, id, describe(role_.tasks[id]), what));
  }

  void take(Frames& frames, const Task& task, int number, Owner owner, std::size_t id) {
    Frame& frame = at(frames, task, number);
    if (frame.taken) {
      say(id, fmt::format("takes frame {} while chunk {} micro-batch {} needs it", number, frame.owner.first,
                          frame.owner.second));
    }
    frame.owner = owner;
    frame.taken = true;
  }

  void use(Frames& frames, const Task& task, int number, Owner owner, std::size_t id) {
    const Frame& frame = at(frames, task, number);
    if (!frame.taken || frame.owner != owner) say(id, fmt::format("runs in frame {}, which is not its own", number));
  }

  void free(Frames& frames, const Task& task, int number, std::size_t id) {
    Frame& frame = at(frames, task, number);
    frame.taken = false;
    frame.last = static_cast<int>(id);
  }

  // It writes while other work of the stage goes on: only a dependency delays it. Waiting for the send after the last
  // pass is as good, unless that pass is the second half, which the send does not wait for.
  void receive(const Task& task, std::size_t id) {
    const Frame& frame = at(frames_, task, task.frame);
    if (frame.taken) say(id, fmt::format("receives into frame {}, which is in use", task.frame));
    if (frame.last < 0) return;
    const auto awaits = [&](const Task& waiter, int last) {
      return std::any_of(waiter.after.begin(), waiter.after.end(), [&](const Dependency& d) { return d.task == last; });
    };
    const bool directly = awaits(task, frame.last);
    const bool behind_send = std::any_of(task.after.begin(), task.after.end(), [&](const Dependency& d) {
      const Task& other = role_.tasks[static_cast<std::size_t>(d.task)];
      return other.kind == TaskKind::kSend && awaits(other, frame.last);
    });
    if (!directly && !behind_send) {
      say(id, fmt::format("does not wait for task {} ({}), which reads its frame", frame.last,
                          describe(role_.tasks[static_cast<std::size_t>(frame.last)])));
    }
  }

  const Program& program_;
  const Role& role_;
  std::vector<std::string>& problems_;
  Frames frames_, delayed_;
};

}  // namespace

void check_frames(const Program& program, std::vector<std::string>& problems) {
  for (const Role& role : program.roles) FrameChecker(program, role, problems).check();
}

}  // namespace trivium::program
