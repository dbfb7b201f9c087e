#include "runtime/generate/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

#include "runtime/generate/forward.h"

namespace trivium::runtime::generate {
namespace {

constexpr std::int64_t kShortest = 32;  // programs grow by doubling from here: cost follows the length of the text

std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t seed, std::int64_t number) {
  return static_cast<double>(mix(mix(seed) + static_cast<std::uint64_t>(number)) >> 11) * 0x1.0p-53;
}

}  // namespace

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
  std::optional<Forward> forward;
  std::vector<std::int32_t> generated;
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::int64_t seen = std::min(std::ssize(text), model.max_sequence);
    if (!forward || forward->longest() < seen) {
      const auto room = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(seen)));
      forward.reset();  // two of them may not fit
      forward.emplace(model, tensors, std::min(model.max_sequence, std::max(kShortest, room)));
    }
    const auto rows = (*forward)(std::span(text).last(static_cast<std::size_t>(seen)));
    const std::int32_t next = choose(rows.back(), options.temperature, options.top_k, uniform(options.seed, i));
    text.push_back(next);
    generated.push_back(next);
    if (options.on_token && !options.on_token(next)) break;
  }
  return generated;
}

}  // namespace trivium::runtime::generate
