#include "program/lower/role_tasks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/lower/gradient_tasks.h"
#include "program/lower/offload_tasks.h"
#include "program/lower/sharding_tasks.h"
#include "program/schedules/slots.h"

namespace trivium::program {
namespace {

class TaskWriter {
 public:
  TaskWriter(const Program& program, Role& role)
      : program_(program), role_(role), sharded_(program, role), offloaded_(program, role), gradients_(program, role) {}

  void write() {
    const Plan& plan = program_.job.plan;
    const auto slots = schedule_of(plan.schedule, role_.stage, plan.pipeline, plan.virtual_stages,
                                   program_.micro_batches, plan.overlap.expert);
    last_backward_.assign(role_.chunks.size(), -1);
    for (Chunk& chunk : role_.chunks) {
      std::vector<int> alike;
      for (std::size_t c = 0; c < role_.chunks.size(); ++c) {
        if (role_.chunks[c].kind == chunk.kind) alike.push_back(static_cast<int>(c));
      }
      chunk.frames = frames_needed(slots, alike);
      frames_[chunk.kind].resize(static_cast<std::size_t>(chunk.frames));
      chunk.deferred_frames = deferred_frames_needed(slots, alike);
      delayed_[chunk.kind].resize(static_cast<std::size_t>(chunk.deferred_frames), kNobody);
    }
    role_.tasks.reserve(slots.size() * 4 + 64);  // a pass with a receive and a gather before, a send after; the step
    sharded_.gather_first();
    for (const Slot& slot : slots) {
      if (slot.weights) {
        backward_weights(slot);
      } else if (slot.forward) {
        forward(slot);
        if (slot.pair) beside_ = last_passes_.back();
      } else {
        backward(slot);
      }
    }
    write_optimizer();
  }

 private:
  using Occupant = std::pair<int, std::int64_t>;  // chunk and micro-batch
  static constexpr std::int64_t kFree = -1;
  static constexpr Occupant kNobody{-1, kFree};

  /// What last used a frame, and who still reads its buffers.
  struct FrameState {
    std::int64_t micro_batch = kFree;  // occupant
    int chunk = -1;
    int forward = -1, sent_forward = -1, backward = -1, sent_backward = -1;
    int weights = -1;  // second half of the backward, where it is split
  };

  const ChunkTemplate& kind_of(int chunk) const {
    return program_.kinds[static_cast<std::size_t>(role_.chunks[static_cast<std::size_t>(chunk)].kind)];
  }

  int add(TaskKind kind, int body, int chunk) {
    Task task;
    task.kind = kind;
    task.body = body;
    task.chunk = static_cast<std::int16_t>(chunk);
    role_.tasks.push_back(std::move(task));
    return static_cast<int>(role_.tasks.size()) - 1;
  }

  void wait(int task, int for_task, std::int16_t segment = kWholeTask, std::int16_t before = 0) {
    if (for_task < 0) return;
    std::vector<Dependency>& after = role_.tasks[static_cast<std::size_t>(task)].after;
    if (after.empty()) after.reserve(2);  // most passes wait for two: what they receive, and a place to put it
    after.push_back({for_task, segment, before});
  }

  int add_transfer(TaskKind kind, int body, const Slot& slot, int frame, int boundary, bool is_backward) {
    const int position = role_.chunks[static_cast<std::size_t>(slot.chunk)].position;
    const int other = boundary == position ? position + 1 : boundary;  // chunk at the other end
    const int id = add(kind, body, slot.chunk);
    Task& task = role_.tasks.back();
    task.frame = static_cast<std::int16_t>(frame);
    task.micro_batch = static_cast<std::int32_t>(slot.micro_batch);
    task.peer_stage = program_.job.plan.stage_of(other);
    const int crossed = role_.replica_kind * program_.job.plan.chunks() + boundary;  // numbered over all kinds
    task.transfer =
        static_cast<std::int32_t>((crossed * 2 + (is_backward ? 1 : 0)) * program_.micro_batches + slot.micro_batch);
    return id;
  }

