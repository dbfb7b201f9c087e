#include "cli/process/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace trivium::cli {

void settle_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest free number is this one; opened the wrong way round, so that its use is an error still.
    static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace trivium::cli
