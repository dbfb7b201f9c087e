#include "runtime/executor/dropout.h"

#include <algorithm>
#include <cmath>

#include "program/ir/context.h"
#include "runtime/split_mix.h"

namespace trivium::runtime {
namespace {

using program::DropoutSite;

constexpr int kSites = 4;      // that are of a layer or the embedding
constexpr int kHeadBits = 24;  // of a key

std::uint32_t threshold_of(double probability) {
  return static_cast<std::uint32_t>(std::clamp(std::nearbyint(probability * 0x1.0p32), 1.0, 0x1.0p32 - 1));
}

}  // namespace

std::uint64_t dropout_key(std::uint64_t seed, std::int64_t layer, DropoutSite site) {
  return mix(seed) + (static_cast<std::uint64_t>(layer * kSites + static_cast<std::int64_t>(site)) << kHeadBits);
}

Dropout dropout_of(const program::Program& program, const program::Coordinates& at, const program::Task& task,
                   const program::Op& op, std::int64_t step) {
  Dropout d;
  if (op.dropout == DropoutSite::kAttention || op.alibi_heads > 0) {
    const int context = program.mesh.context(), among = context / op.parts;
    const int part =
        op.part_of_heads ? at.tensor * among + program::head_part(op.parts, at.context, context) : at.tensor;
    d.first_head = std::int64_t{part} * op.heads;
  }
  if (op.dropout == DropoutSite::kNone) return d;
  const program::Settings& settings = program.settings;
  const program::Role& role = program.roles[static_cast<std::size_t>(program.role_at(at))];
  const int first_layer = role.chunks[static_cast<std::size_t>(task.chunk)].first_layer;
  d.threshold = threshold_of(settings.dropout);
  d.scale = 1 / (1 - settings.dropout);
  d.key = dropout_key(settings.seed, op.layer < 0 ? 0 : first_layer + op.layer, op.dropout);
  d.step = static_cast<std::uint32_t>(step);
  d.first_sample = static_cast<std::uint32_t>(settings.batch.first_sample(task.micro_batch, at.data));
  d.sequence = settings.batch.sequence;
  return d;
}

}  // namespace trivium::runtime
