// Pictures of a Validation as SVG elements for a page of HTML. Same values, same bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/validate.h"

namespace trivium::calibration {

/// Text with what HTML gives a meaning written as entities.
std::string escaped(std::string_view text);

/// Measured across, predicted up, both logarithmic and in seconds, with the diagonal and a band of 10 % around it.
/// Points at or below zero are left out.
std::string parity_plot(std::span<const ParityPoint> points);

/// A bar from zero for each group, its mean error signed, with lines at 10 %; at most `most` of them.
std::string error_bars(std::span<const ValidationGroup> groups, std::size_t most);

/// Two panels one above the other on one scale of time, a row for each rank; colours by what the work is. At most 16
/// ranks.
std::string timeline_picture(const TimelinePair& pair);

}  // namespace trivium::calibration
