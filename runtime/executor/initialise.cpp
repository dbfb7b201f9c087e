#include "runtime/executor/initialise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "program/layout.h"

namespace trivium::runtime {
namespace {

std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t hash_name(const std::string& name) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

double uniform(std::uint64_t bits) {  // in (0, 1)
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53;
}

double normal(std::uint64_t key, std::uint64_t index) {
  const double a = uniform(mix(key ^ mix(2 * index))), b = uniform(mix(key ^ mix(2 * index + 1)));
  return std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b);
}

/// Elements [begin, end) of the chunk that this rank keeps of a bucket; the first of them lies at `at`.
struct Kept {
  std::int64_t begin, end, at;
};

Kept kept_of(const program::ChunkKind& kind, const program::Parameter& p, int shard_rank) {
  const auto bucket = std::find_if(kind.buckets.begin(), kind.buckets.end(), [&](const program::Bucket& b) {
    return p.offset >= b.begin && p.offset < b.begin + b.elements;
  });
  if (bucket->parameter_shard < 0) return {p.offset, p.offset + p.local_rows * p.local_columns, p.offset};
  const std::int64_t own = bucket->own_begin(shard_rank);
  const std::int64_t begin = std::max(own, p.offset);
  const std::int64_t end = std::min(own + bucket->shard, p.offset + p.local_rows * p.local_columns);
  return {begin, end, bucket->parameter_shard + begin - own};
}

template <class T>
void fill(const program::Parameter& p, const Kept& kept, std::uint64_t key, int tensor_rank, int tensor_ranks,
          int expert_rank, T* out) {
  for (std::int64_t e = kept.begin; e < kept.end; ++e) {
    const std::int64_t i = e - p.offset;
    const auto place =
        program::global_place(p, i / p.local_columns, i % p.local_columns, tensor_rank, tensor_ranks, expert_rank);
    double value = 0;
    if (place && p.init_std > 0) {
      value = p.init_std * normal(key, static_cast<std::uint64_t>(place->first * p.columns + place->second));
    } else if (place) {
      value = p.init_value;
    }
    out[kept.at + e - kept.begin] = static_cast<T>(value);
  }
}

}  // namespace

void initialise_parameters(const program::Program& program, const program::Role& role, int tensor_rank, int shard_rank,
                           int expert_rank, Arenas& arenas) {
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    const program::ChunkKind& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    std::byte* base = arenas.base(static_cast<int>(c), program::Space::kParameter, 0);
    for (const program::Parameter& p : kind.parameters) {
      const std::uint64_t key = mix(program.job.training.seed) ^ hash_name(program::global_name(p, chunk.first_layer));
      const Kept kept = kept_of(kind, p, shard_rank);
      if (program.job.plan.precision == program::DType::kFp64) {
        fill(p, kept, key, tensor_rank, program.mesh.tensor(), expert_rank, reinterpret_cast<double*>(base));
      } else {
        fill(p, kept, key, tensor_rank, program.mesh.tensor(), expert_rank, reinterpret_cast<float*>(base));
      }
    }
  }
}

}  // namespace trivium::runtime
