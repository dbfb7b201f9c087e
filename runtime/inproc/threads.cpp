// Making the communicators of a run of threads.
#include "runtime/inproc/threads.h"

#include "runtime/inproc/thread_communicator.h"

namespace trivium::runtime::inproc {

std::vector<std::unique_ptr<Communicator>> make_communicators(int ranks) {
  const auto shared = std::make_shared<Shared>(ranks);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) communicators.push_back(std::make_unique<ThreadCommunicator>(shared, rank));
  return communicators;
}

}  // namespace trivium::runtime::inproc
