#include "program/verify/verify_sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "program/ir/text.h"
#include "program/lower/sharding.h"

namespace trivium::program {
namespace {

// A stage's passes one after the other, with what lies in each slot. A slot is (chunk template, offset).
class SlotChecker {
 public:
  SlotChecker(const Program& program, const Role& role, std::vector<std::string>& problems)
      : program_(program), role_(role), problems_(problems) {
    for (std::size_t id = 0; id < role.tasks.size(); ++id) {
      const Task& task = role.tasks[id];
      moving_.insert({{task.body, task.chunk, task.micro_batch}, static_cast<int>(id)});
    }
  }

  void run() {
    for (std::size_t id = 0; id < role_.tasks.size(); ++id) {
      const Task& task = role_.tasks[id];
      if (task.kind == TaskKind::kFetch) fetch_for_step(static_cast<int>(id));
      if (!is_pass(task.kind)) continue;
      read_parameters(static_cast<int>(id));
      if (task.kind != TaskKind::kForward) write_gradients(static_cast<int>(id));
    }
  }

 private:
  using Slot = std::pair<int, std::int64_t>;
  struct User {
    int task = -1;
    std::int16_t segment = kWholeTask;
  };

  static bool is_pass(TaskKind kind) {
    return kind == TaskKind::kForward || kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeights;
  }
  const Task& task_of(int id) const { return role_.tasks[static_cast<std::size_t>(id)]; }
  int kind_index(const Task& task) const { return role_.chunks[static_cast<std::size_t>(task.chunk)].kind; }

  void complain(int id, const std::string& what) {
    problems_.push_back(fmt::format("stage {} task {} ({}) {}", role_.stage, id, describe(task_of(id)), what));
  }

  // Whether `id`, at segment `before` or earlier, waits for `segment` of `task` or a later place of the compute lane.
  bool waits(int id, std::int16_t before, const User& user) const {
    const auto& after = task_of(id).after;
    return std::any_of(after.begin(), after.end(), [&](const Dependency& d) {
      const bool pass = is_pass(task_of(d.task).kind);
      if (d.before > before || (d.task != user.task && (!pass || d.task < user.task))) return false;
      return d.task > user.task || d.segment == kWholeTask || d.segment >= user.segment;
    });
  }

  // The bucket's collective of this pass that comes with it, or with its use after `before` other ones: the bodies say
  // which bucket it moves.
  int partner(const std::vector<int>& bodies, std::size_t bucket, int pass, bool gather, int before = 0) const {
    const auto waits_for = [&](int id, int other) {
      const auto& after = task_of(id).after;
      return std::any_of(after.begin(), after.end(), [&](const Dependency& d) { return d.task == other; });
    };
    const auto [begin, end] = moving_.equal_range({bodies[bucket], task_of(pass).chunk, task_of(pass).micro_batch});
    for (auto at = begin; at != end; ++at) {
      const bool comes = gather ? waits_for(pass, at->second) : waits_for(at->second, pass);
      if (comes && before-- == 0) return at->second;
    }
    return -1;
  }

  void read_parameters(int id) {
    const Task& task = task_of(id);
    const ChunkTemplate& kind = program_.kinds[static_cast<std::size_t>(kind_index(task))];
    std::map<std::size_t, int> seen;  // uses by bucket
    for (const auto& [b, range] : parameter_uses(program_, program_.body_of(task))) {
      const std::int64_t offset = kind.buckets[b].parameter_slot;
      if (offset < 0) continue;
      const Slot slot{kind_index(task), offset};
      const int gather = partner(kind.gather, b, id, true, seen[b]++);
      User& reader = reader_[slot];
      if (gather < 0) {
        const auto holds = content_.find(slot);
        if (holds == content_.end() || holds->second != std::pair(static_cast<int>(task.chunk), b)) {
          complain(id, fmt::format("reads bucket {} that nothing gathered", b));
        }
      } else {
        if (!waits(id, range.first, {gather, kWholeTask}))
          complain(id, fmt::format("reads bucket {} before it is gathered", b));
        const auto last = static_cast<std::int16_t>(program_.body_of(task_of(gather)).segments.size() - 1);
        if (reader.task >= 0 && !waits(gather, last, reader))
          complain(gather, fmt::format("overwrites what task {} still reads", reader.task));
        if (last > 0) stage(gather, task.chunk, b);
      }
      content_[slot] = {task.chunk, b};
      reader = {id, range.last};
    }
  }

  // A gather of offloaded parameters first brings its shard to a slot that the gather before it may still read.
  void stage(int gather, int chunk, std::size_t bucket) {
    int& before = staged_.try_emplace({chunk, bucket % 2}, -1).first->second;
    if (before >= 0 && !waits(gather, 0, {before, kWholeTask})) {
      complain(gather, fmt::format("overwrites parameters that task {} still gathers", before));
    }
    before = gather;
  }

  // The step's first two copies of parameters take those slots.
  void fetch_for_step(int id) {
    const Task& task = task_of(id);
    const auto& fetches = program_.kinds[static_cast<std::size_t>(kind_index(task))].fetch_parameter;
    for (std::size_t b = 0; b < std::min<std::size_t>(2, fetches.size()); ++b) {
      const auto gathered = staged_.find({task.chunk, b});
      if (fetches[b] != task.body || gathered == staged_.end()) continue;
      if (!waits(id, 0, {gathered->second, kWholeTask})) {
        complain(id, fmt::format("overwrites parameters that task {} still gathers", gathered->second));
      }
    }
  }

  void write_gradients(int id) {
    const Task& task = task_of(id);
    const ChunkTemplate& kind = program_.kinds[static_cast<std::size_t>(kind_index(task))];
    const auto ranges = gradient_writers(program_, program_.body_of(task));
    for (const std::size_t b : buckets_in_order(ranges, &SegmentRange::first)) {
      const std::int64_t offset = kind.buckets[b].gradient_slot;
      if (offset < 0) continue;
      const Slot slot{kind_index(task), offset};
      const int reduction = partner(kind.reduce, b, id, false);
      if (reduction < 0 || !waits(reduction, 0, {id, ranges[b].last})) {
        complain(id, fmt::format("leaves gradients of bucket {} that no reduction waits for", b));
      }
      const auto [before, fresh] = reduction_.try_emplace(slot, -1);
      if (before->second >= 0 && !waits(id, ranges[b].first, {before->second, kWholeTask})) {
        complain(id, fmt::format("writes gradients of bucket {} where task {} still sums", b, before->second));
      }
      before->second = reduction;
    }
  }

  const Program& program_;
  const Role& role_;
  std::vector<std::string>& problems_;
  std::multimap<std::tuple<int, int, int>, int> moving_;  // body, chunk and micro-batch -> task
  std::map<Slot, std::pair<int, std::size_t>> content_;   // chunk and bucket
  std::map<Slot, User> reader_;
  std::map<Slot, int> reduction_;
  std::map<std::pair<int, std::size_t>, int> staged_;  // by chunk and staging slot: the last gather
};

}  // namespace

void check_sharding(const Program& program, std::vector<std::string>& problems) {
  const Sharding sharding(program.job, program.stack);
  if (!sharding.gradients && !sharding.parameters) return;
  for (const Role& role : program.roles) SlotChecker(program, role, problems).run();
}

}  // namespace trivium::program
