// Which elements dropout drops (Srivastava et al. 2014, JMLR 15, pp. 1929-1958; inverted, so that what is kept is
// scaled): a function of an element's place in the training alone. No plan changes it, nor does who computes it, when,
// or how often.
#pragma once

#include <cstdint>

#include "runtime/philox.h"

namespace trivium::runtime {

/// What one op drops. The word of element `column` of a row is word column % 4 of
///   philox({column / 4, position, sample, step}, key + head),
/// column: of hidden, or the position of attention's key; position: of the row's token, or of attention's query; head:
/// attention's, else 0. An element is dropped where its word is below the threshold.
struct Dropout {
  std::uint32_t threshold = 0;     ///< probability times 2^32; 0: nothing is dropped
  double scale = 1;                ///< 1 / (1 - probability), of what is kept
  std::uint64_t key = 0;           ///< of seed, layer and site
  std::uint32_t step = 0;          ///< of the training
  std::uint32_t first_sample = 0;  ///< of the op's micro-batch, among the samples of the step
  std::int64_t sequence = 0;       ///< tokens of a sample, all of them
  std::int64_t first_head = 0;     ///< number in the model of the op's first query head

  constexpr bool drops() const { return threshold > 0; }
};

/// Words of columns [4 quad, 4 quad + 4) of a row. `sample`: within the micro-batch; `head`: within the op's.
[[maybe_unused]] TRIVIUM_HOST_DEVICE static inline PhiloxWords dropout_words(const Dropout& d, std::int64_t head,
                                                                             std::int64_t sample, std::int64_t position,
                                                                             std::int64_t quad) {
  return philox({{static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(position),
                  d.first_sample + static_cast<std::uint32_t>(sample), d.step}},
                d.key + static_cast<std::uint64_t>(d.first_head + head));
}

}  // namespace trivium::runtime
