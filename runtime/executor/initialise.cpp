#include "runtime/executor/initialise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <thread>
#include <utility>
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

/// Where values of elements go as a type, from element `begin` on.
struct Target {
  program::DType type;
  std::byte* at;
  std::int64_t begin, end;
  std::int64_t bytes() const { return (end - begin) * size_of(type); }
};

/// A parameter's place in an arena: as parameters, or as the optimizer's fp32 copies of them.
struct Store {
  program::DType type;
  std::byte* base;
  std::vector<Kept> runs;

  void add_targets(std::int64_t begin, std::int64_t end, std::vector<Target>& targets) const {
    for (const Kept& run : runs) {
      const std::int64_t first = std::max(begin, run.begin), last = std::min(end, run.end);
      if (first < last) targets.push_back({type, base + (run.at + first - run.begin) * size_of(type), first, last});
    }
  }
};

template <class T>
void put(std::byte* at, std::int64_t i, T value) {
  reinterpret_cast<T*>(at)[i] = value;
}

void put(const Target& target, std::int64_t element, double value) {
  if (element < target.begin || element >= target.end) return;
  const std::int64_t i = element - target.begin;
  switch (target.type) {
    case program::DType::kFp64:
      return put(target.at, i, value);
    case program::DType::kBf16:
      return put(target.at, i, reduction::bf16_of_float(static_cast<float>(value)));
    case program::DType::kFp16:
      return put(target.at, i, reduction::fp16_of_float(static_cast<float>(value)));
    default:
      return put(target.at, i, static_cast<float>(value));
  }
}

/// Elements begin … end - 1, each drawn once for all targets.
void draw_range(const program::Parameter& p, std::int64_t begin, std::int64_t end, std::uint64_t key, const Place& here,
                const std::vector<Target>& targets) {
  for (std::int64_t e = begin; e < end; ++e) {
    const std::int64_t i = e - p.offset;
    const auto place = program::global_place(p, i / p.local_columns, i % p.local_columns, here.tensor_rank,
                                             here.tensor_ranks, here.expert_rank);
    double value = 0;
    if (place && p.init_std > 0) {
      value = p.init_std * normal(key, static_cast<std::uint64_t>(place->first * p.columns + place->second));
    } else if (place) {
      value = p.init_value;
    }
    for (const Target& target : targets) put(target, e, value);
  }
}

constexpr std::int64_t kWorthAThread = std::int64_t{1} << 20;

std::int64_t cores() { return std::max(1U, std::thread::hardware_concurrency()); }

/// Likewise by all cores where there are many: every element is a function of its place alone.
void draw(const program::Parameter& p, std::int64_t begin, std::int64_t end, std::uint64_t key, const Place& here,
          const std::vector<Target>& targets) {
  const std::int64_t count = end - begin;
  const std::int64_t parts = std::clamp<std::int64_t>(count / kWorthAThread, 1, cores());
  std::vector<std::jthread> threads;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = begin + count * part / parts, last = begin + count * (part + 1) / parts;
    if (part + 1 == parts) {
      draw_range(p, first, last, key, here, targets);
    } else {
      threads.emplace_back([&, first, last] { draw_range(p, first, last, key, here, targets); });
    }
  }
}

/// Draws for memory that the host cannot write: to host memory, then copied.
void draw_beside(const program::Parameter& p, std::int64_t begin, std::int64_t end, std::uint64_t key,
                 const Place& here, std::vector<Target> targets, Backend& backend) {
  std::vector<std::vector<std::byte>> rooms;
  std::vector<std::byte*> places;
  for (Target& target : targets) {
    rooms.emplace_back(static_cast<std::size_t>(target.bytes()));
    places.push_back(std::exchange(target.at, rooms.back().data()));
  }
  draw(p, begin, end, key, here, targets);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    backend.upload(program::Lane::kCompute, places[i], targets[i].at, targets[i].bytes());
  }
}

/// The parameter's values, in pieces. Where the optimizer has copies, their elements are among the parameters kept.
void set_parameter(const program::Parameter& p, const std::vector<Store>& stores, std::uint64_t key, const Place& here,
                   Backend& backend) {
  const std::int64_t piece = kWorthAThread * cores();
  for (const Kept& run : stores.front().runs) {
    for (std::int64_t begin = run.begin; begin < run.end; begin += piece) {
      const std::int64_t end = std::min(begin + piece, run.end);
      std::vector<Target> targets;
      for (const Store& store : stores) store.add_targets(begin, end, targets);
      if (backend.shares_host_memory()) {
        draw(p, begin, end, key, here, targets);
      } else {
        draw_beside(p, begin, end, key, here, targets, backend);
      }
    }
  }
}

}  // namespace

void initialise_parameters(const program::Program& program, int rank, Backend& backend, Arenas& arenas) {
  const program::Coordinates at = program.mesh.coordinates(rank);
  const program::Role& role = program.role_of(rank);
  const program::Settings& settings = program.settings;
  const Place here{at.tensor, program.mesh.tensor(), program.mesh.expert_rank(at)};
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    const program::ChunkTemplate& kind = program.kinds[static_cast<std::size_t>(chunk.kind)];
    std::byte* base = arenas.base(static_cast<int>(c), settings.parameter_space(), 0);
    std::byte* state = arenas.base(static_cast<int>(c), settings.state_space(), 0);
    for (const program::Parameter& p : kind.parameters) {
      const std::uint64_t key = mix(settings.seed) ^ hash_name(program::global_name(p, chunk.first_layer));
      const program::Bucket& bucket = bucket_of(kind, p);
      const int shard_rank =
          bucket.expert ? program.mesh.index_in(program::Group::kExpertData, rank) : program.mesh.shard_rank(rank);
      std::vector<Store> stores{
          {settings.precision, base, {{p.offset, p.offset + p.local_rows * p.local_columns, p.offset}}}};
      if (bucket.parameter_shard >= 0) stores[0].runs = shard_of(bucket, p, shard_rank, bucket.parameter_shard);
      if (program::is_half(settings.precision) && !p.frozen) {
        const std::int64_t master =
            settings.state_arrays(bucket.muon).offset(program::StateArrays::kMaster, bucket.shard);
        stores.push_back(
            {program::DType::kFp32, state + bucket.optimizer_offset + master, shard_of(bucket, p, shard_rank, 0)});
      }
      set_parameter(p, stores, key, here, backend);
    }
  }
  if (!backend.shares_host_memory()) backend.finish();
}

}  // namespace trivium::runtime