  // After a receive: what the pass waits for.
  int gather_received(int received, int body, const Slot& slot, int frame) {
    if (body < 0) return received;
    const int id = add(TaskKind::kGatherReceived, body, slot.chunk);
    role_.tasks.back().frame = static_cast<std::int16_t>(frame);
    role_.tasks.back().micro_batch = static_cast<std::int32_t>(slot.micro_batch);
    wait(id, received);
    return id;
  }

  int add_pass(TaskKind kind, int body, const Slot& slot, int frame) {
    const int id = add(kind, body, slot.chunk);
    // The workspace is one for all bodies: a collective that could run ahead of the compute lane waits like the rest.
    const Plan& plan = program_.job.plan;
    const bool ring = plan.context > 1 && plan.context_method == ContextMethod::kRing;
    const bool runs_ahead = plan.overlap.tensor || ring;
    if (beside_ < 0) before_passes_ = std::exchange(last_passes_, {});
    for (const int before : before_passes_) wait(id, runs_ahead ? before : -1);
    last_passes_.push_back(id);
    role_.tasks[static_cast<std::size_t>(id)].beside = std::exchange(beside_, -1);
    role_.tasks.back().frame = static_cast<std::int16_t>(frame);
    role_.tasks.back().micro_batch = static_cast<std::int32_t>(slot.micro_batch);
    return id;
  }

  // The frame in which a micro-batch is of a chunk of the stage; null: in none.
  const FrameState* frame_of(int chunk, std::int64_t micro_batch) const {
    const auto& frames = frames_.at(role_.chunks[static_cast<std::size_t>(chunk)].kind);
    const auto found = std::find_if(frames.begin(), frames.end(), [&](const FrameState& f) {
      return f.micro_batch == micro_batch && f.chunk == chunk;
    });
    return found == frames.end() ? nullptr : &*found;
  }

  // A pass of a chunk whose input lies in the frame of the chunk before it.
  void use_input_of(int chunk, int task, const Slot& slot) {
    const FrameState* before = frame_of(chunk, slot.micro_batch);
    const auto& frames = frames_.at(role_.chunks[static_cast<std::size_t>(chunk)].kind);
    role_.tasks[static_cast<std::size_t>(task)].input_frame = static_cast<std::int16_t>(before - frames.data());
    wait(task, before->forward);
  }

  bool stays_behind(int chunk) const {  // the next chunk takes the output from its frame
    const Chunk& here = role_.chunks[static_cast<std::size_t>(chunk)];
    return program_.job.plan.stays(here.position + 1) && !kind_of(chunk).head;
  }

  void forward(const Slot& slot) {
    auto& frames = frames_[role_.chunks[static_cast<std::size_t>(slot.chunk)].kind];
    const int input_from = role_.chunks[static_cast<std::size_t>(slot.chunk)].input_from;
    const auto free = std::find_if(frames.begin(), frames.end(), [](const FrameState& f) { return f.micro_batch < 0; });
    const int index = static_cast<int>(free - frames.begin());
    const ChunkTemplate& kind = kind_of(slot.chunk);
    const int position = role_.chunks[static_cast<std::size_t>(slot.chunk)].position;
    int received = -1;
    if (kind.recv_forward >= 0 && input_from < 0) {
      received = add_transfer(TaskKind::kRecv, kind.recv_forward, slot, index, position - 1, false);
      wait(received, free->sent_backward >= 0 ? free->sent_backward : free->backward);
      wait(received, free->weights);
      received = gather_received(received, kind.gather_forward, slot, index);
    }
    const bool first = slot.micro_batch == 0 && kind.forward_first >= 0;
    const int task = add_pass(TaskKind::kForward, first ? kind.forward_first : kind.forward, slot, index);
    wait(task, received);
    if (input_from >= 0) use_input_of(input_from, task, slot);
    sharded_.around_pass(task);
    offloaded_.around_pass(task);
    *free = FrameState{slot.micro_batch, slot.chunk, task};
    if (kind.send_forward >= 0 && !stays_behind(slot.chunk)) {
      free->sent_forward = add_transfer(TaskKind::kSend, kind.send_forward, slot, index, position, false);
      wait(free->sent_forward, task);
    }
  }

