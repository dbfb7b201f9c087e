#include "runtime/generate/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <variant>

#include "base/error.h"
#include "program/ir/op_views.h"
#include "program/lower/layout.h"
#include "program/lower/lower.h"
#include "runtime/checkpoint/pieces.h"
#include "runtime/cpu/kernels.h"

namespace trivium::runtime::generate {
namespace {

using program::OpKind;
using program::Space;

program::Program lowered(const models::Model& model, std::int64_t longest) {
  program::Job job;
  job.model = model;
  job.training.sequence = longest;
  job.training.global_batch = 1;
  job.plan.precision = program::DType::kFp32;
  job.plan.attention = program::Attention::kFlash;
  auto result = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&result)) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("the model cannot run here: {} ({})", no->reason, no->rule));
  }
  return std::get<program::Program>(std::move(result));
}

// Nothing is trained: no room for gradients and moments.
constexpr std::array kSpaces{Space::kParameter, Space::kFrame,  Space::kWorkspace,
                             Space::kTokens,    Space::kScalar, Space::kGathered};

}  // namespace

Forward::Forward(const models::Model& model, const checkpoint::StoredTensors& tensors, std::int64_t longest)
    : program_(lowered(model, longest)), width_(program_.settings.padded_vocabulary) {
  const program::Role& role = program_.roles.front();
  arenas_ = std::make_unique<Arenas>(program_, role, core_, kSpaces);
  for (const checkpoint::Piece& piece : checkpoint::needed_pieces(program_, 0, *arenas_)) {
    if (piece.state == checkpoint::State::kValue) tensors.fill(piece);
  }
  const program::Body& body = program_.bodies[static_cast<std::size_t>(program_.kinds.front().forward)];
  for (const program::Op& op : body.ops) {
    if (op.kind == OpKind::kLossMax) {
      logits_ = op.in[0];
      break;
    }
    ++loss_;
    if (program::is_communication(op.kind) || cpu::find_kernel(op.kind, op.dtype) == nullptr) {
      throw base::Failure(base::ErrorKind::kUsage,
                          fmt::format("the CPU backend has no {} kernel in {}", name_of(op.kind), name_of(op.dtype)));
    }
  }
}

// As the loss would read them.
static void cap_logits(float* logits, std::int64_t count, double cap) {
  for (std::int64_t i = 0; i < count; ++i) logits[i] = static_cast<float>(cap * std::tanh(logits[i] / cap));
}

std::vector<std::span<const float>> Forward::operator()(std::span<const std::int32_t> tokens) {
  assert(!tokens.empty() && std::ssize(tokens) <= longest());
  const program::ChunkTemplate& kind = program_.kinds.front();
  // Later tokens do not change earlier ones, so what stands behind the text does not matter.
  auto* ids = reinterpret_cast<std::int32_t*>(arenas_->address(0, kind.ids, 0));
  std::fill(std::copy(tokens.begin(), tokens.end(), ids), ids + longest(), 0);
  const program::Body& body = program_.bodies[static_cast<std::size_t>(kind.forward)];
  const StepValues values{};
  for (std::size_t i = 0; i < loss_; ++i) {
    const program::Op& op = body.ops[i];
    KernelArguments a;
    a.op = &op;
    for (std::size_t j = 0; j < op.in.size(); ++j) a.in[j] = arenas_->address(0, op.in[j], 0);
    for (std::size_t j = 0; j < op.out.size(); ++j) a.out[j] = arenas_->address(0, op.out[j], 0);
    a.kind = &kind;
    a.values = &values;
    a.rotary = program::turns_by_window_frequencies(op) ? &program_.settings.window_rotary : &program_.settings.rotary;
    a.routing = &program_.settings.routing;
    a.vocabulary = program_.settings.vocabulary;
    cpu::find_kernel(op.kind, op.dtype)(a);
  }
  auto* logits = reinterpret_cast<float*>(arenas_->address(0, logits_, 0));
  if (const double cap = body.ops[loss_].soft_cap; cap > 0) cap_logits(logits, std::ssize(tokens) * width_, cap);
  std::vector<std::span<const float>> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.emplace_back(logits + static_cast<std::int64_t>(i) * width_,
                      static_cast<std::size_t>(program_.settings.vocabulary));
  }
  return rows;
}

}  // namespace trivium::runtime::generate
