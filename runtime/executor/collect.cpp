#include "runtime/executor/collect.h"

#include <cmath>
#include <limits>

#include "program/layout.h"

namespace trivium::runtime {
namespace {

using program::Bucket;
using program::DType;
using program::Space;

double read(const std::byte* base, std::int64_t index, DType type) {
  return type == DType::kFp64 ? reinterpret_cast<const double*>(base)[index]
                              : static_cast<double>(reinterpret_cast<const float*>(base)[index]);
}

// Where element `offset` of the chunk is kept, or null where another rank owns it.
struct Owner {
  const Bucket& bucket;
  std::int64_t begin;  // first element of this rank's part
  bool has(std::int64_t offset) const { return offset >= begin && offset < begin + bucket.shard; }
};

Owner owner_of(const program::ChunkKind& kind, std::int64_t offset, int data_rank) {
  for (const Bucket& bucket : kind.buckets) {
    if (offset < bucket.begin || offset >= bucket.begin + bucket.elements) continue;
    return {bucket, bucket.begin + (bucket.shard < bucket.elements ? data_rank * bucket.shard : 0)};
  }
  return {kind.buckets.front(), 0};
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
  const DType type = program.job.plan.precision;
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    const program::ChunkKind& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    const std::byte* values = arenas.base(static_cast<int>(c), Space::kParameter, 0);
    const std::byte* gradients = arenas.base(static_cast<int>(c), Space::kGradient, 0);
    const std::byte* moments = arenas.base(static_cast<int>(c), Space::kOptimizer, 0);
    for (const program::Parameter& p : kind.parameters) {
      const std::string name = program::global_name(p, chunk.first_layer);
      for (std::int64_t i = 0; i < p.local_rows * p.local_columns; ++i) {
        const auto place =
            program::global_place(p, i / p.local_columns, i % p.local_columns, at.tensor, program.mesh.tensor());
        if (!place) continue;
        const std::int64_t offset = p.offset + i;
        double value = 0;
        if (quantity == Quantity::kValue) {
          value = read(values, offset, type);
        } else {
          const Owner owner = owner_of(kind, offset, at.data);
          if (!owner.has(offset)) continue;
          const std::int64_t moment =
              offset - owner.begin + (quantity == Quantity::kSecondMoment ? owner.bucket.shard : 0);
          value = quantity == Quantity::kGradient ? read(gradients, offset, type)
                                                  : read(moments + owner.bucket.optimizer_offset, moment, type);
        }
        put(p, name, place->first, place->second, value);
      }
    }
  }
}

}  // namespace trivium::runtime
