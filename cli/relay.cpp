#include "cli/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "edge/error.h"
#include "edge/say.h"

namespace trivium::cli {
namespace {

/// Why the text could not be written; empty where it was.
std::string write_all(int stream, const char* text, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(stream, text, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::generic_category().message(errno);
    text += written;
    size -= static_cast<std::size_t>(written);
  }
  return "";
}

}  // namespace

Relay::Relay(int stream) : stream_(stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw edge::Failure(edge::ErrorKind::kRuntime,
                        fmt::format("cannot make a pipe: {}", std::generic_category().message(errno)));
  }
  reading_ = ends[0], writing_ = ends[1];
  ::fcntl(reading_, F_SETFL, O_NONBLOCK);
}

Relay::~Relay() {
  ::close(reading_);
  close_writing_end();
}

void Relay::close_writing_end() {
  if (writing_ >= 0) ::close(writing_);
  writing_ = -1;
}

bool Relay::pass() {
  std::array<char, 1 << 16> block;
  const ssize_t got = ::read(reading_, block.data(), block.size());
  if (got <= 0) return false;
  if (!lost_.empty()) return true;
  lost_ = write_all(stream_, block.data(), static_cast<std::size_t>(got));
  if (!lost_.empty() && stream_ == STDOUT_FILENO) {
    edge::say("note: cannot write to standard output: {}; the training goes on\n", lost_);
  }
  return true;
}

void Relay::require_whole() const {
  if (lost_.empty()) return;
  throw edge::Failure(
      edge::ErrorKind::kRuntime,
      fmt::format("what the ranks printed is incomplete: {}; all else of the training was done", lost_));
}

void pass_on(Relay& out, Relay& err, std::chrono::milliseconds patience) {
  std::array<pollfd, 2> ends{pollfd{out.reading_, POLLIN, 0}, pollfd{err.reading_, POLLIN, 0}};
  if (::poll(ends.data(), ends.size(), static_cast<int>(patience.count())) <= 0) return;
  out.pass();
  err.pass();
}

void pass_on_rest(Relay& out, Relay& err) {
  while (out.pass()) continue;
  while (err.pass()) continue;
}

}  // namespace trivium::cli
