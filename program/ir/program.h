// The Program: what both interpreters, the simulator and the runtime, execute.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "program/ir/mesh.h"
#include "program/ir/op.h"
#include "program/ir/settings.h"
#include "program/ir/space.h"
#include "program/plan/job.h"
#include "program/plan/stack.h"

namespace trivium::program {

struct Buffer {
  std::string name;
  Space space = Space::kWorkspace;
  DType dtype = DType::kFp32;
  std::int64_t elements = 0;
  std::int64_t offset = 0;  ///< bytes from the start of the chunk's part of the space (kFrame: of the frame)
  std::int64_t bytes() const { return elements * size_of(dtype); }
};

/// How a parameter is cut over the tensor group, or a matrix of experts over its expert tensor group; kExperts: every
/// rank has experts of its own, whole.
enum class Split : std::uint8_t { kReplicated, kRows, kColumns, kExperts };

/// A parameter of a chunk, as this rank holds it. Global names and shapes are free of the layout:
/// "h.3.attn.c_attn.weight", matrices as (in, out), the embedding as (vocab, hidden).
struct Parameter {
  std::string name;                    ///< with "{}" for the layer's number in the model
  std::int16_t layer = -1;             ///< layer within the chunk
  std::int64_t rows = 0, columns = 0;  ///< global shape; vectors are (1, n). The vocabulary is not padded here
  Split split = Split::kReplicated;
  std::vector<std::int64_t> sections;  ///< kColumns: column blocks that are cut one by one (q|k|v); empty: one block
  int key_ranks = 1;                   ///< neighbouring tensor ranks that hold the same part of the blocks k and v
  std::int64_t key_columns = 0;        ///< above 1: how many of the last local columns those are
  std::int64_t local_rows = 0, local_columns = 0;  ///< with padding rows of the vocabulary, if any
  std::int64_t experts = 0;          ///< matrices of the experts, one under the other in `rows`; 0: not of an expert
  std::int64_t local_experts = 0;    ///< of them on this rank
  int expert_tensor = 0;             ///< neighbouring tensor ranks that split them; 0: not of an expert
  std::int64_t offset = 0;           ///< elements from the start of the chunk's parameters
  bool partial_over_tensor = false;  ///< replicated, but every tensor rank has a part of its gradient only
  std::int32_t first_site = -1;      ///< fp8 delayed: in the chunk's history, of its operands one after the other
  bool decayed = false;              ///< weight decay applies (matrices)
  bool frozen = false;               ///< stays as it is: has no gradient and no optimizer state
  bool muon = false;                 ///< is stepped by Muon, not by AdamW
  bool tied_copy = false;            ///< the last stage's copy of the embedding: not counted, not saved
  double init_std = 0;               ///< normal(0, std) where positive, else the constant `init_value`
  double init_value = 0;
  int value = kNoBuffer, gradient = kNoBuffer;  ///< where it lies, among the kind's buffers
};

/// Whether tensor ranks hold parts of each of the parameter's matrices.
inline bool is_cut(const Parameter& p) { return p.split == Split::kRows || p.split == Split::kColumns; }

/// Of `tensor_ranks` those that the parameter is cut over, and the place of one of these among them.
inline int cut_ranks(const Parameter& p, int tensor_ranks) {
  return p.expert_tensor > 0 ? p.expert_tensor : tensor_ranks;
}
inline int cut_rank(const Parameter& p, int tensor_rank) {
  return p.expert_tensor > 0 ? tensor_rank % p.expert_tensor : tensor_rank;
}

/// Whether the tensor rank is the first of those that hold the same of the parameter.
inline bool is_first_holder(const Parameter& p, int tensor_rank) {
  return p.split != Split::kReplicated || cut_rank(p, tensor_rank) == 0;
}

/// Gradients that are reduced together, or frozen parameters that are gathered together: a contiguous range of the
/// chunk's parameters, padded to a multiple of the ranks that share its optimizer state.
struct Bucket {
  std::int16_t first_segment = 0, last_segment = 0;  ///< of the forward body, inclusive
  std::int64_t begin = 0;                            ///< element offset within the chunk's parameters and gradients
  std::int64_t elements = 0;                         ///< padded
  std::int64_t shard = 0;  ///< elements whose optimizer state this rank holds: all, or elements / shard ranks
  std::int64_t optimizer_offset = 0;  ///< bytes within the chunk's optimizer space: where its StateArrays begin
  bool expert = false;                ///< experts spread over ranks: reduced over kExpertData, else over kData
  bool frozen = false;  ///< of frozen parameters: no gradients, no optimizer state. Such buckets come last
  bool muon = false;    ///< of matrices that Muon steps; else there are none of them
  int parts = 1;        ///< collectives that move it: part p of a shard is a shard of the bucket's part p
  // ZeRO 3 keeps parameters, ZeRO 2 and 3 gradients as shards; -1 where the bucket is kept whole.
  std::int64_t parameter_shard = -1;  ///< element offset within the chunk's parameters
  std::int64_t gradient_shard = -1;   ///< element offset within the chunk's gradients
  std::int64_t parameter_slot = -1;   ///< bytes within kGathered: where the whole bucket lies while it is used
  std::int64_t gradient_slot = -1;    ///< likewise its gradients
  std::int64_t gradient_shift = 0;    ///< whole gradients: elements from `begin` to where they lie

