// Ctrl-C as a request to stop, so that what was reached is kept.
#pragma once

#include <stop_token>
#include <thread>

namespace trivium::cli {

/// While one lives, the first SIGINT, SIGTERM or SIGHUP requests a stop, and a further SIGINT or SIGTERM ends the
/// process with code 130. Of ranks that a supervisor watches over, its end is such a request as well. To be made before
/// any other thread: threads inherit the mask that leaves the signals to this object. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool happened() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace trivium::cli
