#include "runtime/generate/pass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <variant>

#include "base/error.h"
#include "program/ir/op_views.h"
#include "program/lower/lower.h"
#include "runtime/checkpoint/pieces.h"
#include "runtime/cpu/kernels.h"

namespace trivium::runtime::generate {
namespace {

using program::OpKind;
using program::Space;

// Layers are computed one in the place of the other, as where they are recomputed: nothing is kept for a backward.
program::Program lowered(const models::Model& model, std::int64_t tokens) {
  program::Job job;
  job.model = model;
  if (job.model.experts) job.model.experts->dropless = true;
  job.training.sequence = tokens;
  job.training.global_batch = 1;
  job.plan.precision = program::DType::kFp32;
  job.plan.attention = program::Attention::kFlash;
  job.plan.recompute = program::Recompute::kFull;
  if (const std::vector<std::string> lacking = models::not_run(job.model); !lacking.empty()) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("no backend runs {} yet: {}", job.model.name, fmt::join(lacking, ", ")));
  }
  auto result = program::lower(job);
  if (const auto* no = std::get_if<program::Infeasible>(&result)) {
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("the model cannot run here: {} ({})", no->reason, no->rule));
  }
  return std::get<program::Program>(std::move(result));
}

// Nothing is trained: no room for gradients and moments.
constexpr std::array kSpaces{Space::kFrame, Space::kWorkspace, Space::kTokens, Space::kScalar, Space::kGathered};
constexpr std::array kOfWeights{Space::kParameter};

[[maybe_unused]] bool same_places(const std::vector<program::Parameter>& a, const std::vector<program::Parameter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.name == y.name && x.offset == y.offset; });
}

}  // namespace

Weights::Weights(const models::Model& model, const checkpoint::StoredTensors& tensors) : program_(lowered(model, 1)) {
  arenas_ = std::make_unique<Arenas>(program_, program_.roles.front(), core_, kOfWeights);
  for (const checkpoint::Piece& piece : checkpoint::needed_pieces(program_, 0, *arenas_)) {
    if (piece.state == checkpoint::State::kValue) tensors.fill(piece);
  }
}

Pass::Pass(const models::Model& model, const Weights& weights, std::int64_t tokens, bool last_alone)
    : program_(lowered(model, tokens)), weights_(weights), tokens_(tokens) {
  assert(same_places(program_.kinds.front().parameters, weights.parameters()));
  arenas_ = std::make_unique<Arenas>(program_, program_.roles.front(), core_, kSpaces);
  take_ops(last_alone);
  for (program::Op& op : ops_) {  // its own tokens may be fewer than a window has keys, but not with those before them
    if (op.kind != OpKind::kAttention) continue;
    op.window = static_cast<std::int32_t>(model.layer_kind(op.layer).window);
    op.chunked = op.window > 0 && model.window->chunked;
  }
  if (!model.experts) return;
  const std::int64_t rows = tokens * model.experts->top_k;  // that are there; experts have room for some more
  for (program::Op& op : ops_) {
    if (op.kind == OpKind::kActivation) op.m = std::min(op.m, rows);
  }
}

void Pass::take_ops(bool last_alone) {
  const program::Body& body = program_.bodies[static_cast<std::size_t>(program_.kinds.front().forward)];
  const auto loss = std::ranges::find_if(body.ops, [](const program::Op& op) { return op.kind == OpKind::kLossMax; });
  logits_ = loss->in[0];
  if (loss->score_scale > 0) logit_scale_ = loss->score_scale;
  logit_cap_ = loss->soft_cap;
  ops_.assign(body.ops.begin(), loss);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const program::Op& op = ops_[i];
    if (op.out[0] == logits_) head_ = i;
    if (!program::is_communication(op.kind) && cpu::find_kernel(op.kind, op.dtype) != nullptr) continue;
    throw base::Failure(base::ErrorKind::kUsage,
                        fmt::format("the CPU backend has no {} kernel in {}", name_of(op.kind), name_of(op.dtype)));
  }
  rows_ = last_alone ? 1 : tokens_;
  ops_[head_].m = rows_;
}

// Positions are counted modulo the tokens of a sample.
void Pass::reach(std::int64_t longest) {
  for (program::Op& op : ops_) {
    if (op.kind == OpKind::kRotary || op.kind == OpKind::kScaleQueries)
      op.sequence = static_cast<std::int32_t>(longest);
    if (op.kind == OpKind::kPosition) op.k = longest;
  }
}

std::byte* Pass::address(int buffer) const {
  if (buffer == program::kNoBuffer) return nullptr;
  const program::Buffer& b = program_.kinds.front().buffers[static_cast<std::size_t>(buffer)];
  return b.space == Space::kParameter ? weights_.at(b) : arenas_->address(0, buffer, 0);
}

std::span<const float> Pass::row(std::int64_t i) const {
  const auto* logits = reinterpret_cast<const float*>(address(logits_));
  return {logits + i * program_.settings.padded_vocabulary, static_cast<std::size_t>(program_.settings.vocabulary)};
}

std::span<const float> Pass::operator()(std::span<const std::int32_t> tokens, const Text& text) {
  assert(!tokens.empty() && std::ssize(tokens) <= tokens_);
  const program::ChunkTemplate& kind = program_.kinds.front();
  auto* ids = reinterpret_cast<std::int32_t*>(address(kind.ids));
  std::fill(std::copy(tokens.begin(), tokens.end(), ids), ids + tokens_, 0);
  const StepValues values{};
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const program::Op& op = ops_[i];
    KernelArguments a;
    a.op = &op;
    for (std::size_t j = 0; j < op.in.size(); ++j) a.in[j] = address(op.in[j]);
    for (std::size_t j = 0; j < op.out.size(); ++j) a.out[j] = address(op.out[j]);
    if (i == head_ && rows_ < tokens_) a.in[0] += (std::ssize(tokens) - rows_) * op.k * program::size_of(op.dtype);
    a.kind = &kind;
    a.values = &values;
    a.rotary = program::turns_by_window_frequencies(op) ? &program_.settings.window_rotary : &program_.settings.rotary;
    a.routing = &program_.settings.routing;
    a.vocabulary = program_.settings.vocabulary;
    a.past = text.past;
    if (op.kind == OpKind::kAttention && !text.layers.empty())
      a.kept = &text.layers[static_cast<std::size_t>(op.layer)];
    cpu::find_kernel(op.kind, op.dtype)(a);
  }
  const std::int64_t rows = rows_ < tokens_ ? rows_ : std::ssize(tokens);
  auto* logits = reinterpret_cast<float*>(address(logits_));
  for (std::int64_t i = 0; i < rows * program_.settings.padded_vocabulary; ++i) {  // as the loss would read them
    if (logit_scale_ != 1) logits[i] = static_cast<float>(logits[i] * logit_scale_);
    if (logit_cap_ > 0) logits[i] = static_cast<float>(logit_cap_ * std::tanh(logits[i] / logit_cap_));
  }
  return row(rows - 1);
}

}  // namespace trivium::runtime::generate
