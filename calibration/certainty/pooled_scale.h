// What others' runs say of the rates that a machine's devices reach.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trivium::calibration {

/// Of one publisher on one machine.
struct ScaleCell {
  std::string publisher, machine, device;
  double log_scale = 0;  ///< logarithm of the share of the device's rates that these runs tell
  double variance = 0;   ///< of that logarithm, as the runs tell it
};

/// Standard deviations of logarithms of scales: between devices, between machines of one device, and between
/// publishers' software and ways to measure on one machine.
struct ScaleParts {
  double device = 0, machine = 0, publisher = 0;
};

/// Those of greatest restricted likelihood (Patterson and Thompson 1971, Biometrika 58:545) under a log-normal prior
/// (median 5 %, a factor of e either way), as cells are few.
ScaleParts scale_parts(const std::vector<ScaleCell>& cells);

/// The scale to expect of a publisher that is not among the cells: best linear unbiased prediction around a mean that
/// the cells tell (Robinson 1991, Statistical Science 6:15). Nothing where no cell is of the device.
std::optional<double> pooled_scale(const std::vector<ScaleCell>& cells, const ScaleParts& parts,
                                   const std::string& machine, const std::string& device);

}  // namespace trivium::calibration
