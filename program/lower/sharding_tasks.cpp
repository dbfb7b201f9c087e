#include "program/lower/sharding_tasks.h"

namespace trivium::program {

ShardedTasks::ShardedTasks(const Program& program, Role& role)
    : program_(program), role_(role), sharding_(program.job, program.stack) {}

int ShardedTasks::kind_index(const Task& task) const { return role_.chunks[static_cast<std::size_t>(task.chunk)].kind; }

const ChunkTemplate& ShardedTasks::kind_of(const Task& task) const {
  return program_.kinds[static_cast<std::size_t>(kind_index(task))];
}

const std::vector<BucketUse>& ShardedTasks::readers(int body) {
  const auto [at, fresh] = readers_.try_emplace(body);
  if (fresh) at->second = parameter_uses(program_, program_.bodies[static_cast<std::size_t>(body)]);
  return at->second;
}

const std::vector<SegmentRange>& ShardedTasks::writers(int body) {
  const auto [at, fresh] = writers_.try_emplace(body);
  if (fresh) at->second = gradient_writers(program_, program_.bodies[static_cast<std::size_t>(body)]);
  return at->second;
}

int ShardedTasks::add(TaskKind kind, int body, const Task& pass) {
  Task task;
  task.kind = kind;
  task.body = body;
  task.chunk = pass.chunk;
  task.micro_batch = pass.micro_batch;
  role_.tasks.push_back(std::move(task));
  return static_cast<int>(role_.tasks.size()) - 1;
}

void ShardedTasks::wait(int task, const Moment& moment, std::int16_t before) {
  if (moment.task < 0) return;
  role_.tasks[static_cast<std::size_t>(task)].after.push_back({moment.task, moment.segment, before});
}

void ShardedTasks::gather_first() {
  if (!sharding_.gathers_first) return;
  for (std::size_t chunk = 0; chunk < role_.chunks.size(); ++chunk) {
    Task no_pass;
    no_pass.chunk = static_cast<std::int16_t>(chunk);
    const ChunkTemplate& kind = kind_of(no_pass);
    for (std::size_t b = 0; b < kind.buckets.size(); ++b) {
      if (kind.gather[b] < 0) continue;
      gathered_first_[{static_cast<int>(chunk), b}] = add(TaskKind::kGatherParameters, kind.gather[b], no_pass);
    }
  }
}

void ShardedTasks::around_pass(int task) {
  for (const int reduction : serial_) wait(task, {reduction, kWholeTask});
  serial_.clear();
  gather(task);
  // A split backward leaves gradients in a bucket twice, as its slot is another bucket's in between.
  const TaskKind kind = role_.tasks[static_cast<std::size_t>(task)].kind;
  if (sharding_.gradients && (kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeights)) reduce(task);
  last_pass_ = task;
}

void ShardedTasks::gather(int task) {
  if (!gathers_in_passes()) return;
  const Task pass = role_.tasks[static_cast<std::size_t>(task)];
  const ChunkTemplate& kind = kind_of(pass);
  for (const auto& [b, range] : readers(pass.body)) {
    if (sharding_.gathers_first) {
      const auto first = gathered_first_.find({pass.chunk, b});
      if (first == gathered_first_.end()) continue;
      wait(task, {first->second, kWholeTask}, range.first);
      gathered_first_.erase(first);
      continue;
    }
    const Bucket& bucket = kind.buckets[b];
    if (bucket.parameter_slot < 0) continue;
    // Experts, and what is frozen, come with their layer: they are as far ahead as its bucket.
    if (!bucket.apart()) {
      reached_.push_back(range.first > 0 ? Moment{task, static_cast<std::int16_t>(range.first - 1)}
                                         : Moment{last_pass_});
    }
    auto& reader = last_reader_[{kind_index(pass), bucket.parameter_slot}];
    const bool kept = pass.kind == TaskKind::kBackward && program_.stack.keeps_end_units && holds_end(kind, bucket);
    if (!kept) {
      const int gathered = add(TaskKind::kGatherParameters, kind.gather[b], pass);
      const auto last =
          static_cast<std::int16_t>(program_.bodies[static_cast<std::size_t>(kind.gather[b])].segments.size() - 1);
      const auto ahead = static_cast<std::size_t>(sharding_.ahead);
      const auto not_before = [&](std::size_t buckets, std::int16_t segment) {
        if (reached_.size() > buckets) wait(gathered, reached_[reached_.size() - 1 - buckets], segment);
      };
      not_before(ahead, last);
      wait(gathered, reader, last);
      if (last > 0) {  // after a copy to a staging slot, one bucket further ahead
        auto& used = last_staged_[{pass.chunk, b % 2}];
        not_before(ahead + 1, 0);
        wait(gathered, used);
        used = {gathered};
      }
      wait(task, {gathered, kWholeTask}, range.first);
    }
    reader = {task, range.last};
  }
}

void ShardedTasks::reduce(int task) {
  const Task pass = role_.tasks[static_cast<std::size_t>(task)];
  const ChunkTemplate& kind = kind_of(pass);
  const auto& ranges = writers(pass.body);
  const auto segments = static_cast<std::int16_t>(program_.body_of(pass).segments.size());
  for (const std::size_t b : buckets_in_order(ranges, &SegmentRange::last)) {
    const SegmentRange range = ranges[b];
    const Bucket& bucket = kind.buckets[b];
    if (bucket.gradient_slot < 0) continue;
    const auto [before, fresh] = last_reduction_.try_emplace({kind_index(pass), bucket.gradient_slot}, -1);
    wait(task, {before->second}, range.first);
    const int reduced = add(TaskKind::kReduceGradients, kind.reduce[b], pass);
    wait(reduced, {task, range.last});
    before->second = reduced_[{pass.chunk, b}] = reduced;
    if (sharding_.overlaps_reduce) continue;
    const auto next = static_cast<std::int16_t>(range.last + 1);
    if (next < segments) {
      wait(task, {reduced}, next);
    } else {
      serial_.push_back(reduced);
    }
  }
}

int ShardedTasks::finish_reduction(int chunk, int bucket) {
  const int last = reduced_.at({chunk, static_cast<std::size_t>(bucket)});
  const Task pass = role_.tasks[static_cast<std::size_t>(last)];
  const int body = kind_of(pass).reduce_replicas[static_cast<std::size_t>(bucket)];
  if (body < 0) return last;
  Task of_step = pass;
  of_step.micro_batch = -1;
  const int task = add(TaskKind::kReduceGradients, body, of_step);
  wait(task, {last});
  if (!sharding_.overlaps_reduce) wait(task, {last_pass_});
  return task;
}

}  // namespace trivium::program
