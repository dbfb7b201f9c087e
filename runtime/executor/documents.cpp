#include "runtime/executor/documents.h"

#include <algorithm>

#include "runtime/split_mix.h"

namespace trivium::runtime {

std::vector<std::int32_t> document_starts(const program::Documents& documents, std::uint64_t seed, std::int64_t sample,
                                          std::int64_t sequence) {
  std::vector<std::uint64_t> up_to;  // sums of weights
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < documents.lengths.size(); ++i) {
    up_to.push_back(sum += static_cast<std::uint64_t>(documents.weight(i)));
  }
  constexpr std::uint64_t kDocuments = 0x646f63756d656e74;  // tells these draws from others of the seed
  const std::uint64_t key = mix(mix(seed ^ kDocuments) + static_cast<std::uint64_t>(sample));
  std::vector<std::int32_t> starts(static_cast<std::size_t>(sequence));
  std::uint64_t number = 0;
  for (std::int64_t begin = 0; begin < sequence; ++number) {
    const std::uint64_t drawn = mix(key + number) % sum;  // weights are far below 2^64: no length is favoured to notice
    const auto which = std::upper_bound(up_to.begin(), up_to.end(), drawn) - up_to.begin();
    const std::int64_t end = std::min(sequence, begin + documents.lengths[static_cast<std::size_t>(which)]);
    std::fill(starts.begin() + begin, starts.begin() + end, static_cast<std::int32_t>(begin));
    begin = end;
  }
  return starts;
}

const std::int32_t* StepDocuments::of(std::int64_t first, std::int64_t count) {
  const program::Documents& documents = settings_.documents;
  if (!documents.used()) return nullptr;
  const auto [at, is_new] = known_.try_emplace(first);
  for (std::int64_t i = 0; is_new && i < count; ++i) {
    const auto starts = document_starts(documents, settings_.seed, first + i, settings_.batch.sequence);
    at->second.insert(at->second.end(), starts.begin(), starts.end());
  }
  return at->second.data();
}

}  // namespace trivium::runtime