  /// Elements of each of the `parts` runs that a rank holds.
  std::int64_t own_run() const { return shard / parts; }
  /// First element of run `part` that rank `shard_rank` of the shard group holds, numbered as `begin` is.
  std::int64_t own_begin(int shard_rank, int part) const {
    return begin + (shard < elements ? part * (elements / parts) + shard_rank * own_run() : 0);
  }
  /// Where that element lies: offsets within the chunk's parameters and gradients.
  std::int64_t own_parameters(int shard_rank, int part) const {
    return parameter_shard >= 0 ? parameter_shard + part * own_run() : own_begin(shard_rank, part);
  }
  std::int64_t own_gradients(int shard_rank, int part) const {
    return gradient_shard >= 0 ? gradient_shard + part * own_run() : own_begin(shard_rank, part) + gradient_shift;
  }
  int staged_state = kNoBuffer;      ///< buffer of Space::kStaging in which offloaded optimizer state is used
  int staged_gradient = kNoBuffer;   ///< likewise its gradients, the whole or the shard that is kept
  int staged_parameter = kNoBuffer;  ///< likewise its parameters

  /// Used together with another bucket of its layers, so it has slots of its own.
  bool apart() const { return expert || frozen || muon; }

  /// First element of the gradients that are kept, whole or as a shard, within the chunk's.
  std::int64_t kept_gradients() const { return gradient_shard >= 0 ? gradient_shard : begin + gradient_shift; }
};

/// Ops [begin, end) of a body that belong to one part of the model.
struct Segment {
  std::string name;  ///< "embedding", "layer 2", "head", "mtp 0", …
  std::int32_t begin = 0, end = 0;
  std::int16_t part = 0;  ///< which part of the model, as the body comes to their ends; one has several segments where
                          ///< exchanges with the experts overlap with another pass, or layers are made again together
  bool turn = false;      ///< waits for such an exchange: in a pair (Task::beside) the other pass runs before it
};

/// Work that tasks share: ops in issue order. Ops of one lane run in this order; across lanes `Op::after` holds.
struct Body {
  std::string name;
  std::int16_t chunk_kind = 0;  ///< whose buffers the ops name
  std::vector<Segment> segments;
  std::vector<Op> ops;

