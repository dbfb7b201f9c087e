#include "cli/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

#include "edge/error.h"

namespace trivium::cli {
namespace {

constexpr long kPollNanoseconds = 50'000'000;  // how long the destructor may wait for the watcher

sigset_t watched() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t signals = watched();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::jthread([this](const std::stop_token& finished) {
    const sigset_t mine = watched();
    const timespec poll{0, kPollNanoseconds};
    while (!finished.stop_requested()) {
      if (sigtimedwait(&mine, nullptr, &poll) < 0) continue;
      if (!source_.request_stop()) _exit(static_cast<int>(edge::ErrorKind::kInterrupted));
    }
  });
}

Interrupts::~Interrupts() {
  watcher_.request_stop();
  watcher_.join();
  const sigset_t signals = watched();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace trivium::cli