  void backward(const Slot& slot) {
    auto& frames = frames_[role_.chunks[static_cast<std::size_t>(slot.chunk)].kind];
    const auto frame = std::find_if(frames.begin(), frames.end(), [&](const FrameState& f) {
      return f.micro_batch == slot.micro_batch && f.chunk == slot.chunk;
    });
    const int index = static_cast<int>(frame - frames.begin());
    const ChunkTemplate& kind = kind_of(slot.chunk);
    const int position = role_.chunks[static_cast<std::size_t>(slot.chunk)].position;
    const int input_from = role_.chunks[static_cast<std::size_t>(slot.chunk)].input_from;
    int received = -1;
    if (stays_behind(slot.chunk)) {
      received = gradient_left_.at(slot.micro_batch);
    } else if (kind.recv_backward >= 0) {
      received = add_transfer(TaskKind::kRecv, kind.recv_backward, slot, index, position, true);
      wait(received, frame->sent_forward);  // the gradient comes into the buffer that the output left
      received = gather_received(received, kind.gather_backward, slot, index);
    }
    const bool splits = kind.backward_weights >= 0 && !slot.whole;
    const int task = add_pass(TaskKind::kBackward, slot.whole ? kind.backward_whole : kind.backward, slot, index);
    wait(task, received);
    if (input_from >= 0) {
      use_input_of(input_from, task, slot);
      gradient_left_[slot.micro_batch] = task;
    }
    sharded_.around_pass(task);
    offloaded_.around_pass(task);
    frame->backward = task;
    if (splits) {
      auto& delayed = delayed_[role_.chunks[static_cast<std::size_t>(slot.chunk)].kind];
      const auto free = std::find(delayed.begin(), delayed.end(), kNobody);
      *free = {slot.chunk, slot.micro_batch};
      role_.tasks[static_cast<std::size_t>(task)].deferred_frame = static_cast<std::int16_t>(free - delayed.begin());
    } else {
      frame->micro_batch = kFree;
    }
    if (kind.send_backward >= 0 && input_from < 0) {
      frame->sent_backward = add_transfer(TaskKind::kSend, kind.send_backward, slot, index, position - 1, true);
      wait(frame->sent_backward, task);
    }
    last_backward_[static_cast<std::size_t>(slot.chunk)] = task;
    last_task_ = task;
    use_gradients(task, slot, !splits);
  }

  // The other half of a split backward: after it the micro-batch's frames are free.
  void backward_weights(const Slot& slot) {
    auto& frames = frames_[role_.chunks[static_cast<std::size_t>(slot.chunk)].kind];
    auto& delayed = delayed_[role_.chunks[static_cast<std::size_t>(slot.chunk)].kind];
    const auto frame = std::find_if(frames.begin(), frames.end(), [&](const FrameState& f) {
      return f.micro_batch == slot.micro_batch && f.chunk == slot.chunk;
    });
    const auto kept = std::find(delayed.begin(), delayed.end(), Occupant{slot.chunk, slot.micro_batch});
    const int task = add_pass(TaskKind::kBackwardWeights, kind_of(slot.chunk).backward_weights, slot,
                              static_cast<int>(frame - frames.begin()));
    role_.tasks[static_cast<std::size_t>(task)].deferred_frame = static_cast<std::int16_t>(kept - delayed.begin());
    wait(task, frame->backward);
    sharded_.around_pass(task);
    frame->weights = task;
    frame->micro_batch = kFree;
    *kept = kNobody;
    last_backward_[static_cast<std::size_t>(slot.chunk)] = task;
    last_task_ = task;
    use_gradients(task, slot, true);
  }

