// Making the communicators of a run of threads.
#include "runtime/inproc/threads.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <thread>

#include "runtime/inproc/thread_communicator.h"

namespace trivium::runtime::inproc {

std::vector<std::unique_ptr<Communicator>> make_communicators(int ranks) {
  const auto shared = std::make_shared<Shared>(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) communicators.push_back(std::make_unique<ThreadCommunicator>(shared, rank));
  return communicators;
}

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  const auto shared = std::make_shared<Shared>(ranks);
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadCommunicator communicator(shared, rank);
        const Hub::OnCore turns(shared->hub, rank);
        try {
          body(communicator);
        } catch (...) {
          {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
          }
          communicator.abort(fmt::format("rank {} failed", rank));
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trivium::runtime::inproc
