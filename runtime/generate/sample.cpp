#include "runtime/generate/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/generate/forward.h"

namespace trivium::runtime::generate {
namespace {

std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

double drawn(std::uint64_t seed, std::int64_t number) {
  return static_cast<double>(mix(mix(seed) + static_cast<std::uint64_t>(number)) >> 11) * 0x1.0p-53;
}

std::int32_t choose(std::span<const float> logits, double temperature, std::int64_t top_k, double uniform) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto more_likely = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (temperature <= 0) return *std::min_element(order.begin(), order.end(), more_likely);
  const std::size_t count = top_k > 0 ? std::min(order.size(), static_cast<std::size_t>(top_k)) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), more_likely);
  order.resize(count);
  const double highest = logits[static_cast<std::size_t>(order.front())];
  std::vector<double> weights;
  for (const std::int32_t token : order) {
    weights.push_back(std::exp((logits[static_cast<std::size_t>(token)] - highest) / temperature));
  }
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (left < weights[i]) return order[i];
    left -= weights[i];
  }
  return order.back();
}

std::vector<std::int32_t> sample(const models::Model& model, const checkpoint::StoredTensors& tensors,
                                 std::vector<std::int32_t> text, const SampleOptions& options) {
  const std::int64_t longest = std::min(model.max_sequence, std::ssize(text) + options.tokens);
  Forward forward(model, tensors, longest);
  std::vector<std::int32_t> generated;
  std::span<const std::int32_t> unread = text;
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    // Where the oldest tokens are forgotten all others move up, and nothing of what was kept holds.
    const bool fits = std::ssize(text) <= longest;
    const auto logits =
        fits ? forward.next(unread) : forward(std::span(text).last(static_cast<std::size_t>(longest))).back();
    const std::int32_t next = choose(logits, options.temperature, options.top_k, drawn(options.seed, i));
    text.push_back(next);
    generated.push_back(next);
    unread = std::span(text).last(1);
    if (options.on_token && !options.on_token(next)) break;
  }
  return generated;
}

}  // namespace trivium::runtime::generate
