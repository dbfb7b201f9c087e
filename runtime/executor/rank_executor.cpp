#include "runtime/executor/rank_executor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "program/ir/context.h"
#include "program/ir/op_views.h"
#include "runtime/cpu/backend.h"
#include "runtime/executor/dropout.h"
#include "runtime/executor/exchange.h"
#include "runtime/executor/initialise.h"

namespace trivium::runtime {
namespace {

using program::Group, program::kGroups;
using program::Op;
using program::OpKind;
using program::Space;
using program::Task;
using program::TaskKind;

constexpr std::int64_t kPsPerNs = 1000;
constexpr int kScalars = 3;  // loss, and the norm as a pair

}  // namespace

RankExecutor::RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                           Backend& backend, Start start)
    : program_(program),
      communicator_(communicator),
      corpus_(corpus),
      backend_(backend),
      at_(program.mesh.coordinates(communicator.rank())),
      shard_rank_(program.mesh.shard_rank(communicator.rank())),
      role_(program.role_of(communicator.rank())),
      arenas_(program, role_, backend),
      lanes_(program, role_),
      sampler_(corpus.tokens(), program.settings.batch.sequence, program.settings.seed),
      documents_(program.settings),
      groups_(kGroups, -1),
      members_(kGroups),
      places_(kGroups, 0),
      transfers_(role_.tasks.size(), Transfer::kIdle),
      transfer_times_(role_.tasks.size()),
      segments_done_(role_.tasks.size(), 0) {
  if (backend.shares_host_memory()) {
    for (const program::Issue& issue : role_.order) {
      if (role_.tasks[static_cast<std::size_t>(issue.task)].transfer >= 0) ahead_.push_back(issue.task);
    }
  }
  for (const Group group : {Group::kTensor, Group::kKeys, Group::kContext, Group::kData, Group::kShard, Group::kReplica,
                            Group::kExpert, Group::kExpertData, Group::kEmbedding, Group::kModel, Group::kWorld,
                            Group::kContextHeads, Group::kContextRing, Group::kExpertTensor}) {
    const bool nested = group == Group::kContextHeads || group == Group::kContextRing;
    if (nested && program.mesh.context_heads() == 1) continue;  // no op names them
    if (group == Group::kExpertTensor && program.mesh.expert_tensor() == program.mesh.tensor()) continue;
    const auto g = static_cast<std::size_t>(group);
    members_[g] = program.mesh.members(group, rank());
    const auto here = std::find(members_[g].begin(), members_[g].end(), rank());
    places_[g] = static_cast<int>(here - members_[g].begin());
    if (here != members_[g].end()) groups_[g] = communicator.make_group(members_[g]);
  }
  communicator.expect_transfers(lanes_of_transfers());
  if (start == Start::kFirstValues) initialise_parameters(program, rank(), backend_, arenas_);
  backend_.prepare(program);
  backend_.forget_replays();  // of other arenas
}

std::vector<Communicator::LanePeers> RankExecutor::lanes_of_transfers() const {
  std::map<program::Lane, std::set<int>> lanes;
  // Those of all ranks first, whether or not this one has peers there.
  for (const program::Role& role : program_.roles) {
    for (const Task& task : role.tasks) {
      if (task.transfer >= 0) lanes[program::Lane::kPipeline];
    }
  }
  for (const program::Body& body : program_.bodies) {
    for (const Op& op : body.ops) {
      if (is_exchange(op.kind) && program_.mesh.group_size(op.group) > 1) lanes[op.lane];
    }
  }
  std::set<int> bodies;
  for (const Task& task : role_.tasks) {
    if (task.transfer >= 0) lanes[program::Lane::kPipeline].insert(peer_rank(task));
    if (!bodies.insert(task.body).second) continue;
    for (const Op& op : program_.body_of(task).ops) {
      const auto met = exchange_peers(op.kind, members_[static_cast<std::size_t>(op.group)], rank());
      if (!met.empty()) lanes[op.lane].insert(met.begin(), met.end());
    }
  }
  std::vector<Communicator::LanePeers> all;
  for (const auto& [lane, peers] : lanes) all.push_back({lane, {peers.begin(), peers.end()}});
  return all;
}