  int parts() const { return segments.empty() ? 0 : segments.back().part + 1; }
  /// The last segment of a part.
  std::int16_t end_of(int part) const {
    std::size_t last = segments.size() - 1;
    while (last > 0 && segments[last].part > part) --last;
    return static_cast<std::int16_t>(last);
  }
};

/// By space; kFrame, kTokens, kDeferred and kOffloadedActivation: of one frame.
struct ChunkBytes : std::array<std::int64_t, kSpaces> {
  std::int64_t cast_numbers = 0;  ///< of matrices that are kept in 8 bits, both ways, next to their own type
};

/// A run of consecutive layers with or without embedding and head; equal runs share one kind.
struct ChunkTemplate {
  int layers = 0;
  bool embedding = false, head = false;
  int mtp = 0;  ///< modules of multi-token prediction after the head, numbered as layers after `layers`
  Recompute recompute = Recompute::kNone;
  std::vector<Parameter> parameters;
  std::vector<Buffer> buffers;
  std::vector<Bucket> buckets;
  ChunkBytes bytes{};
  int forward = -1, backward = -1;  ///< bodies
  int forward_first = -1;     ///< of a step's first micro-batch where it also casts weights to 8 bits; -1: the same
  int backward_weights = -1;  ///< body of the second half where the schedule splits the backward
  int backward_whole = -1;    ///< body of both halves in one, of pairs of passes, where the schedule splits others
  int send_forward = -1, recv_forward = -1, send_backward = -1, recv_backward = -1;
  int gather_forward = -1, gather_backward = -1;  ///< of what was received in parts; -1: it came whole
  std::vector<int> reduce;  ///< per bucket, after the last micro-batch, or with a gradient slot every one; -1: none
  std::vector<int> reduce_replicas;  ///< per bucket: shards over shard groups, after the last micro-batch; -1: none
  int norm = -1, norm_reduce = -1, optimizer = -1;
  std::vector<int> fetch_state, store_state;  ///< per bucket: copies of offloaded optimizer state; empty: it stays
  std::vector<int> fetch_gradient, store_gradient;    ///< per bucket: copies of offloaded gradients; empty: they stay
  std::vector<int> fetch_layer, store_layer;          ///< per layer: copies of offloaded activations; empty: they stay
  std::vector<int> fetch_parameter, store_parameter;  ///< per bucket, for the optimizer: copies of offloaded parameters
  std::vector<int> gather;  ///< per bucket, after a copy where parameters are offloaded; -1: nothing to gather
  int tied_head_gradient = kNoBuffer;  ///< where uses of the embedding at the end of the model accumulate apart
  int history = kNoBuffer;             ///< AmaxHistory of fp8 delayed, between steps as parameters are
  std::int64_t sites = 0;              ///< of it
  int tie = -1;  ///< body that adds the gradients of the embedding's two copies, where one stage holds both
  int tied_elsewhere = kNoBuffer;             ///< there: the gradient of the last chunk's copy, told from this chunk's
  int ids = kNoBuffer, labels = kNoBuffer;    ///< buffers of a micro-batch's tokens: read here, and to predict
  std::vector<int> later_labels;              ///< of its tokens 1, 2, … beyond `labels`; -1 past a sample's end
  int input = kNoBuffer, output = kNoBuffer;  ///< buffers that a transfer fills, and that it sends

