// One training as a person starts it: a plan, what it learns from and what is kept of it.
#pragma once

#include <memory>
#include <string>

#include "program/plan/plan_file.h"
#include "program/verify/verified.h"
#include "runtime/backend.h"
#include "runtime/communicator.h"
#include "runtime/data/corpus.h"
#include "runtime/executor/train.h"
#include "runtime/session/checkpointing.h"

namespace trivium::runtime::session {

struct SessionOptions {
  program::PlanFile job;
  std::string corpus;      ///< text or token file
  std::string validation;  ///< likewise; empty: none
  CheckpointOptions checkpoint;
  std::string flight_record;  ///< folder; empty: none. Ranks that are supervised are told theirs
};

/// The work of one process: all ranks as threads, or one rank of several.
class Session {
 public:
  /// Opens what is learnt from. Errors: Failure(kInput) naming the file.
  explicit Session(SessionOptions options);

  /// Trains. `how`: all but validation, checkpoints and flight records, which are set here. Without a
  /// communicator all ranks run as threads on cores, else this process is one of its ranks, on `backend` or, where
  /// that is null, on a core. Ranks whose programs differ end all of them. Errors: as train_in_threads and train_rank.
  TrainResult train(const program::VerifiedProgram& program, TrainOptions how, Communicator* communicator,
                    Backend* backend) const;

 private:
  SessionOptions options_;
  std::unique_ptr<data::Corpus> corpus_, validation_;
};

}  // namespace trivium::runtime::session
