#include "runtime/generate/forward.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace trivium::runtime::generate {

Forward::Forward(const models::Model& model, const checkpoint::StoredTensors& tensors, std::int64_t longest)
    : model_(model), longest_(longest), weights_(model, tensors) {}

std::vector<std::span<const float>> Forward::operator()(std::span<const std::int32_t> tokens) {
  first_.reset();
  if (!whole_) whole_ = std::make_unique<Pass>(model_, weights_, longest_, false);
  (*whole_)(tokens);
  std::vector<std::span<const float>> rows;
  for (std::int64_t i = 0; i < std::ssize(tokens); ++i) rows.push_back(whole_->row(i));
  return rows;
}

// Keys and values lie head by head, so that a head reads one run of memory.
void Forward::make_room(std::int64_t tokens) {
  const std::int64_t before = kept_.empty() ? 0 : kept_.front().room;
  if (tokens <= before) return;
  constexpr std::uint64_t kLeast = 64;
  const auto wished = std::max(kLeast, std::bit_ceil(static_cast<std::uint64_t>(tokens)));
  const std::int64_t room = std::min(longest_, static_cast<std::int64_t>(wished));
  const std::int64_t keys = model_.head_dim, values = model_.value_dim(), heads = model_.kv_heads;
  std::vector<float> memory(static_cast<std::size_t>(model_.layers * heads * (keys + values) * room));
  std::vector<KeptKeys> kept;
  float* at = memory.data();
  for (std::int64_t layer = 0; layer < model_.layers; ++layer, at += heads * (keys + values) * room) {
    kept.push_back({.keys = at, .values = at + heads * keys * room, .room = room});
    for (std::int64_t h = 0; before > 0 && h < heads; ++h) {
      const KeptKeys &from = kept_[static_cast<std::size_t>(layer)], &to = kept.back();
      std::copy_n(from.keys + h * before * keys, read_ * keys, to.keys + h * room * keys);
      std::copy_n(from.values + h * before * values, read_ * values, to.values + h * room * values);
    }
  }
  memory_ = std::move(memory);
  kept_ = std::move(kept);
  if (step_) step_->reach(room);
}

std::span<const float> Forward::next(std::span<const std::int32_t> tokens) {
  assert(!tokens.empty() && read_ + std::ssize(tokens) <= longest_);
  make_room(read_ + std::ssize(tokens));
  first_.reset();
  if (read_ == 0 && tokens.size() > 1) {
    whole_.reset();  // not both at once
    first_ = std::make_unique<Pass>(model_, weights_, std::ssize(tokens), true);
    read_ = std::ssize(tokens);
    return (*first_)(tokens, {.past = 0, .layers = kept_});
  }
  std::span<const float> logits;
  for (const std::int32_t token : tokens) logits = one(token);
  return logits;
}

std::span<const float> Forward::one(std::int32_t token) {
  if (!step_) {
    step_ = std::make_unique<Pass>(model_, weights_, 1, true);
    step_->reach(kept_.front().room);
  }
  return (*step_)({&token, 1}, {.past = read_++, .layers = kept_});
}

}  // namespace trivium::runtime::generate
