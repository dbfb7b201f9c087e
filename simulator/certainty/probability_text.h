// Probabilities in words: tails of measured errors tell nothing finer than a thousandth.
#pragma once

#include <string>

namespace trivium::simulator {

/// "97.1 %", beyond a thousandth of either end "above 99.9 %" or "below 0.1 %".
std::string probability_text(double probability);

}  // namespace trivium::simulator