  /// Parts of a forward after the layers, which a backward comes to first.
  int parts_at_end() const { return head ? 1 + mtp : 0; }
  /// Parts of a forward. A backward has them the other way round, but for an embedding that is not trained.
  int parts() const { return layers + (embedding ? 1 : 0) + parts_at_end(); }
};

/// A chunk of a stage.
struct Chunk {
  int kind = 0;
  int position = 0;         ///< in model order, 0 … pipeline * virtual_stages - 1
  int first_layer = 0;      ///< number in the model
  int frames = 1;           ///< micro-batches in flight, over all chunks of this kind on the stage: they share them
  int deferred_frames = 0;  ///< micro-batches between the halves of their backwards at once
  /// The stage's chunk whose output is this one's input: it is read, and its gradient left, where it lies. -1: the
  /// input comes from another stage, or from the embedding.
  int input_from = -1;
  std::array<std::int64_t, kSpaces> base{};  ///< byte offset of the chunk's part in each space of the rank
};

enum class TaskKind : std::uint8_t {
  kForward,
  kBackward,         ///< where it is split: gradients of activations, norms and biases
  kBackwardWeights,  ///< the other half: gradients of matrices
  kSend,
  kRecv,
  kGatherReceived,  ///< the parts that the tensor ranks received
  kReduceGradients,
  kGradientNorm,
  kNormReduce,
  kOptimizer,
  kGatherParameters,
  kFetch,  ///< from the host to the device
  kStore   ///< from the device to the host
};
std::string_view name_of(TaskKind kind);

constexpr std::int16_t kWholeTask = -1;

/// Segment `before` of the task that holds this waits until `segment` of `task` has ended.
struct Dependency {
  std::int32_t task = 0;
  std::int16_t segment = kWholeTask;
  std::int16_t before = 0;
};

struct Task {
  TaskKind kind{};
  std::int32_t body = 0;
  std::int16_t chunk = 0;
  std::int16_t frame = 0;
  std::int16_t deferred_frame = 0;  ///< of Space::kDeferred
  std::int16_t input_frame = -1;    ///< passes of a chunk with Chunk::input_from: the frame of that chunk
  std::int32_t micro_batch = -1;
  std::int32_t peer_stage = -1;  ///< kSend, kRecv
  std::int32_t transfer = -1;    ///< kSend, kRecv: the same number at both ends, unique in the Program
  std::int32_t beside = -1;      ///< a backward: the forward, an earlier task, with which it takes turns
  std::vector<Dependency> after;
};

/// One entry of a host's total order.
struct Issue {
  std::int32_t task = 0;
  std::int16_t segment = 0;
  bool operator==(const Issue&) const = default;
};

/// What all ranks of one pipeline stage do; their peers are the same coordinates elsewhere. Where replicas have
/// micro-batches of different sizes, what those of one size do: all do the same tasks, on more or fewer samples.
struct Role {
  int stage = 0;
  int replica_kind = 0;   ///< 0 unless micro-batches differ: place of its size among micro_batch_sizes(plan)
  int first_replica = 0;  ///< lowest data coordinate of the kind
  std::vector<Chunk> chunks;
  std::vector<Task> tasks;                    ///< tasks of one lane run in this order
  std::vector<Issue> order;                   ///< total order of the host; empty until simulator::order filled it
  std::array<std::int64_t, kSpaces> bytes{};  ///< of every space of the rank, frames multiplied out
  std::int64_t total_bytes() const;           ///< on the device
};

/// A lowered job. Immutable but for `Role::order`, which simulator::order fills in once. Safe to share between threads.
struct Program {
  Job job;  ///< what was lowered: for those who show or plan it. Interpreters read `settings` and what follows
  Settings settings;
  StackTraits stack;
  Mesh mesh;
  std::int64_t micro_batches = 0;
  std::vector<ChunkTemplate> kinds;
  std::vector<Body> bodies;
  std::vector<Role> roles;         ///< one per stage, for every kind of replica: kind * pipeline + stage
  std::vector<int> replica_kinds;  ///< by data coordinate; empty where all replicas are alike

  /// Place among `roles`.
  int role_at(const Coordinates& at) const {
    const int kind = replica_kinds.empty() ? 0 : replica_kinds[static_cast<std::size_t>(at.data)];
    return kind * mesh.pipeline() + at.pipeline;
  }
  int role_index(int rank) const { return role_at(mesh.coordinates(rank)); }
  const Role& role_of(int rank) const { return roles[static_cast<std::size_t>(role_index(rank))]; }
  /// The rank that stands for all ranks of a role: tensor and context coordinate 0, the first replica of its kind.
  int representative(const Role& role) const { return mesh.rank({0, 0, role.first_replica, role.stage}); }
  const Body& body_of(const Task& task) const { return bodies[static_cast<std::size_t>(task.body)]; }
  const ChunkTemplate& kind_of(const Body& body) const { return kinds[static_cast<std::size_t>(body.chunk_kind)]; }
};

/// A backward with both halves in it, where others are split.
inline bool is_whole_backward(const Program& program, const Task& task) {
  return task.kind == TaskKind::kBackward && task.body == program.kind_of(program.body_of(task)).backward_whole;
}

}  // namespace trivium::program
