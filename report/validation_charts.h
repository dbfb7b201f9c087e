// Plots of predictions against measurements as SVG elements. Same values, same bytes.
#pragma once

#include <span>
#include <string>

#include "calibration/validate/validate.h"

namespace trivium::report {

/// Measured across, predicted up, both logarithmic and in seconds, with the diagonal and a band of 10 % around it.
/// Points at or below zero are left out.
std::string parity_plot(std::span<const calibration::ParityPoint> points);

/// A bar from zero for each group, its mean error signed, with lines at 10 %; at most `most` of them.
std::string error_bars(std::span<const calibration::ValidationGroup> groups, std::size_t most);

/// Two panels one above the other on one scale of time, a row for each rank; colours by what the work is. At most 16
/// ranks.
std::string timeline_picture(const calibration::TimelinePair& pair);

}  // namespace trivium::report
