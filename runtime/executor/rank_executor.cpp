#include "runtime/executor/rank_executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "program/context.h"
#include "runtime/cpu/kernels.h"
#include "runtime/executor/exchange.h"
#include "runtime/executor/initialise.h"

namespace trivium::runtime {
namespace {

using program::Group;
using program::Op;
using program::OpKind;
using program::Space;
using program::Task;
using program::TaskKind;

constexpr int kGroups = static_cast<int>(Group::kWorld) + 1;
constexpr std::int64_t kPsPerNs = 1000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RankExecutor::RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus)
    : program_(program),
      communicator_(communicator),
      corpus_(corpus),
      at_(program.mesh.coordinates(communicator.rank())),
      shard_rank_(program.mesh.shard_rank(communicator.rank())),
      role_(program.role_of(communicator.rank())),
      arenas_(program, role_),
      sampler_(corpus.tokens(), program.job.training.sequence, program.job.training.seed),
      groups_(kGroups, -1),
      members_(kGroups),
      places_(kGroups, 0),
      transfers_(role_.tasks.size(), Transfer::kIdle),
      posted_ns_(role_.tasks.size(), 0) {
  for (const Group group : {Group::kTensor, Group::kContext, Group::kData, Group::kShard, Group::kReplica,
                            Group::kExpert, Group::kExpertData, Group::kEmbedding, Group::kModel, Group::kWorld}) {
    const auto g = static_cast<std::size_t>(group);
    members_[g] = program.mesh.members(group, rank());
    const auto here = std::find(members_[g].begin(), members_[g].end(), rank());
    places_[g] = static_cast<int>(here - members_[g].begin());
    if (here != members_[g].end()) groups_[g] = communicator.make_group(members_[g]);
  }
  for (const program::Body& body : program.bodies) {
    auto& kernels = kernels_.emplace_back();
    for (const Op& op : body.ops) {
      kernels.push_back(program::is_communication(op.kind) ? nullptr : cpu::find_kernel(op.kind, op.dtype));
    }
  }
  initialise_parameters(program, role_, at_.tensor, shard_rank_, program.mesh.expert_rank(at_), arenas_);
}

RankExecutor::Outcome RankExecutor::step(const StepValues& values, std::vector<program::Event>* events) {
  values_ = values;
  events_ = events;
  optimizer_begun_ = false;
  std::fill(transfers_.begin(), transfers_.end(), Transfer::kIdle);
  auto* scalars = reinterpret_cast<double*>(arenas_.space(Space::kScalar));
  std::fill(scalars, scalars + 3, 0.0);
  const int world = groups_[static_cast<std::size_t>(Group::kWorld)];
  communicator_.barrier(world);
  step_start_ns_ = now_ns();
  // One start for all ranks: they share the machine's monotonic clock.
  communicator_.broadcast(world, &step_start_ns_, sizeof step_start_ns_, 0);
  for (const program::Issue& issue : role_.order) {
    const Task& task = role_.tasks[static_cast<std::size_t>(issue.task)];
    await(task, issue.segment);
    task.transfer >= 0 ? post(issue.task) : run_segment(issue.task, issue.segment);
  }
  for (std::size_t t = 0; t < role_.tasks.size(); ++t) finish_transfer(static_cast<std::int32_t>(t));

  // A last-stage rank holds its replica's loss, a stage with mixture layers their balance; tensor ranks the same one.
  const bool counts = at_.tensor == 0;
  double loss = counts ? scalars[0] : 0;
  communicator_.all_reduce(world, &loss, 1, program::DType::kFp64, program::Reduction::kSum);
  return {loss, std::sqrt(scalars[1] + scalars[2])};
}

// What the segment waits for: work of this host is done already, as it comes earlier in the order; transfers may be
// under way.
void RankExecutor::await(const Task& task, int segment) {
  for (const program::Dependency& d : task.after) {
    if (d.before == segment) finish_transfer(d.task);
  }
}

void RankExecutor::run_segment(std::int32_t task_id, int segment_id) {
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  if (task.kind == TaskKind::kForward && segment_id == 0) read_samples(task);
  if (task.kind == TaskKind::kOptimizer && !optimizer_begun_) {
    optimizer_begun_ = true;
    if (before_optimizer_) before_optimizer_();
  }
  const program::Body& body = program_.body_of(task);
  const program::Segment& segment = body.segments[static_cast<std::size_t>(segment_id)];
  for (int i = segment.begin; i < segment.end; ++i) {
    const Op& op = body.ops[static_cast<std::size_t>(i)];
    const std::int64_t start = now_ns();
    if (program::is_communication(op.kind)) {
      run_collective(task, op, i);
    } else {
      KernelArguments a;
      a.op = &op;
      for (std::size_t j = 0; j < op.in.size(); ++j)
        a.in[j] = arenas_.address(task.chunk, op.in[j], task.frame, task.delayed_frame);
      for (std::size_t j = 0; j < op.out.size(); ++j)
        a.out[j] = arenas_.address(task.chunk, op.out[j], task.frame, task.delayed_frame);
      a.tensor_rank = at_.tensor;
      a.tensor_ranks = program_.mesh.tensor();
      const bool of_experts =
          op.bucket >= 0 && program_.kind_of(body).buckets[static_cast<std::size_t>(op.bucket)].expert;
      a.shard_rank = of_experts ? place_in(Group::kExpertData) : shard_rank_;
      a.shard_replica = program_.mesh.shard_replica(rank());
      a.expert_rank = program_.mesh.expert_rank(at_);
      if (program_.job.model.experts) a.balance_loss = program_.job.model.experts->balance_loss;
      a.context_rank = at_.context;
      a.context_ranks = program_.mesh.context();
      a.context_method = program_.job.plan.context_method;
      a.kind = &program_.kind_of(body);
      for (std::size_t s = 0; s < program::kSpaces; ++s) {
        a.chunk_base[s] = arenas_.base(task.chunk, static_cast<Space>(s), task.frame);
      }
      a.optimizer = &program_.job.training.optimizer;
      a.values = &values_;
      a.vocabulary = program_.job.model.vocab;
      kernels_[static_cast<std::size_t>(task.body)][static_cast<std::size_t>(i)](a);
    }
    note(task_id, i, op.lane, start, now_ns());
  }
}

void RankExecutor::run_collective(const Task& task, const Op& op, int number) {
  const int group = groups_[static_cast<std::size_t>(op.group)];
  std::byte* in = arenas_.address(task.chunk, op.in[0], task.frame, task.delayed_frame);
  std::byte* out = arenas_.address(task.chunk, op.out[0], task.frame, task.delayed_frame);
  const std::int64_t part_bytes = op.elements / program_.mesh.group_size(op.group) * size_of(op.dtype);
  std::byte* own_part = in + place_in(op.group) * part_bytes;  // of a bucket that is reduced or gathered where it lies
  switch (op.kind) {
    case OpKind::kAllReduce: {
      const std::int64_t count = op.reduction == program::Reduction::kPairSum ? op.elements / 2 : op.elements;
      // Shard groups add the parts that each left inside its whole bucket; shards lie apart and are named themselves.
      const program::Buffer& named =
          program_.kind_of(program_.body_of(task)).buffers[static_cast<std::size_t>(op.out[0])];
      const bool inside = op.group == Group::kReplica && op.elements < named.elements;
      communicator_.all_reduce(group, inside ? out + shard_rank_ * op.elements * size_of(op.dtype) : out, count,
                               op.dtype, op.reduction);
      break;
    }
    case OpKind::kReduceScatter:
      communicator_.reduce_scatter(group, in, in == out ? own_part : out, op.elements, op.dtype);
      break;
    case OpKind::kAllGather:
      communicator_.all_gather(group, in == out ? own_part : in, out, op.elements, op.dtype);
      break;
    case OpKind::kAllToAll:
      all_to_all(communicator_, members_[static_cast<std::size_t>(op.group)], in, out, part_bytes, number);
      break;
    case OpKind::kRingShift:
      ring_shift(communicator_, members_[static_cast<std::size_t>(op.group)], in, out, op.elements * size_of(op.dtype),
                 number);
      break;
    default:
      break;
  }
}

int RankExecutor::peer_rank(const Task& task) const {
  program::Coordinates other = at_;
  other.pipeline = task.peer_stage;
  return program_.mesh.rank(other);
}

void RankExecutor::post(std::int32_t task_id) {
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  const Op& op = program_.body_of(task).ops.front();
  const std::int64_t bytes = op.elements * size_of(op.dtype);
  posted_ns_[static_cast<std::size_t>(task_id)] = now_ns();
  if (task.kind == TaskKind::kSend) {
    communicator_.post_send(peer_rank(task), task.transfer, arenas_.address(task.chunk, op.in[0], task.frame), bytes);
  } else {
    communicator_.post_recv(peer_rank(task), task.transfer, arenas_.address(task.chunk, op.out[0], task.frame), bytes);
  }
  transfers_[static_cast<std::size_t>(task_id)] = Transfer::kPosted;
}

void RankExecutor::finish_transfer(std::int32_t task_id) {
  Transfer& state = transfers_[static_cast<std::size_t>(task_id)];
  if (state != Transfer::kPosted) return;
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  if (task.kind == TaskKind::kSend) {
    communicator_.wait_send(peer_rank(task), task.transfer);
  } else {
    communicator_.wait_recv(peer_rank(task), task.transfer);
  }
  state = Transfer::kDone;
  note(task_id, 0, program::Lane::kPipeline, posted_ns_[static_cast<std::size_t>(task_id)], now_ns());
}

// Samples are numbered through the whole training, so that every layout reads the same ones: micro-batch by micro-batch
// over the replicas.
void RankExecutor::read_samples(const Task& task) {
  const program::ChunkKind& kind = program_.kind_of(program_.body_of(task));
  if (!kind.embedding && !kind.head) return;
  const std::int64_t sequence = program_.job.training.sequence, batch = program_.job.plan.micro_batch;
  std::byte* ids = nullptr;
  std::byte* labels = nullptr;
  for (const program::Buffer& buffer : kind.buffers) {
    if (buffer.space != Space::kTokens) continue;
    std::byte* at = arenas_.base(task.chunk, Space::kTokens, task.frame) + buffer.offset;
    (buffer.name == "ids" ? ids : labels) = at;
  }
  const int context = program_.mesh.context();
  const std::int64_t local = sequence / context;
  std::vector<std::int32_t> sample_ids(static_cast<std::size_t>(sequence)), sample_labels(sample_ids.size());
  const std::int64_t first =
      values_.step * program_.job.training.global_batch + (task.micro_batch * program_.mesh.data() + at_.data) * batch;
  for (std::int64_t i = 0; i < batch; ++i) {
    data::read_sample(corpus_, sampler_.start_of(first + i), sample_ids, sample_labels);
    const auto keep_own = [&](std::byte* base, const std::vector<std::int32_t>& whole) {
      if (base == nullptr) return;
      auto* own = reinterpret_cast<std::int32_t*>(base) + i * local;
      for (std::int64_t t = 0; t < local; ++t) {
        own[t] = whole[static_cast<std::size_t>(
            program::context_position(program_.job.plan.context_method, t, sequence, at_.context, context))];
      }
    };
    keep_own(ids, sample_ids);
    keep_own(labels, sample_labels);
  }
}

void RankExecutor::note(std::int32_t task, std::int32_t op, program::Lane lane, std::int64_t start, std::int64_t end) {
  if (events_ == nullptr) return;
  const auto since = [&](std::int64_t ns) { return std::max<std::int64_t>(0, ns - step_start_ns_) * kPsPerNs; };
  events_->push_back({static_cast<std::int32_t>(values_.step), rank(), task, op, lane, since(start), since(end), 0});
}

}  // namespace trivium::runtime
