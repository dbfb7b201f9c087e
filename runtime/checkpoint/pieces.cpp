#include "runtime/checkpoint/pieces.h"

#include <algorithm>

#include "program/ir/fp8_layout.h"
#include "program/lower/layout.h"
#include "program/lower/optimizer_bodies.h"

namespace trivium::runtime::checkpoint {
namespace {

using program::Bucket;
using program::ChunkTemplate;
using program::DType;
using program::Group;
using program::Parameter;
using program::Space;
using program::StateArrays;

// Elements [begin, end) of a chunk's parameters; the first of them lies at `at`.
struct Stretch {
  std::int64_t begin = 0, end = 0;
  std::byte* at = nullptr;
  DType type{};
};

const Bucket& bucket_of(const ChunkTemplate& kind, const Parameter& p) {
  return *std::find_if(kind.buckets.begin(), kind.buckets.end(), [&](const Bucket& bucket) {
    return p.offset >= bucket.begin && p.offset < bucket.begin + bucket.elements;
  });
}

// Cuts local rectangles of one parameter where neighbouring elements stop being neighbours in the whole tensor.
class Cutter {
 public:
  Cutter(const program::Program& program, int rank, const Parameter& p, std::string name, std::vector<Piece>& out)
      : p_(p),
        name_(std::move(name)),
        tensor_(program.mesh.tensor()),
        tensor_rank_(program.mesh.coordinates(rank).tensor),
        expert_rank_(program.mesh.expert_rank(program.mesh.coordinates(rank))),
        out_(out) {}

  /// Pieces from here on leave out the key heads that an earlier tensor rank holds too.
  void leave_shared_keys() { leaves_keys_ = tensor_rank_ % p_.key_ranks != 0; }

  /// Pieces from here on are this replica's alone.
  void of_replica(int replica, int replicas) { replica_ = replica, replicas_ = replicas; }

  void cut(const std::vector<Stretch>& stretches, State state) {
    for (const Stretch& stretch : stretches) cut(stretch, state);
  }

  // The part of `stretch` that belongs to the parameter.
  void cut(const Stretch& stretch, State state) {
    std::int64_t at = std::max<std::int64_t>(0, stretch.begin - p_.offset);
    const std::int64_t end = std::min(p_.local_rows * p_.local_columns, stretch.end - p_.offset);
    while (at < end) {
      Box local{.row = at / p_.local_columns, .column = at % p_.local_columns, .rows = 1};
      local.columns = std::min(p_.local_columns - local.column, end - at);
      if (local.columns == p_.local_columns) local.rows = (end - at) / p_.local_columns;
      at += local.elements();
      by_expert(local, stretch, state);
    }
  }

 private:
  void by_expert(const Box& local, const Stretch& stretch, State state) {
    const std::int64_t one = p_.local_rows / std::max<std::int64_t>(1, p_.local_experts);
    for (std::int64_t row = local.row; row < local.row + local.rows;) {
      const std::int64_t next = std::min(local.row + local.rows, (row / one + 1) * one);
      by_section({row, local.column, next - row, local.columns}, stretch, state);
      row = next;
    }
  }

  void by_section(const Box& local, const Stretch& stretch, State state) {
    std::int64_t column = local.column;
    const std::int64_t end = local.column + local.columns;
    std::int64_t section_end = 0;
    for (std::size_t section = 0; section < p_.sections.size(); ++section) {
      section_end += program::local_section(p_, section, tensor_);
      if (column >= section_end || column >= end) continue;
      const std::int64_t next = std::min(end, section_end);
      if (section == 0 || !leaves_keys_) add({local.row, column, local.rows, next - column}, stretch, state);
      column = next;
    }
    if (p_.sections.empty()) add(local, stretch, state);
  }

  void add(const Box& local, const Stretch& stretch, State state) {
    const auto place = program::global_place(p_, local.row, local.column, tensor_rank_, tensor_, expert_rank_);
    if (!place) return;  // padding of the vocabulary
    const std::int64_t block = p_.rows / std::max<std::int64_t>(1, p_.experts);
    const std::int64_t rows = std::min(local.rows, (place->first / block + 1) * block - place->first);
    const std::int64_t element = p_.offset + local.row * p_.local_columns + local.column - stretch.begin;
    out_.push_back({.state = state,
                    .name = name_,
                    .replica = replica_,
                    .replicas = replicas_,
                    .rows = p_.rows,
                    .columns = p_.columns,
                    .box = {place->first, place->second, rows, local.columns},
                    .first = stretch.at + element * program::size_of(stretch.type),
                    .stride = p_.local_columns,
                    .type = stretch.type,
                    .added = program::is_adapter(p_.name)});
  }

