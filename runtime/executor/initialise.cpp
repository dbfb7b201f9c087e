#include "runtime/executor/initialise.h"

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

template <class T>
void fill(const program::Parameter& p, std::uint64_t key, int tensor_rank, int tensor_ranks, T* out) {
  for (std::int64_t r = 0; r < p.local_rows; ++r) {
    for (std::int64_t c = 0; c < p.local_columns; ++c) {
      const auto place = program::global_place(p, r, c, tensor_rank, tensor_ranks);
      double value = 0;
      if (place && p.init_std > 0) {
        value = p.init_std * normal(key, static_cast<std::uint64_t>(place->first * p.columns + place->second));
      } else if (place) {
        value = p.init_value;
      }
      out[r * p.local_columns + c] = static_cast<T>(value);
    }
  }
}

}  // namespace

void initialise_parameters(const program::Program& program, const program::Role& role, int tensor_rank,
                           Arenas& arenas) {
  for (std::size_t c = 0; c < role.chunks.size(); ++c) {
    const program::Chunk& chunk = role.chunks[c];
    std::byte* base = arenas.base(static_cast<int>(c), program::Space::kParameter, 0);
    for (const program::Parameter& p : program.kinds[static_cast<std::size_t>(chunk.kind)].parameters) {
      const std::uint64_t key = mix(program.job.training.seed) ^ hash_name(program::global_name(p, chunk.first_layer));
      if (program.job.plan.precision == program::DType::kFp64) {
        fill(p, key, tensor_rank, program.mesh.tensor(), reinterpret_cast<double*>(base) + p.offset);
      } else {
        fill(p, key, tensor_rank, program.mesh.tensor(), reinterpret_cast<float*>(base) + p.offset);
      }
    }
  }
}

}  // namespace trivium::runtime
