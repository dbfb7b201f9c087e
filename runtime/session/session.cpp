#include "runtime/session/session.h"

#include <exception>
#include <utility>

#include "runtime/session/same_program.h"
#include "runtime/session/supervisor.h"
#include "runtime/told_by.h"

namespace trivium::runtime::session {
namespace {

TrainResult train_as_rank(Communicator& communicator, Backend* backend, const program::VerifiedProgram& program,
                          const data::Corpus& corpus, const TrainOptions& how) {
  check_same_program(communicator, program);
  try {
    return backend != nullptr ? train_rank(program, communicator, corpus, *backend, how)
                              : train_rank(program, communicator, corpus, how);
  } catch (const std::exception& error) {
    communicator.abort(told_by(communicator.rank(), error.what()));
    throw;
  }
}

}  // namespace

Session::Session(SessionOptions options) : options_(std::move(options)) {
  const program::Job& job = options_.job.job;
  corpus_ = data::open_corpus(options_.corpus, job.training.sequence, job.model.vocab);
  if (options_.validation.empty()) return;
  validation_ = data::open_corpus(options_.validation, job.training.sequence, job.model.vocab);
}

TrainResult Session::train(const program::VerifiedProgram& program, TrainOptions how, Communicator* communicator,
                           Backend* backend) const {
  const Supervisor supervisor = Supervisor::of_this_process();
  how.validation = validation_.get();
  how.flight_folder = supervisor.exists() ? supervisor.flight_record() : options_.flight_record;
  CheckpointOptions checkpoint = options_.checkpoint;
  checkpoint.resume = checkpoint.resume || supervisor.wants_resume();
  how.checkpointer = checkpointers_of(checkpoint, how.training_schedule.ramp, options_.job, corpus_->tokens());
  return communicator != nullptr ? train_as_rank(*communicator, backend, program, *corpus_, how)
                                 : train_in_threads(program, *corpus_, how);
}

}  // namespace trivium::runtime::session