  // Offloaded gradients that a backward, or its reductions, add to, in the order in which it finishes the buckets. What
  // is reduced during the last backward is reduced while it is resident.
  void use_gradients(int task, const Slot& slot, bool whole) {
    if (!gradients_.is_offloaded()) return;
    const ChunkTemplate& kind = kind_of(slot.chunk);
    const bool last = whole && slot.micro_batch + 1 == program_.micro_batches;
    const bool reduces = last && program_.job.plan.overlap.gradient_reduction;
    const auto ranges =
        gradient_writers(program_, program_.body_of(role_.tasks[static_cast<std::size_t>(task)]), false);
    for (const std::size_t b : buckets_in_order(ranges, &SegmentRange::last)) {
      if (kind.buckets[b].gradient_slot >= 0) {
        gradients_.use(sharded_.last_reduction(slot.chunk, b), b);
      } else if (reduces && kind.reduce[b] >= 0 && !joins_stages(kind.reduce[b])) {
        gradients_.use(task, ranges[b], b, GradientTasks::Behind::kStoredLater);
        reduced_[{slot.chunk, b}] = reduce(slot.chunk, b);
      } else {
        gradients_.use(task, ranges[b], b, GradientTasks::Behind::kStored);
      }
    }
  }

  // A reduction that waits for another stage must not hold up a backward that the other stage waits for.
  bool joins_stages(int body) const {
    const auto& ops = program_.bodies[static_cast<std::size_t>(body)].ops;
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.group == Group::kEmbedding; });
  }

  // Sums what is kept whole of a bucket's gradients over ranks.
  int reduce(int chunk, std::size_t bucket) {
    const ChunkTemplate& kind = kind_of(chunk);
    const int task = add(TaskKind::kReduceGradients, kind.reduce[bucket], chunk);
    if (program_.job.plan.overlap.gradient_reduction) {
      const int backward = last_backward_[static_cast<std::size_t>(chunk)];
      const Body& body = program_.body_of(role_.tasks[static_cast<std::size_t>(backward)]);
      wait(task, backward, body.end_of(kind.parts() - 1 - kind.buckets[bucket].first_segment));
    } else {
      wait(task, last_task_);
    }
    if (is_tied(chunk, bucket)) wait(task, tied_);
    gradients_.use(task, bucket);
    return task;
  }

  // Whether it holds a weight with a second copy on the stage, whose gradient is added to this one's before.
  bool is_tied(int chunk, std::size_t bucket) const {
    return tied_ >= 0 && holds_end(kind_of(chunk), kind_of(chunk).buckets[bucket]);
  }

  // Adds the gradients of a tied weight's two copies after the last backwards.
  void tie() {
    if (kind_of(0).tie < 0) return;
    tied_ = add(TaskKind::kReduceGradients, kind_of(0).tie, 0);
    for (const int backward : last_backward_) wait(tied_, backward);
  }