RankExecutor::RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                           std::unique_ptr<Backend> core)
    : RankExecutor(program, communicator, corpus, *core) {
  core_ = std::move(core);
}

RankExecutor::RankExecutor(const program::Program& program, Communicator& communicator, const data::Corpus& corpus)
    : RankExecutor(program, communicator, corpus, std::make_unique<cpu::CpuBackend>()) {}

RankExecutor::Outcome RankExecutor::step(const StepValues& values, std::vector<program::Event>* events) {
  events_ = events;
  begin(values);
  execute();
  std::array<double, kScalars> scalars{};
  backend_.download(scalars.data(), arenas_.space(Space::kScalar), sizeof scalars);
  tell_events();
  return {sum_over_ranks(scalars[0]), std::sqrt(scalars[1] + scalars[2]) / values.loss_scale};
}

double RankExecutor::evaluate(const data::Corpus& corpus, std::int64_t first_sample, const StepValues& values) {
  const data::Sampler order(corpus.tokens(), program_.settings.batch.sequence, program_.settings.seed);
  const std::optional<std::int64_t> own_first = first_sample_;
  events_ = nullptr;
  reading_ = &corpus, samples_ = &order, first_sample_ = first_sample, forward_only_ = true;
  begin(values);
  execute();
  reading_ = &corpus_, samples_ = &sampler_, first_sample_ = own_first, forward_only_ = false;
  std::array<double, kScalars> scalars{};
  backend_.download(scalars.data(), arenas_.space(Space::kScalar), sizeof scalars);
  return sum_over_ranks(scalars[0]);
}

void RankExecutor::begin(const StepValues& values) {
  if (values.loss_weight != values_.loss_weight || values.loss_scale != values_.loss_scale) backend_.forget_replays();
  values_ = values;
  begin_history();
  optimizer_begun_ = false;
  noted_.clear();
  documents_.forget();
  std::fill(transfers_.begin(), transfers_.end(), Transfer::kIdle);
  const std::array<double, kScalars> zero{};
  backend_.upload(program::Lane::kCompute, arenas_.space(Space::kScalar), zero.data(), sizeof zero);
  backend_.enter(program::Lane::kCompute);
  const int world = groups_[static_cast<std::size_t>(Group::kWorld)];
  record(flight::Doing::kStepStart);
  communicator_.barrier(world);
  // One start for all ranks: they share the machine's monotonic clock.
  std::int64_t start_ns = now_ns();
  communicator_.broadcast(world, &start_ns, sizeof start_ns, 0);
  backend_.start_clock(start_ns);
}

void RankExecutor::execute() {
  std::fill(segments_done_.begin(), segments_done_.end(), 0);
  next_ahead_ = 0;
  for (const program::Issue& issue : role_.order) {
    const auto id = static_cast<std::size_t>(issue.task);
    const Task& task = role_.tasks[id];
    if (forward_only_ && !is_forward(task)) continue;
    if (forward_only_) keep_apart(task, issue.segment);
    const bool is_transfer = task.transfer >= 0;
    if (is_transfer && transfers_[id] != Transfer::kIdle) continue;  // posted ahead
    if (!is_transfer) {
      if (!forward_only_) post_ahead();
      end_batch();
    }
    await(issue.task, issue.segment);
    if (is_transfer) {
      post(issue.task);
    } else {
      run_segment(issue.task, issue.segment);
      ++segments_done_[id];
    }
  }
  end_batch();
  for (std::size_t t = 0; t < role_.tasks.size(); ++t) finish_transfer(static_cast<std::int32_t>(t));
  backend_.finish();
}

// Passes that are left out no longer say when a frame, or a slot of gathered parameters, is free again: what was sent
// from the frame has to be gone, and what reads it to be done.
void RankExecutor::keep_apart(const Task& task, int segment) {
  if (task.kind != TaskKind::kForward) return backend_.finish();
  const auto kind_of = [&](const Task& any) { return role_.chunks[static_cast<std::size_t>(any.chunk)].kind; };
  for (std::size_t t = 0; segment == 0 && t < role_.tasks.size(); ++t) {
    const Task& other = role_.tasks[t];
    const bool shares_frame =
        kind_of(other) == kind_of(task) && other.frame == task.frame;  // chunks of a kind share them
    if (other.kind == TaskKind::kSend && shares_frame) {
      finish_transfer(static_cast<std::int32_t>(t));
    }
  }
}

