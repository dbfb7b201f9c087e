// Rotary frequencies and the ways in which they are scaled.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/model.h"

namespace trivium::models {
namespace {

/// 1 where a frequency is kept, 0 where it is divided by the factor.
double kept_share(const Rotary& r, double frequency) {
  const double turns = static_cast<double>(r.original_sequence) * frequency / (2 * std::numbers::pi);
  if (r.fast_turns == r.slow_turns) return turns < r.slow_turns ? 0 : 1;  // no ramp (Llama 4 Scout)
  return std::clamp((turns - r.slow_turns) / (r.fast_turns - r.slow_turns), 0.0, 1.0);
}

/// The pair, as a real number, that turns so often within the original sequence.
double pair_of(const Rotary& r, double turns, double width) {
  return width * std::log(static_cast<double>(r.original_sequence) / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(r.theta));
}

/// YaRN's ramp is linear in the pair, not in the turns.
double kept_share_by_pair(const Rotary& r, double pair, double width) {
  double first = pair_of(r, r.fast_turns, width), last = pair_of(r, r.slow_turns, width);
  if (r.whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, width - 1);
  if (first == last) last += 0.001;  // as the published code has it
  return 1 - std::clamp((pair - first) / (last - first), 0.0, 1.0);
}

double scaled(const Rotary& r, double frequency, double pair, double width) {
  switch (r.scaling) {
    case RotaryScaling::kNone:
      return frequency;
    case RotaryScaling::kLinear:
      return frequency / r.factor;
    case RotaryScaling::kLlama3:
    case RotaryScaling::kYarn:
      break;
  }
  const double kept =
      r.scaling == RotaryScaling::kLlama3 ? kept_share(r, frequency) : kept_share_by_pair(r, pair, width);
  return frequency * kept + frequency / r.factor * (1 - kept);
}

}  // namespace

std::int64_t Model::rotary_width() const {
  if (positions != Positions::kRotary) return 0;
  if (latent) return latent->rotary_dim;
  return static_cast<std::int64_t>(static_cast<double>(head_dim) * rotary.share) / 2 * 2;
}

std::vector<double> rotary_frequencies(const Model& model) { return rotary_frequencies(model, model.rotary); }

std::vector<double> rotary_frequencies(const Model& model, const Rotary& rotary) {
  const std::int64_t half = model.rotary_width() / 2;
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(rotary.theta, -static_cast<double>(i) / static_cast<double>(half));
    frequencies.push_back(scaled(rotary, frequency, static_cast<double>(i), static_cast<double>(2 * half)));
  }
  return frequencies;
}

}  // namespace trivium::models
