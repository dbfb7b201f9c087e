// Kernels as the executor runs them, one rank on every core, timed shape by shape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "program/ir/rate_kind.h"
#include "runtime/backend.h"
#include "runtime/data/corpus.h"

namespace trivium::runtime::microbench {

/// One shape of an op kind. `blocks`: program::query_blocks.
struct ShapeTime {
  double flops = 0, bytes = 0, blocks = 0;
  double seconds = 0;  ///< from its start to the start of the next op: the mean of a step, median over steps and ranks
};

struct KernelTimes {
  std::map<program::RateKind, std::vector<ShapeTime>> shapes;
  std::map<program::RateKind, std::vector<double>> spread;  ///< single times over their shape's own
  double host_gap = 0;                                      ///< median seconds between two ops, contained in the times
  double host_gap_spread = 0;                               ///< from the tenth to the ninetieth of a hundred, relative
};

/// Runs every program on `ranks` threads at once, each for itself: collectives do nothing. The first step warms up.
KernelTimes time_kernels(const std::vector<program::Program>& programs, int ranks, int steps,
                         const std::function<void(const std::string&)>& progress);

/// Runs every program that the device has kernels for on it alone; of one in 8 bits its casts are timed. Times are the
/// device's own, from the start of an op to that of the next.
KernelTimes time_kernels_on(Backend& device, const std::vector<program::Program>& programs, int steps,
                            const std::function<void(const std::string&)>& progress);

/// Tokens that are a fixed pseudo-random function of their position.
std::unique_ptr<data::Corpus> random_corpus(std::int64_t tokens, std::int32_t vocabulary);

}  // namespace trivium::runtime::microbench
