// Training for real: ranks run the ordered Program on a backend.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "program/record/run_record.h"
#include "program/verify/verified.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/data/corpus.h"
#include "runtime/executor/step_checkpointer.h"
#include "runtime/executor/training_schedule.h"

namespace trivium::runtime {

struct TrainOptions {
  std::int64_t steps = 10;
  std::int64_t timeline_steps = 3;                          ///< how many of the last steps keep their timeline; 0: none
  std::function<void(const program::StepRecord&)> on_step;  ///< after every step, on rank 0's thread
  std::stop_token stop;                                     ///< ends after the current step
  std::filesystem::path flight_folder;                      ///< where ranks keep their flight records; empty: none
  std::chrono::milliseconds deadline{0};                    ///< gives up when no rank moves for so long; 0: never
  TrainingSchedule training_schedule;
  /// With a batch ramp: the program of a smaller batch, ordered; it may be called by all ranks at once.
  std::function<program::VerifiedProgram(std::int64_t global_batch)> program_for;
  const data::Corpus* validation = nullptr;  ///< where given: its loss is measured, nothing learnt from it
  std::int64_t validate_every = 0;           ///< steps from one measurement to the next; the last step has one too
  double peak_flops_per_s = 0;               ///< dense, of all ranks' devices; 0: not known
  std::function<void(const program::Spike&)> on_spike;  ///< on rank 0's thread
  bool replay =
      false;  ///< segments that are the same work every time are recorded, in steps whose timeline is not kept
  CheckpointerFactory checkpointer;  ///< where given: makes each rank's end of checkpoints
};

/// Values of all parameters (or gradients) of the model, gathered: global name -> row-major values.
struct GlobalTensor {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;
};

struct TrainResult {
  std::vector<program::StepRecord> steps;
  std::vector<program::Spike> spikes;
  program::Timeline timeline;              ///< of all ranks, with `timeline_steps`; none while the batch is ramped up
  std::vector<std::int64_t> memory_bytes;  ///< by rank: its arenas and the memory the backend holds in addition
  std::string refused;                     ///< non-empty: why nothing was started
  std::string diverged;  ///< non-empty: at which step training left the finite numbers; it stopped there
};

/// Why the backend cannot run the program, or empty: op kinds or types without kernel, missing order.
std::string cannot_run(const program::Program& program, const Backend& backend);
std::string cannot_run_on_cpu(const program::Program& program);

/// Runs every rank as a thread of this process. `program` must be ordered.
TrainResult train_in_threads(const program::VerifiedProgram& program, const data::Corpus& corpus,
                             const TrainOptions& options);

/// Runs this process's rank; every rank of the communicator calls it with the same program. Steps and timeline are
/// complete on rank 0. The communicator takes the backend's memory.
TrainResult train_rank(const program::VerifiedProgram& program, Communicator& communicator, const data::Corpus& corpus,
                       Backend& backend, const TrainOptions& options);
/// On a core.
TrainResult train_rank(const program::VerifiedProgram& program, Communicator& communicator, const data::Corpus& corpus,
                       const TrainOptions& options);

}  // namespace trivium::runtime
