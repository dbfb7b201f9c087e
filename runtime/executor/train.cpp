#include "runtime/executor/train.h"

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/say.h"
#include "runtime/cpu/backend.h"
#include "runtime/executor/step_loop.h"
#include "runtime/flight/ring.h"
#include "runtime/flight/watchdog.h"
#include "runtime/inproc/threads.h"

namespace trivium::runtime {
namespace {

// Where asked for: this rank's record, made before anyone can wait for it.
std::unique_ptr<flight::Ring> ring_of(const program::Program& program, const Communicator& communicator,
                                      const TrainOptions& options) {
  if (options.flight_folder.empty()) return nullptr;
  return std::make_unique<flight::Ring>(options.flight_folder, communicator.rank(), communicator.size(),
                                        std::stoull(program::hash_of(program), nullptr, 16));
}

}  // namespace

std::string cannot_run(const program::Program& program, const Backend& backend) {
  for (const program::Role& role : program.roles) {
    if (role.order.empty()) return "the program's communication is not ordered";
  }
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) {
      if (program::is_communication(op.kind)) continue;
      if (std::string why = backend.refusal(program, op); !why.empty()) return why;
    }
  }
  return "";
}

std::string cannot_run_on_cpu(const program::Program& program) { return cannot_run(program, cpu::CpuBackend()); }

TrainResult train_rank(const program::VerifiedProgram& program, Communicator& communicator, const data::Corpus& corpus,
                       const TrainOptions& options) {
  TrainResult result;
  if (result.refused = cannot_run_on_cpu(program); !result.refused.empty()) return result;
  cpu::CpuBackend core;
  return train_rank(program, communicator, corpus, core, options);
}

TrainResult train_rank(const program::VerifiedProgram& program, Communicator& communicator, const data::Corpus& corpus,
                       Backend& backend, const TrainOptions& options) {
  TrainResult result;
  if (result.refused = cannot_run(program, backend); !result.refused.empty()) return result;
  if (const std::string slow = backend.slow_path(program); communicator.rank() == 0 && !slow.empty()) {
    base::say("note: {}\n", slow);
  }
  const std::unique_ptr<flight::Ring> ring = ring_of(program, communicator, options);
  if (!ring) return run_steps(program, communicator, corpus, backend, options, nullptr);
  // Whoever is told to end says so: those that say nothing were killed.
  const std::stop_callback told(options.stop, [&] { ring->ended(flight::End::kTerminated); });
  std::optional<flight::Watchdog> watchdog;
  if (options.deadline.count() > 0) {
    watchdog.emplace(options.flight_folder, program, communicator.rank(), options.deadline,
                     [&](const std::string& why) {
                       ring->ended(flight::End::kTerminated);
                       communicator.abort(why);
                     });
  }
  try {
    result = run_steps(program, communicator, corpus, backend, options, ring.get());
    ring->ended(result.diverged.empty() ? flight::End::kWell : flight::End::kFailed, result.diverged);
  } catch (const std::exception& error) {
    ring->ended(flight::End::kFailed, error.what());
    throw;
  }
  return result;
}

TrainResult train_in_threads(const program::VerifiedProgram& program, const data::Corpus& corpus,
                             const TrainOptions& options) {
  TrainResult result;
  if (result.refused = cannot_run_on_cpu(program); !result.refused.empty()) return result;
  inproc::run_ranks(program->mesh.size(), [&](Communicator& communicator) {
    TrainResult mine = train_rank(program, communicator, corpus, options);
    if (communicator.rank() == 0) result = std::move(mine);
  });
  return result;
}

}  // namespace trivium::runtime