bool RankExecutor::is_forward(const Task& task) const {
  const program::ChunkTemplate& kind = program_.kind_of(program_.body_of(task));
  if (task.kind == TaskKind::kSend) return task.body == kind.send_forward;
  if (task.kind == TaskKind::kRecv) return task.body == kind.recv_forward;
  if (task.kind == TaskKind::kGatherReceived) return task.body == kind.gather_forward;
  return task.kind == TaskKind::kForward || task.kind == TaskKind::kGatherParameters;
}

// A last-stage rank holds its replica's loss, a stage with mixture layers their balance; tensor ranks the same one.
double RankExecutor::sum_over_ranks(double loss) {
  record(flight::Doing::kLoss);
  if (at_.tensor != 0) loss = 0;
  backend_.enter(program::Lane::kCompute);
  communicator_.all_reduce(groups_[static_cast<std::size_t>(Group::kWorld)], &loss, 1, program::DType::kFp64,
                           program::Reduction::kSum);
  return loss;
}

// Cores do one thing at a time: an end of a transfer that is not posted before a pass begins is posted when it is over,
// and its other end waits meanwhile. So both ends are posted as soon as what they wait for is over, as on a lane of
// their own; they are matched by number, in any order.
void RankExecutor::post_ahead() {
  constexpr std::size_t kAhead = 32;  // transfers that are looked at
  while (next_ahead_ < ahead_.size() && transfers_[static_cast<std::size_t>(ahead_[next_ahead_])] != Transfer::kIdle) {
    ++next_ahead_;
  }
  const std::size_t end = std::min(ahead_.size(), next_ahead_ + kAhead);
  for (std::size_t i = next_ahead_; i < end; ++i) {
    const auto task = static_cast<std::size_t>(ahead_[i]);
    if (transfers_[task] == Transfer::kIdle && may_post(role_.tasks[task])) post(ahead_[i]);
  }
}

bool RankExecutor::may_post(const Task& task) const {
  return std::all_of(task.after.begin(), task.after.end(), [&](const program::Dependency& d) {
    const auto other = static_cast<std::size_t>(d.task);
    const Task& before = role_.tasks[other];
    if (before.transfer >= 0) {
      return transfers_[other] == Transfer::kDone ||
             (transfers_[other] == Transfer::kPosted && before.kind == TaskKind::kSend &&
              communicator_.has_sent(peer_rank(before), before.transfer));
    }
    const auto segments = static_cast<std::int16_t>(program_.body_of(before).segments.size());
    return segments_done_[other] >= (d.segment == program::kWholeTask ? segments : d.segment + 1);
  });
}

// What the segment waits for: work of this host was issued already, as it comes earlier in the order; transfers may be
// under way.
void RankExecutor::await(std::int32_t task_id, int segment) {
  for (const program::Dependency& d : role_.tasks[static_cast<std::size_t>(task_id)].after) {
    if (d.before == segment) finish_transfer(d.task);
  }
  for (const LaneOrder::Wait& w : lanes_.before(task_id, segment)) backend_.wait(w.mark, w.lane);
}

void RankExecutor::join_side_lanes() {
  const std::span<const program::Lane> sides = lanes_.side_lanes();
  for (std::size_t i = 0; i < sides.size(); ++i) {
    backend_.mark(lanes_.side_mark(i, 0), sides[i]);
    backend_.mark(lanes_.side_mark(i, 1), program::Lane::kCompute);
    backend_.wait(lanes_.side_mark(i, 0), program::Lane::kCompute);
    backend_.wait(lanes_.side_mark(i, 1), sides[i]);
  }
}

