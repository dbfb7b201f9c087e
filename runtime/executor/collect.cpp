#include "runtime/executor/collect.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "program/lower/layout.h"
#include "runtime/reduction/number.h"

namespace trivium::runtime {
namespace {

using program::Bucket;
using program::DType;
using program::Space;

// The bucket that holds element `offset` of the chunk.
const Bucket& bucket_of(const program::ChunkTemplate& kind, std::int64_t offset) {
  return *std::find_if(kind.buckets.begin(), kind.buckets.end(), [&](const Bucket& bucket) {
    return offset >= bucket.begin && offset < bucket.begin + bucket.elements;
  });
}

// Where element `offset` of the chunk lies in the shard of rank `shard_rank`; -1 where another rank holds it.
std::int64_t inside_shard(const Bucket& bucket, std::int64_t offset, int shard_rank) {
  for (int part = 0; part < bucket.parts; ++part) {
    const std::int64_t inside = offset - bucket.own_begin(shard_rank, part);
    if (inside >= 0 && inside < bucket.own_run()) return part * bucket.own_run() + inside;
  }
  return -1;
}

}  // namespace

void Collection::put(const program::Parameter& p, const std::string& name, std::int64_t row, std::int64_t column,
                     double value) {
  auto& values = tensors_[name];
  if (values.empty())
    values.assign(static_cast<std::size_t>(p.rows * p.columns), std::numeric_limits<double>::quiet_NaN());
  double& at = values[static_cast<std::size_t>(row * p.columns + column)];
  if (!std::isnan(at) && at != value) replicas_agree_ = false;
  at = value;
}

void Collection::add(const program::Program& program, int rank, const Arenas& arenas, Quantity quantity) {
  const std::lock_guard lock(mutex_);
  const program::Coordinates at = program.mesh.coordinates(rank);
  const program::Role& role = program.role_of(rank);
  const int expert_rank = program.mesh.expert_rank(at);
  const DType type = program.settings.precision;
  const int dense_shard = program.mesh.shard_rank(rank);
  const int expert_shard = program.mesh.index_in(program::Group::kExpertData, rank);
  const bool gathers_first = program.settings.gathers_first;
  const Space kept_in = program.settings.state_space(), gradients_in = program.settings.gradient_space();
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    const program::ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    const std::byte* values = arenas.base(static_cast<int>(c), program.settings.parameter_space(), 0);
    const std::byte* gradients = arenas.base(static_cast<int>(c), gradients_in, 0);
    const std::byte* moments = arenas.base(static_cast<int>(c), kept_in, 0);
    for (const program::Parameter& p : kind.parameters) {
      if ((p.frozen && quantity != Quantity::kValue) || (p.muon && quantity == Quantity::kSecondMoment)) continue;
      const program::StateArrays arrays = program.settings.state_arrays(p.muon);
      const std::string name = program::global_name(p, chunk.first_layer);
      for (std::int64_t i = 0; i < p.local_rows * p.local_columns; ++i) {
        const auto place = program::global_place(p, i / p.local_columns, i % p.local_columns, at.tensor,
                                                 program.mesh.tensor(), expert_rank);
        if (!place) continue;
        const std::int64_t offset = p.offset + i;
        const Bucket& bucket = bucket_of(kind, offset);
        const int shard_rank = bucket.expert ? expert_shard : dense_shard;
        // Parameters gathered at the start of a step are stale after it, except for each rank's own part.
        const bool whole = quantity == Quantity::kValue && bucket.parameter_shard < 0 && !gathers_first;
        if (whole) {
          put(p, name, place->first, place->second, reduction::number_at(values, offset, type));
          continue;
        }
        const std::int64_t inside = inside_shard(bucket, offset, shard_rank);
        if (inside < 0) continue;
        const std::int64_t value = bucket.parameter_shard >= 0 ? bucket.parameter_shard + inside : offset;
        const std::int64_t gradient =
            bucket.gradient_shard >= 0 ? bucket.gradient_shard + inside : offset + bucket.gradient_shift;
        const auto moment = [&](int array) {
          return reduction::number_at(moments + bucket.optimizer_offset + arrays.offset(array, bucket.shard), inside,
                                      arrays.type(array));
        };
        put(p, name, place->first, place->second,
            quantity == Quantity::kValue ? reduction::number_at(values, value, type)
            : quantity == Quantity::kGradient
                ? reduction::number_at(gradients, gradient, kind.buffers[static_cast<std::size_t>(p.gradient)].dtype)
            : quantity == Quantity::kFirstMoment ? moment(program::StateArrays::kFirstMoment)
                                                 : moment(program::StateArrays::kSecondMoment));
      }
    }
  }
}

}  // namespace trivium::runtime
