#include "runtime/executor/dropout.h"

#include <algorithm>
#include <cmath>

#include "runtime/split_mix.h"

namespace trivium::runtime {
namespace {

using program::OpKind;

constexpr int kSites = 4;
constexpr int kHeadBits = 24;  // of a key

DropoutSite site_of(const program::Op& op) {
  switch (op.kind) {
    case OpKind::kAttention:
    case OpKind::kAttentionBackward:
    case OpKind::kAttentionBlock:
    case OpKind::kAttentionBlockBackward:
      return DropoutSite::kAttention;
    case OpKind::kBiasResidual:
    case OpKind::kBiasResidualBackward:  // reads the mask, whatever its site is
      return op.k == 0 ? DropoutSite::kAttentionResidual : DropoutSite::kMlpResidual;
    default:
      return DropoutSite::kEmbedding;
  }
}

std::uint32_t threshold_of(double probability) {
  return static_cast<std::uint32_t>(std::clamp(std::nearbyint(probability * 0x1.0p32), 1.0, 0x1.0p32 - 1));
}

}  // namespace

bool has_dropout(const program::Program& program, const program::Op& op) {
  if (program.job.training.dropout <= 0) return false;
  switch (op.kind) {
    case OpKind::kEmbedding:
      return program.job.model.positions != models::Positions::kLearned;
    case OpKind::kPosition:
    case OpKind::kPositionBackward:
    case OpKind::kEmbeddingBackward:
    case OpKind::kAttention:
    case OpKind::kAttentionBackward:
    case OpKind::kAttentionBlock:
    case OpKind::kAttentionBlockBackward:
    case OpKind::kBiasResidual:
    case OpKind::kBiasResidualBackward:
      return true;
    default:
      return false;
  }
}

std::uint64_t dropout_key(std::uint64_t seed, std::int64_t layer, DropoutSite site) {
  return mix(seed) + (static_cast<std::uint64_t>(layer * kSites + static_cast<std::int64_t>(site)) << kHeadBits);
}

Dropout dropout_of(const program::Program& program, const program::Coordinates& at, const program::Task& task,
                   const program::Op& op, std::int64_t step) {
  if (!has_dropout(program, op)) return {};
  const program::Training& training = program.job.training;
  const program::Plan& plan = program.job.plan;
  const program::Role& role = program.roles[static_cast<std::size_t>(program.role_at(at))];
  const int first_layer = role.chunks[static_cast<std::size_t>(task.chunk)].first_layer;
  Dropout d;
  d.threshold = threshold_of(training.dropout);
  d.scale = 1 / (1 - training.dropout);
  d.key = dropout_key(training.seed, op.layer < 0 ? 0 : first_layer + op.layer, site_of(op));
  d.step = static_cast<std::uint32_t>(step);
  d.first_sample = static_cast<std::uint32_t>(task.micro_batch * samples_of_pass(plan) + samples_before(plan, at.data));
  d.sequence = training.sequence;
  if (site_of(op) == DropoutSite::kAttention) {
    d.first_head = at.tensor * (program.job.model.heads / program.mesh.tensor());
    // Exchanged for tokens: a part of them for every context rank.
    if (plan.context_method == program::ContextMethod::kAllToAll) d.first_head += at.context * op.heads;
  }
  return d;
}

}  // namespace trivium::runtime