void RankExecutor::run_segment(std::int32_t task_id, int segment_id) {
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  const bool is_pass =
      task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward || task.kind == TaskKind::kBackwardWeights;
  if (is_pass && segment_id == 0) join_side_lanes();
  if (task.kind == TaskKind::kForward && segment_id == 0) read_samples(task);
  if (task.kind == TaskKind::kOptimizer && !optimizer_begun_) {
    optimizer_begun_ = true;
    if (before_optimizer_) before_optimizer_();
  }
  const program::Body& body = program_.body_of(task);
  if (forward_only_ && is_of_module(task, segment_id)) return pass_over(task_id, segment_id);
  if (events_ == nullptr && replays_ && replays_->possible(task, segment_id))
    return replay_segment(task_id, segment_id);
  run_ops(task_id, body.segments[static_cast<std::size_t>(segment_id)]);
}

// Validation is of the model alone, without modules of multi-token prediction.
bool RankExecutor::is_of_module(const Task& task, int segment_id) const {
  const program::Body& body = program_.body_of(task);
  const int modules = program_.kind_of(body).mtp;
  return task.kind == TaskKind::kForward &&
         body.segments[static_cast<std::size_t>(segment_id)].part >= body.parts() - modules;
}

void RankExecutor::pass_over(std::int32_t task_id, int segment_id) {
  const program::Body& body = program_.body_of(role_.tasks[static_cast<std::size_t>(task_id)]);
  const program::Segment& segment = body.segments[static_cast<std::size_t>(segment_id)];
  for (int i = segment.begin; i < segment.end; ++i) {
    if (lanes_.is_awaited(task_id, i)) {
      backend_.mark(lanes_.mark_of(task_id, i), body.ops[static_cast<std::size_t>(i)].lane);
    }
  }
}

// Marks come after all of it.
void RankExecutor::replay_segment(std::int32_t task_id, int segment_id) {
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  const program::Body& body = program_.body_of(task);
  const program::Segment& segment = body.segments[static_cast<std::size_t>(segment_id)];
  record(flight::Doing::kCompute, task_id, segment.begin);
  const std::array<std::int64_t, 6> work{task.body,  segment_id,          task.chunk,
                                         task.frame, task.deferred_frame, task.input_frame};
  const std::uint64_t number = replay_numbers_.try_emplace(work, replay_numbers_.size()).first->second;
  backend_.replay(number, program::Lane::kCompute, [&] {
    for (int i = segment.begin; i < segment.end; ++i) run_kernel(task, body.ops[static_cast<std::size_t>(i)]);
  });
  for (int i = segment.begin; i < segment.end; ++i) {
    if (lanes_.is_awaited(task_id, i)) backend_.mark(lanes_.mark_of(task_id, i), program::Lane::kCompute);
  }
}

void RankExecutor::run_ops(std::int32_t task_id, const program::Segment& segment) {
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  const program::Body& body = program_.body_of(task);
  std::int32_t ended = -1;  // where the op before, of the same lane, ended
  for (int i = segment.begin; i < segment.end; ++i) {
    const Op& op = body.ops[static_cast<std::size_t>(i)];
    if (i > segment.begin && body.ops[static_cast<std::size_t>(i - 1)].lane != op.lane) ended = -1;
    for (const std::int32_t earlier : op.after) {
      if (earlier < 0) continue;
      backend_.wait(lanes_.mark_of(task_id, earlier), op.lane);
      ended = -1;
    }
    // Neighbours share a stamp: of a GPU it is an event, which takes time on the lane.
    const std::int32_t start = ended >= 0 ? ended : stamp(op.lane);
    const bool collective = program::is_communication(op.kind);
    record(collective ? flight::Doing::kCollective : flight::Doing::kCompute, task_id, i);
    if (collective) {
      backend_.enter(op.lane);
      run_collective(task, op, i);
    } else {
      run_kernel(task, op);
    }
    ended = stamp(op.lane);
    note(task_id, i, op.lane, start, ended);
    if (lanes_.is_awaited(task_id, i)) backend_.mark(lanes_.mark_of(task_id, i), op.lane);
  }
}

