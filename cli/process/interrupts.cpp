#include "cli/process/interrupts.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

#include "base/error.h"
#include "runtime/session/supervisor.h"

namespace trivium::cli {
namespace {

constexpr long kPollNanoseconds = 50'000'000;  // how long the destructor may wait for the watcher

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t watched() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&signals, SIGHUP);  // under nohup it stays without effect
  return signals;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t signals = watched();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::jthread([this](const std::stop_token& finished) {
    const sigset_t mine = watched();
    const timespec poll{0, kPollNanoseconds};
    const auto supervisor = runtime::session::Supervisor::of_this_process();
    while (!finished.stop_requested()) {
      if (supervisor.is_gone()) source_.request_stop();
      const int signal = sigtimedwait(&mine, nullptr, &poll);
      // A terminal that closes may send several hangups: they ask for the same end, and never for a hasty one.
      if (signal > 0 && !source_.request_stop() && signal != SIGHUP) {
        _exit(static_cast<int>(base::ErrorKind::kInterrupted));
      }
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
