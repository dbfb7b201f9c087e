// A text to train on where nobody has one at hand.
#pragma once

#include <cstddef>
#include <string>

namespace trivium::gui {

/// Sums in words, one a line ("seven and five make twelve."), as many as `bytes` hold: a tiny model learns their
/// letters within some steps. Always the same.
std::string sample_text(std::size_t bytes);

}  // namespace trivium::gui