void RankExecutor::run_kernel(const Task& task, const Op& op) {
  const program::ChunkTemplate& kind = program_.kind_of(program_.body_of(task));
  KernelArguments a;
  a.op = &op;
  for (std::size_t j = 0; j < op.in.size(); ++j) a.in[j] = arenas_.address(task, op.in[j]);
  for (std::size_t j = 0; j < op.out.size(); ++j) a.out[j] = arenas_.address(task, op.out[j]);
  a.tensor_rank = at_.tensor;
  a.tensor_ranks = program_.mesh.tensor();
  const bool of_experts = op.bucket >= 0 && kind.buckets[static_cast<std::size_t>(op.bucket)].expert;
  a.shard_rank = of_experts ? place_in(Group::kExpertData) : shard_rank_;
  a.shard_replica = program_.mesh.shard_replica(rank());
  a.expert_ranks = program_.mesh.expert();
  a.expert_tensor_rank = at_.tensor % program_.mesh.expert_tensor();
  a.expert_replica = program_.mesh.expert_replica(at_);
  a.dropout = dropout_of(program_, at_, task, op, values_.step);
  if (forward_only_) a.dropout.threshold = 0;
  a.rotary = program::turns_by_window_frequencies(op) ? &program_.settings.window_rotary : &program_.settings.rotary;
  a.routing = &program_.settings.routing;
  a.context_rank = at_.context;
  a.context_ranks = program_.mesh.context();
  a.context_method = program_.settings.context_method;
  a.kind = &kind;
  for (std::size_t s = 0; s < program::kSpaces; ++s) {
    a.chunk_base[s] = arenas_.base(task.chunk, static_cast<Space>(s), task.frame);
  }
  if (op.bucket >= 0) {
    // Kernels know gradients and parameters by their bucket: where they were brought to, they lie as they would if they
    // had stayed.
    const program::Bucket& bucket = kind.buckets[static_cast<std::size_t>(op.bucket)];
    const auto bring = [&](int staged, Space space, std::int64_t first) {
      if (staged == program::kNoBuffer) return;
      const program::DType type = kind.buffers[static_cast<std::size_t>(staged)].dtype;
      a.chunk_base[static_cast<std::size_t>(space)] =
          arenas_.address(task.chunk, staged, task.frame) - first * size_of(type);
    };
    bring(bucket.staged_gradient, Space::kGradient, bucket.kept_gradients());
    bring(bucket.staged_parameter, Space::kParameter, bucket.parameter_shard);
  }
  a.optimizer = &program_.settings.optimizer;
  a.values = &values_;
  if (task.micro_batch >= 0) {
    a.document_starts = documents_.of(first_sample_of(task), program_.settings.batch.micro_batch_of(at_.data));
  }
  a.vocabulary = program_.settings.vocabulary;
  backend_.run(a, op.lane);
}

int RankExecutor::peer_rank(const Task& task) const {
  program::Coordinates other = at_;
  other.pipeline = task.peer_stage;
  return program_.mesh.rank(other);
}

// Transfers that follow each other in the total order are posted together. None of them waits for another of them:
// await would have ended the batch.
void RankExecutor::post(std::int32_t task_id) {
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  const Op& op = program_.body_of(task).ops.front();
  const std::int64_t bytes = op.elements * size_of(op.dtype);
  std::byte* const data = arenas_.address(task.chunk, task.kind == TaskKind::kSend ? op.in[0] : op.out[0], task.frame) +
                          (op.parts > 1 ? at_.tensor * bytes : 0);
  if (batch_.empty()) {
    backend_.enter(program::Lane::kPipeline);
    communicator_.begin_batch();
  }
  batch_.push_back(task_id);
  transfer_times_[static_cast<std::size_t>(task_id)] = {stamp(program::Lane::kPipeline), -1};
  if (task.kind == TaskKind::kSend) {
    communicator_.post_send(peer_rank(task), task.transfer, data, bytes);
  } else {
    communicator_.post_recv(peer_rank(task), task.transfer, data, bytes);
  }
  transfers_[static_cast<std::size_t>(task_id)] = Transfer::kPosted;
}

