#include "runtime/executor/initialise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "program/lower/layout.h"
#include "runtime/reduction/half.h"
#include "runtime/split_mix.h"

namespace trivium::runtime {
namespace {

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

/// Elements [begin, end) of the chunk that this rank keeps of a parameter; the first of them lies at `at`.
struct Kept {
  std::int64_t begin, end, at;
};

const program::Bucket& bucket_of(const program::ChunkTemplate& kind, const program::Parameter& p) {
  return *std::find_if(kind.buckets.begin(), kind.buckets.end(), [&](const program::Bucket& b) {
    return p.offset >= b.begin && p.offset < b.begin + b.elements;
  });
}

/// Those of a shard, which begins at element `at` of wherever it is kept.
std::vector<Kept> shard_of(const program::Bucket& bucket, const program::Parameter& p, int shard_rank,
                           std::int64_t at) {
  std::vector<Kept> runs;
  for (int part = 0; part < bucket.parts; ++part, at += bucket.own_run()) {
    const std::int64_t own = bucket.own_begin(shard_rank, part);
    const std::int64_t begin = std::max(own, p.offset);
    const std::int64_t end = std::min(own + bucket.own_run(), p.offset + p.local_rows * p.local_columns);
    if (begin < end) runs.push_back({begin, end, at + begin - own});
  }
  return runs;
}

/// Where a rank stands among those that a parameter is split over.
struct Place {
  int tensor_rank, tensor_ranks, expert_rank;
};

template <class T, class Narrow>
void fill_range(const program::Parameter& p, const Kept& kept, std::uint64_t key, const Place& here, T* out,
                Narrow narrow) {
  for (std::int64_t e = kept.begin; e < kept.end; ++e) {
    const std::int64_t i = e - p.offset;
    const auto place = program::global_place(p, i / p.local_columns, i % p.local_columns, here.tensor_rank,
                                             here.tensor_ranks, here.expert_rank);
    double value = 0;
    if (place && p.init_std > 0) {
      value = p.init_std * normal(key, static_cast<std::uint64_t>(place->first * p.columns + place->second));
    } else if (place) {
      value = p.init_value;
    }
    out[kept.at + e - kept.begin] = narrow(value);
  }
}

/// Large tensors are filled by all cores: every element is a function of its place alone.
template <class T, class Narrow>
void fill_run(const program::Parameter& p, const Kept& kept, std::uint64_t key, const Place& here, T* out,
              Narrow narrow) {
  constexpr std::int64_t kWorthAThread = std::int64_t{1} << 20;
  const std::int64_t count = kept.end - kept.begin;
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t parts = std::clamp<std::int64_t>(count / kWorthAThread, 1, cores);
  std::vector<std::jthread> threads;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = count * part / parts, last = count * (part + 1) / parts;
    const Kept mine{kept.begin + first, kept.begin + last, kept.at + first};
    if (part + 1 == parts) {
      fill_range(p, mine, key, here, out, narrow);
    } else {
      threads.emplace_back([&p, &here, mine, key, out, narrow] { fill_range(p, mine, key, here, out, narrow); });
    }
  }
}

template <class T, class Narrow>
void fill(const program::Parameter& p, const std::vector<Kept>& runs, std::uint64_t key, const Place& here, T* out,
          Narrow narrow) {
  for (const Kept& kept : runs) fill_run(p, kept, key, here, out, narrow);
}

}  // namespace

void initialise_parameters(const program::Program& program, int rank, Arenas& arenas) {
  const program::Coordinates at = program.mesh.coordinates(rank);
  const program::Role& role = program.role_of(rank);
  const Place here{at.tensor, program.mesh.tensor(), program.mesh.expert_rank(at)};
  const program::Space kept_in = program.settings.state_space();
  std::uint16_t (*const to_bf16)(double) = [](double value) {
    return reduction::bf16_of_float(static_cast<float>(value));
  };
  std::uint16_t (*const to_fp16)(double) = [](double value) {
    return reduction::fp16_of_float(static_cast<float>(value));
  };
  const auto to_float = [](double value) { return static_cast<float>(value); };
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    const program::ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    std::byte* base = arenas.base(static_cast<int>(c), program.settings.parameter_space(), 0);
    std::byte* state = arenas.base(static_cast<int>(c), kept_in, 0);
    for (const program::Parameter& p : kind.parameters) {
      const std::uint64_t key = mix(program.settings.seed) ^ hash_name(program::global_name(p, chunk.first_layer));
      const program::Bucket& bucket = bucket_of(kind, p);
      const int shard_rank =
          bucket.expert ? program.mesh.index_in(program::Group::kExpertData, rank) : program.mesh.shard_rank(rank);
      const std::vector<Kept> kept =
          bucket.parameter_shard >= 0
              ? shard_of(bucket, p, shard_rank, bucket.parameter_shard)
              : std::vector<Kept>{{p.offset, p.offset + p.local_rows * p.local_columns, p.offset}};
      switch (program.settings.precision) {
        case program::DType::kFp64:
          fill(p, kept, key, here, reinterpret_cast<double*>(base), [](double value) { return value; });
          break;
        case program::DType::kBf16:
        case program::DType::kFp16:
          fill(p, kept, key, here, reinterpret_cast<std::uint16_t*>(base),
               program.settings.precision == program::DType::kBf16 ? to_bf16 : to_fp16);
          fill(p, shard_of(bucket, p, shard_rank, 2 * bucket.shard), key, here,
               reinterpret_cast<float*>(state + bucket.optimizer_offset), to_float);
          break;
        default:
          fill(p, kept, key, here, reinterpret_cast<float*>(base), to_float);
      }
    }
  }
}

}  // namespace trivium::runtime
