// The steps of one rank's training, one after the other, and what happens between them.
#pragma once

#include "runtime/executor/train.h"
#include "runtime/flight/ring.h"

namespace trivium::runtime {

/// Every rank of the communicator calls it with the same program, which the backend can run. After every step come, in
/// this order, the validation loss where it is due, the record of the step with what stands out in it, and the
/// checkpoint. Whether to go on is decided by rank 0. `ring`: this rank's flight record, or null.
TrainResult run_steps(const program::Program& program, Communicator& communicator, const data::Corpus& corpus,
                      Backend& backend, const TrainOptions& options, flight::Ring* ring);

}  // namespace trivium::runtime