void RankExecutor::end_batch() {
  if (batch_.empty()) return;
  backend_.enter(program::Lane::kPipeline);
  communicator_.end_batch();
  for (const std::int32_t task : batch_) {
    // In the order of a lane they end here; cores see the end only when they wait for it.
    if (!backend_.shares_host_memory()) {
      transfer_times_[static_cast<std::size_t>(task)].ended = stamp(program::Lane::kPipeline);
    }
    if (lanes_.is_awaited(task, 0)) backend_.mark(lanes_.mark_of(task, 0), program::Lane::kPipeline);
  }
  batch_.clear();
}

void RankExecutor::finish_transfer(std::int32_t task_id) {
  Transfer& state = transfers_[static_cast<std::size_t>(task_id)];
  if (state != Transfer::kPosted) return;
  record(flight::Doing::kTransfer, task_id);
  end_batch();
  const Task& task = role_.tasks[static_cast<std::size_t>(task_id)];
  if (task.kind == TaskKind::kSend) {
    communicator_.wait_send(peer_rank(task), task.transfer);
  } else {
    communicator_.wait_recv(peer_rank(task), task.transfer);
  }
  state = Transfer::kDone;
  TransferTimes& times = transfer_times_[static_cast<std::size_t>(task_id)];
  if (times.ended < 0) times.ended = stamp(program::Lane::kPipeline);
  note(task_id, 0, program::Lane::kPipeline, times.posted, times.ended);
}

// Samples are numbered through the whole training, so that every layout reads the same ones: micro-batch by micro-batch
// over the replicas.
std::int64_t RankExecutor::first_sample_of(const Task& task) const {
  const program::Batch& step = program_.settings.batch;
  return first_sample_.value_or(values_.step * step.samples) + step.first_sample(task.micro_batch, at_.data);
}

void RankExecutor::read_samples(const Task& task) {
  const program::ChunkTemplate& kind = program_.kind_of(program_.body_of(task));
  if (!kind.embedding && !kind.head) return;
  const program::Batch& step = program_.settings.batch;
  const std::int64_t sequence = step.sequence, batch = step.micro_batch_of(at_.data);
  const int context = program_.mesh.context();
  const std::int64_t local = sequence / context;
  std::vector<std::int32_t> sample_ids(static_cast<std::size_t>(sequence)), sample_labels(sample_ids.size());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * local * (2 + kind.mtp)));
  const std::int64_t first = first_sample_of(task);
  const auto own = [&](std::int64_t buffer) { return tokens.data() + buffer * batch * local; };
  for (std::int64_t i = 0; i < batch; ++i) {
    data::read_sample(*reading_, samples_->start_of(first + i), sample_ids, sample_labels);
    for (std::int64_t t = 0; t < local; ++t) {
      const std::int64_t from =
          program::context_position(program_.settings.context_method, t, sequence, at_.context, context);
      own(0)[i * local + t] = sample_ids[static_cast<std::size_t>(from)];
      for (std::int64_t ahead = 0; ahead <= kind.mtp; ++ahead) {
        const std::int64_t at = from + ahead;
        own(1 + ahead)[i * local + t] = at < sequence ? sample_labels[static_cast<std::size_t>(at)] : -1;
      }
    }
  }
  const auto upload = [&](int buffer, std::int64_t which) {
    std::byte* const to = arenas_.address(task.chunk, buffer, task.frame);  // in the backend's memory
    if (to == nullptr) return;
    backend_.upload(program::Lane::kCompute, to, own(which), batch * local * size_of(program::DType::kInt32));
  };
  upload(kind.ids, 0);
  upload(kind.labels, 1);
  for (int ahead = 1; ahead <= kind.mtp; ++ahead)
    upload(kind.later_labels[static_cast<std::size_t>(ahead - 1)], 1 + ahead);
}

void RankExecutor::note(std::int32_t task, std::int32_t op, program::Lane lane, std::int32_t start, std::int32_t end) {
  if (events_ != nullptr) noted_.push_back({task, op, lane, start, end});
}

void RankExecutor::tell_events() {
  for (const Noted& n : noted_) {
    const Interval when = backend_.interval_ns(n.start, n.end);
    events_->push_back({static_cast<std::int32_t>(values_.step), rank(), n.task, n.op, n.lane, when.start_ns * kPsPerNs,
                        when.end_ns * kPsPerNs, 0});
  }
}

}  // namespace trivium::runtime
