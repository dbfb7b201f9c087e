#include "program/verify/verify_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "program/ir/text.h"
#include "program/lower/sharding.h"

namespace trivium::program {
namespace {

/// One stage's uses of gradients in the order in which they take place.
class GradientChecker {
 public:
  GradientChecker(const Program& program, const Role& role, std::vector<std::string>& problems)
      : program_(program), role_(role), problems_(problems) {
    for (std::size_t id = 0; id < role.tasks.size(); ++id) {
      const Task& task = role.tasks[id];
      if (task.kind != TaskKind::kStore && task.kind != TaskKind::kReduceGradients) continue;
      by_body_[{task.chunk, task.body}].push_back(static_cast<int>(id));
    }
  }

  void check() {
    for (std::size_t id = 0; id < role_.tasks.size(); ++id) visit(static_cast<int>(id));
    for (const auto& [at, slot] : slots_) {
      if (slot.changed) say(slot.task, fmt::format("leaves gradients of bucket {} that nothing stores", slot.bucket));
    }
  }

 private:
  struct Slot {
    int bucket = -1;
    int task = -1;  // last use, and up to which segment
    std::int16_t segment = kWholeTask;
    int store = -1;        // that may still read it
    bool changed = false;  // and not stored since
  };

  const Task& task_at(int id) const { return role_.tasks[static_cast<std::size_t>(id)]; }
  const ChunkTemplate& kind_of(const Task& task) const {
    return program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(task.chunk)].kind)];
  }
  std::int16_t segments_of(const Task& task) const {
    return static_cast<std::int16_t>(program_.body_of(task).segments.size());
  }

  void say(int id, const std::string& what) {
    problems_.push_back(fmt::format("stage {} task {} ({}) {}", role_.stage, id, describe(task_at(id)), what));
  }

  // Whether segments [first, last] of `id` all wait for `segment` of `task`, or for a later place of it.
  bool waits(int id, std::int16_t first, std::int16_t last, int task, std::int16_t segment) const {
    const auto& after = task_at(id).after;
    for (std::int16_t s = first; s <= last; ++s) {
      const bool waited = std::any_of(after.begin(), after.end(), [&](const Dependency& d) {
        const bool late = d.segment == kWholeTask || (segment != kWholeTask && d.segment >= segment);
        return d.task == task && d.before == s && late;
      });
      if (!waited) return false;
    }
    return true;
  }

  void visit(int id) {
    const Task& task = task_at(id);
    const ChunkTemplate& kind = kind_of(task);
    switch (task.kind) {
      case TaskKind::kBackward:
      case TaskKind::kBackwardWeights:
        visit_pass(id);
        break;
      case TaskKind::kReduceGradients:
        for (std::size_t b = 0; b < kind.buckets.size(); ++b) {
          if (task.body == kind.reduce[b] || task.body == kind.reduce_replicas[b]) reduce(id, b);
        }
        break;
      case TaskKind::kGradientNorm:
      case TaskKind::kOptimizer:
        for (std::size_t b = 0; b < kind.buckets.size(); ++b) {
          const auto segment = static_cast<std::int16_t>(b);
          use(id, {segment, segment}, b, task.kind == TaskKind::kOptimizer);
        }
        break;
      default:
        break;
    }
  }

  // A bucket's gradients from a pass are reduced next, where the reduction waits for no copy or is the pass's own.
  void visit_pass(int id) {
    const Task& task = task_at(id);
    const ChunkTemplate& kind = kind_of(task);
    const auto ranges = gradient_writers(program_, program_.body_of(task), false);
    for (const std::size_t b : buckets_in_order(ranges, &SegmentRange::last)) {
      const bool whole = kind.buckets[b].gradient_slot < 0;
      if (whole) use(id, ranges[b], b, true);
      for (const int reduction : by_body_[{task.chunk, kind.reduce[b]}]) {
        const auto& after = task_at(reduction).after;
        const bool behind = std::any_of(after.begin(), after.end(), [&](const Dependency& d) { return d.task == id; });
        if (behind && !(whole && fetch_of(reduction, b) >= 0)) reduce(reduction, b);
      }
    }
  }

  void reduce(int id, std::size_t bucket) {
    if (!reduced_.insert(id).second) return;
    use(id, {0, static_cast<std::int16_t>(segments_of(task_at(id)) - 1)}, bucket, true);
  }

  int fetch_of(int id, std::size_t bucket) const {
    const Task& task = task_at(id);
    for (const Dependency& d : task.after) {
      const Task& other = task_at(d.task);
      const bool fetches = other.kind == TaskKind::kFetch && other.chunk == task.chunk;
      if (fetches && other.body == kind_of(task).fetch_gradient[bucket]) return d.task;
    }
    return -1;
  }

  void use(int id, SegmentRange range, std::size_t bucket, bool changes) {
    const Task& task = task_at(id);
    Slot& slot = slots_[{task.chunk, bucket % 2}];
    const auto [home, fresh] = stored_.try_emplace({task.chunk, bucket}, -1);
    const int fetch = fetch_of(id, bucket);
    if (fetch >= 0) {
      if (!waits(id, range.first, range.last, fetch, kWholeTask)) {
        say(id, fmt::format("does not wait for the gradients of bucket {}", bucket));
      }
      if (home->second >= 0 && !waits(fetch, 0, 0, home->second, kWholeTask)) {
        say(fetch, fmt::format("does not wait until gradients of bucket {} were stored", bucket));
      }
      const bool free = slot.store >= 0 ? waits(fetch, 0, 0, slot.store, kWholeTask)
                                        : slot.task < 0 || waits(fetch, 0, 0, slot.task, slot.segment);
      if (!free || slot.changed) say(fetch, fmt::format("overwrites gradients of bucket {}", slot.bucket));
      slot.store = -1;
    } else if (slot.bucket != static_cast<int>(bucket)) {
      say(id, fmt::format("uses gradients of bucket {} that nothing brought", bucket));
    } else if (changes && slot.store >= 0 && !waits(id, range.first, range.last, slot.store, kWholeTask)) {
      say(id, fmt::format("changes gradients of bucket {} that task {} still stores", bucket, slot.store));
    }
    const bool throughout = range.first == 0 && range.last + 1 == segments_of(task);
    const std::int16_t end = throughout ? kWholeTask : range.last;
    slot = {static_cast<int>(bucket), id, end, slot.store, changes || (fetch < 0 && slot.changed)};
    if (!changes) return;
    slot.store = -1;
    for (const int store : by_body_[{task.chunk, kind_of(task).store_gradient[bucket]}]) {
      if (!waits(store, 0, 0, id, end)) continue;
      slot.store = home->second = store;
      slot.changed = false;
    }
  }

  const Program& program_;
  const Role& role_;
  std::vector<std::string>& problems_;
  std::map<std::pair<int, int>, std::vector<int>> by_body_;  // stores and reductions by chunk and body
  std::set<int> reduced_;                                    // reductions that were visited
  std::map<std::pair<int, std::size_t>, Slot> slots_;        // by chunk and slot
  std::map<std::pair<int, std::size_t>, int> stored_;        // by chunk and bucket: the last store
};

}  // namespace

void check_away_gradients(const Program& program, std::vector<std::string>& problems) {
  if (program.job.plan.offload.gradients == Storage::kNone) return;
  for (const Role& role : program.roles) GradientChecker(program, role, problems).check();
}

}  // namespace trivium::program
