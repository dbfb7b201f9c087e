// From what predictions of measured runs were off by to how far others may be off.
#pragma once

#include <string>
#include <vector>

#include "simulator/certainty/error_model.h"

namespace trivium::calibration {

/// One measured run. Errors are log(measured / predicted).
struct RunError {
  simulator::Likeness like;
  std::string source;
  std::string sweep;    ///< equal for runs of one model, batch and machine; empty: unknown
  double error = 0;     ///< as the shipped profiles predict it
  double left_out = 0;  ///< as profiles would that had not learned from its source
};

/// Of a source's runs, the shares within their 90 % intervals.
struct Coverage {
  std::string source;
  int runs = 0;
  double known = 0;    ///< with the source's own runs among those that the interval is made from
  double unknown = 0;  ///< with all of its runs left out
};

struct Learned {
  simulator::ErrorModel model;
  std::vector<Coverage> coverage;  ///< by source, in name order
  Coverage all;
};

/// Spreads of a run's own are those within sources; of device, stack, kind and machine those of greatest likelihood
/// under a log-normal prior (median 5 %, a factor of e either way), as sources are few; reaches are the 5 % and 95 %
/// quantiles of normalised errors, in the middle of a cell and with the source left out. Runs alike in everything are
/// one cell.
Learned learn(const std::vector<RunError>& runs);

/// Of runs that share model, batch and machine, where devices are busy: those are the plans one decides between.
double spread_between_plans(const std::vector<RunError>& runs);

/// For people.
std::string to_table(const Learned& learned);

}  // namespace trivium::calibration