  const Parameter& p_;
  std::string name_;
  int tensor_, tensor_rank_, expert_rank_;
  int replica_ = 0, replicas_ = 1;
  bool leaves_keys_ = false;
  std::vector<Piece>& out_;
};

// Where a bucket's state lies on one rank.
class BucketPlaces {
 public:
  BucketPlaces(const program::Program& program, int rank, const Arenas& arenas, int chunk, const Bucket& bucket)
      : bucket_(bucket), precision_(program.settings.precision), arrays_(program.settings.state_arrays(bucket.muon)) {
    shard_rank_ = bucket.expert ? program.mesh.index_in(Group::kExpertData, rank) : program.mesh.shard_rank(rank);
    parameters_ = arenas.base(chunk, program.settings.parameter_space(), 0);
    states_ = arenas.base(chunk, program.settings.state_space(), 0) + bucket.optimizer_offset;
  }

  // The optimizer's arrays hold this rank's part.
  std::vector<Stretch> state(int array) const {
    const DType type = arrays_.type(array);
    return runs(type, [&](int part) {
      return states_ + arrays_.offset(array, bucket_.shard) + part * bucket_.own_run() * program::size_of(type);
    });
  }
  std::vector<Stretch> own_parameters() const {
    return runs(precision_, [&](int part) {
      return parameters_ + bucket_.own_parameters(shard_rank_, part) * program::size_of(precision_);
    });
  }
  std::vector<Stretch> kept_parameters() const {
    if (bucket_.parameter_shard >= 0) return own_parameters();
    return {{bucket_.begin, bucket_.begin + bucket_.elements,
             parameters_ + bucket_.begin * program::size_of(precision_), precision_}};
  }
  bool has_master() const { return program::is_half(precision_) && has_moments(); }
  bool has_moments() const { return !bucket_.frozen; }
  bool has_second() const { return has_moments() && !bucket_.muon; }

 private:
  template <class At>
  std::vector<Stretch> runs(DType type, At at) const {
    std::vector<Stretch> all;
    for (int part = 0; part < bucket_.parts; ++part) {
      const std::int64_t begin = bucket_.own_begin(shard_rank_, part);
      all.push_back({begin, begin + bucket_.own_run(), at(part), type});
    }
    return all;
  }

  const Bucket& bucket_;
  DType precision_;
  StateArrays arrays_;
  int shard_rank_ = 0;
  std::byte* parameters_ = nullptr;
  std::byte* states_ = nullptr;
};

// Of the ranks that hold the same part of a parameter, the one that saves it.
bool saves(const program::Program& program, int rank, const Parameter& p, const Bucket& bucket) {
  const program::Mesh& mesh = program.mesh;
  if (p.tied_copy) return false;
  if (!program::is_first_holder(p, mesh.coordinates(rank).tensor)) return false;
  const bool sharded = bucket.shard < bucket.elements;
  if (bucket.expert) return sharded || mesh.index_in(Group::kExpertData, rank) == 0;
  return sharded ? mesh.shard_replica(rank) == 0 : mesh.index_in(Group::kData, rank) == 0;
}

// What a rank has not sent of a parameter's gradient; nothing where all is sent.
Stretch residual_of(const ChunkTemplate& kind, const Arenas& arenas, int chunk, const Parameter& p) {
  const std::string name = program::residual_name(p);
  const auto buffer = std::find_if(kind.buffers.begin(), kind.buffers.end(), [&](const program::Buffer& b) {
    return b.space == Space::kOptimizer && b.name == name;
  });
  if (buffer == kind.buffers.end()) return {};
  return {p.offset, p.offset + buffer->elements, arenas.base(chunk, Space::kOptimizer, 0) + buffer->offset,
          buffer->dtype};
}

// The history of the casts of the stage's matrices, which all its ranks hold alike.
void add_histories(const program::Program& program, int rank, const Arenas& arenas, std::vector<Piece>& pieces) {
  const program::Role& role = program.role_of(rank);
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(role.chunks[c].kind)];
    if (kind.history == program::kNoBuffer) continue;
    const program::Buffer& history = kind.buffers[static_cast<std::size_t>(kind.history)];
    auto* const lasting =
        reinterpret_cast<float*>(arenas.base(static_cast<int>(c), history.space, 0) + history.offset) +
        program::AmaxHistory::kOfWindow * kind.sites;
    const std::int64_t rows = history.elements / kind.sites - program::AmaxHistory::kOfWindow;
    for (const Parameter& p : kind.parameters) {
      if (p.first_site < 0) continue;
      pieces.push_back({.state = State::kLargest,
                        .name = program::global_name(p, role.chunks[c].first_layer),
                        .rows = rows,
                        .columns = program::kFp8Operands,
                        .box = {0, 0, rows, program::kFp8Operands},
                        .first = reinterpret_cast<std::byte*>(lasting + p.first_site),
                        .stride = kind.sites,
                        .type = history.dtype});
    }
  }
}

