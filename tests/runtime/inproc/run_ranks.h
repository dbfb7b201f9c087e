// Runs one function on every rank, each a thread of its own.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/inproc/threads.h"

namespace trivium::runtime {

/// Ends when all ranks ended. A rank that throws aborts the others; the first rank's exception is thrown on.
inline void run_on_threads(int ranks, const std::function<void(Communicator&)>& body) {
  const auto communicators = inproc::make_communicators(ranks);
  std::vector<std::exception_ptr> failures(communicators.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(*communicators[rank]);
        } catch (const std::exception& failure) {
          failures[rank] = std::current_exception();
          communicators[rank]->abort(failure.what());
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace trivium::runtime
