// The measured ops of several runs, gathered by shape.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "calibration/fit/fit.h"
#include "program/ir/rate_kind.h"
#include "program/record/run_record.h"

namespace trivium::calibration {

/// What all shapes of one kind took.
struct KindSamples {
  std::vector<Sample> samples;  ///< one a shape and record
  std::vector<double> spread;   ///< every event over its shape's own typical time
  std::size_t events = 0;
  std::vector<std::size_t> records;  ///< which records they are from, counted from 1
};

struct OpSamples {
  std::map<program::RateKind, KindSamples> compute;  ///< sizes (1, FLOPs, bytes, blocks of queries)
  KindSamples communication;  ///< inside one node: sizes (1, bytes read, 0, 0); see docs/explanation/cost-model.md
  std::vector<double> late;   ///< per record with ranks that meet inside a layer: mean wait over log2(ranks) of such a
                              ///< collective, but for interruptions, s
  std::vector<double>
      disturbance;      ///< per record: time of a step's ops over the sum of their typical times, at least 1
  double host_gap = 0;  ///< what the executor takes between ops, s; not in the samples
};

/// Typical time of a shape: the mean within a step, interruptions cut, then the median over steps and ranks. What the
/// interruptions of a usual step add (other work on the machine) hits ops in proportion to their time: samples of
/// compute are multiplied by the record's disturbance, so that sums over a step come out right.
OpSamples measure(std::span<const program::RunRecord> records);

}  // namespace trivium::calibration