template <class Visit>
void for_each_parameter(const program::Program& program, int rank, const Arenas& arenas, Visit visit) {
  const program::Role& role = program.role_of(rank);
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    const ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    for (const Parameter& p : kind.parameters) {
      const Bucket& bucket = bucket_of(kind, p);
      visit(p, program::global_name(p, chunk.first_layer), bucket,
            BucketPlaces(program, rank, arenas, static_cast<int>(c), bucket),
            residual_of(kind, arenas, static_cast<int>(c), p));
    }
  }
}

}  // namespace

std::vector<Piece> saved_pieces(const program::Program& program, int rank, const Arenas& arenas) {
  const int replica = program.mesh.index_in(Group::kData, rank), replicas = program.mesh.group_size(Group::kData);
  const bool first_of_tensor = program.mesh.coordinates(rank).tensor == 0;
  std::vector<Piece> pieces;
  for_each_parameter(program, rank, arenas,
                     [&](const Parameter& p, std::string name, const Bucket& bucket, const BucketPlaces& places,
                         const Stretch& residual) {
                       Cutter cutter(program, rank, p, std::move(name), pieces);
                       cutter.leave_shared_keys();
                       if (saves(program, rank, p, bucket)) {
                         cutter.cut(places.has_master() ? places.state(StateArrays::kMaster) : places.own_parameters(),
                                    State::kValue);
                         if (places.has_moments()) {
                           cutter.cut(places.state(StateArrays::kFirstMoment), State::kFirstMoment);
                           if (places.has_second())
                             cutter.cut(places.state(StateArrays::kSecondMoment), State::kSecondMoment);
                         }
                       }
                       if (p.tied_copy || !program::is_first_holder(p, program.mesh.coordinates(rank).tensor)) return;
                       cutter.of_replica(replica, replicas);
                       cutter.cut(residual, State::kResidual);
                     });
  if (first_of_tensor && replica == 0) add_histories(program, rank, arenas, pieces);
  return pieces;
}

std::vector<Piece> needed_pieces(const program::Program& program, int rank, const Arenas& arenas) {
  const int replica = program.mesh.index_in(Group::kData, rank), replicas = program.mesh.group_size(Group::kData);
  std::vector<Piece> pieces;
  for_each_parameter(
      program, rank, arenas,
      [&](const Parameter& p, std::string name, const Bucket&, const BucketPlaces& places, const Stretch& residual) {
        Cutter cutter(program, rank, p, std::move(name), pieces);
        cutter.cut(places.kept_parameters(), State::kValue);
        if (places.has_master()) cutter.cut(places.state(StateArrays::kMaster), State::kValue);
        if (places.has_moments()) {
          cutter.cut(places.state(StateArrays::kFirstMoment), State::kFirstMoment);
          if (places.has_second()) cutter.cut(places.state(StateArrays::kSecondMoment), State::kSecondMoment);
        }
        cutter.of_replica(replica, replicas);
        cutter.cut(residual, State::kResidual);
      });
  add_histories(program, rank, arenas, pieces);
  return pieces;
}

}  // namespace trivium::runtime::checkpoint
