// Runs one function on every rank, each a thread of its own.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/inproc/threads.h"

namespace trivium::runtime {

/// Ends when all ranks ended. A rank that throws aborts the others with its reason; what was thrown first is thrown on.
inline void run_on_threads(int ranks, const std::function<void(Communicator&)>& body) {
  inproc::run_ranks(ranks, [&](Communicator& communicator) {
    try {
      body(communicator);
    } catch (const std::exception& failure) {
      communicator.abort(failure.what());
      throw;
    }
  });
}

}  // namespace trivium::runtime
