// Which rank sends and gets back which rows of the experts: host and device count alike.
#pragma once

#include <cstdint>

namespace trivium::program {

/// An expert has room for `capacity` tokens of a sample. Context ranks share it evenly, and what falls on one of them
/// is dealt out over its tensor ranks, all samples of a micro-batch together; both are rounded up.
struct ExpertRows {
  std::int64_t capacity = 0, samples = 1, context = 1, tensor = 1;

  constexpr std::int64_t context_part() const { return (capacity + context - 1) / context; }  ///< of a sample
  /// Of a sample: what the tokens of one context rank, `own_tokens` of them, may take beyond that.
  constexpr std::int64_t excess(std::int64_t own_tokens) const {
    const std::int64_t most = capacity < own_tokens ? capacity : own_tokens;
    return most > context_part() ? most - context_part() : 0;
  }
  /// Rows of one expert, of all samples, that one rank sends.
  constexpr std::int64_t part() const { return (samples * context_part() + tensor - 1) / tensor; }
  /// Place of row `i` of a sample and context part: a tensor rank, and a row of the expert there.
  constexpr std::int64_t tensor_rank(std::int64_t sample, std::int64_t i) const {
    return (sample * context_part() + i) % tensor;
  }
  constexpr std::int64_t row(std::int64_t sample, std::int64_t i) const {
    return (sample * context_part() + i) / tensor;
  }
};

}  // namespace trivium::program