  // Buckets are reduced from the last to the first, as the backward reaches them; with overlap each as soon as the last
  // micro-batch left its segments, else all after the stage's last backward.
  void write_optimizer() {
    const int chunks = static_cast<int>(role_.chunks.size());
    tie();
    std::vector<int> reduced;
    if (tied_ >= 0) reduced.push_back(tied_);
    std::vector<std::pair<int, std::size_t>> order;
    for (int chunk = chunks - 1; chunk >= 0; --chunk) {
      for (std::size_t bucket = kind_of(chunk).buckets.size(); bucket-- > 0;) order.emplace_back(chunk, bucket);
    }
    // Both copies of a tied weight wait for the last backward of the stage: they hold up no other.
    std::stable_partition(order.begin(), order.end(), [&](const auto& b) { return !is_tied(b.first, b.second); });
    for (const auto& [chunk, bucket] : order) {
      const ChunkTemplate& kind = kind_of(chunk);
      if (kind.buckets[bucket].gradient_slot >= 0) {
        reduced.push_back(sharded_.finish_reduction(chunk, static_cast<int>(bucket)));
        if (kind.reduce_replicas[bucket] >= 0) gradients_.use(reduced.back(), bucket);
      } else if (const auto done = reduced_.find({chunk, bucket}); done != reduced_.end()) {
        reduced.push_back(done->second);
      } else if (kind.reduce[bucket] >= 0) {
        reduced.push_back(reduce(chunk, bucket));
      }
    }
    std::vector<int> norms;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int task = add(TaskKind::kGradientNorm, kind_of(chunk).norm, chunk);
      for (const int done : reduced) wait(task, done);
      wait(task, last_task_);
      for (std::size_t bucket = 0; bucket < kind_of(chunk).buckets.size(); ++bucket) {
        const auto segment = static_cast<std::int16_t>(bucket);
        gradients_.use(task, {segment, segment}, bucket, GradientTasks::Behind::kUnchanged);
      }
      norms.push_back(task);
    }
    int norm = norms.back();
    if (kind_of(0).norm_reduce >= 0) {
      norm = add(TaskKind::kNormReduce, kind_of(0).norm_reduce, 0);
      for (const int done : norms) wait(norm, done);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const ChunkTemplate& kind = kind_of(chunk);
      const int step = add(TaskKind::kOptimizer, kind.optimizer, chunk);
      wait(step, norm);
      offloaded_.around_step(step, [&](std::size_t slot) { return sharded_.last_staged(chunk, slot); });
      for (std::size_t bucket = 0; bucket < kind.buckets.size(); ++bucket) {
        const auto segment = static_cast<std::int16_t>(bucket);
        gradients_.use(step, {segment, segment}, bucket, GradientTasks::Behind::kStored);
        if (kind.gather[bucket] < 0 || sharded_.gathers_in_passes()) continue;
        const int gather = add(TaskKind::kGatherParameters, kind.gather[bucket], chunk);
        wait(gather, step, static_cast<std::int16_t>(bucket));
      }
    }
  }

  const Program& program_;
  Role& role_;
  std::map<int, std::vector<FrameState>> frames_;  // by chunk template
  std::map<int, std::vector<Occupant>> delayed_;   // by chunk template: who is in every frame of Space::kDeferred
  std::map<std::int64_t, int> gradient_left_;      // by micro-batch: backward of a chunk with Chunk::input_from
  std::vector<int> last_backward_;
  ShardedTasks sharded_;
  OffloadTasks offloaded_;
  GradientTasks gradients_;
  std::map<std::pair<int, std::size_t>, int> reduced_;  // by chunk and bucket: during the last backward
  int tied_ = -1;                                       // the task that adds the gradients of a tied weight's copies
  int last_task_ = -1;
  std::vector<int> last_passes_;    // one, or two that take turns
  std::vector<int> before_passes_;  // those before them
  int beside_ = -1;                 // a forward whose backward comes next and takes turns with it
};

}  // namespace

void add_tasks(const Program& program, Role& role) { TaskWriter(program, role).write(); }

void lay_out_memory(const Program& program, Role& role) {
  role.bytes.fill(0);
  for (Chunk& chunk : role.chunks) {
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    for (std::size_t space = 0; space < kSpaces; ++space) {
      const auto which = static_cast<Space>(space);
      if (is_workspace(which)) {  // one at a time: bodies of the compute lane overlap in pairs alone
        chunk.base[space] = 0;
        role.bytes[space] = std::max(role.bytes[space], kind.bytes[space]);
        continue;
      }
      if (which == Space::kScalar) {
        chunk.base[space] = 0;
        role.bytes[space] = 3 * size_of(DType::kFp64);  // loss, and the norm as a pair
        continue;
      }
      const bool framed = which == Space::kFrame || which == Space::kTokens || which == Space::kDeferred ||
                          which == Space::kOffloadedActivation;
      const bool shared = framed || which == Space::kGathered;
      const auto alike = std::find_if(role.chunks.begin(), role.chunks.end(),
                                      [&](const Chunk& other) { return other.kind == chunk.kind; });
      if (shared && &*alike != &chunk) {  // with the first chunk of the kind
        chunk.base[space] = alike->base[space];
        continue;
      }
      chunk.base[space] = role.bytes[space];
      const int frames = which == Space::kDeferred ? chunk.deferred_frames : framed ? chunk.frames : 1;
      role.bytes[space] += kind.bytes[space] * frames;
    }
  }
}

}  // namespace trivium::program
