#include "runtime/session/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/say.h"

namespace trivium::runtime::session {
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
    throw base::Failure(base::ErrorKind::kRuntime,
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
  const std::string_view text(block.data(), static_cast<std::size_t>(got));
  stream_ == STDERR_FILENO ? write(sifted(text)) : write(text);
  return true;
}

void Relay::write(std::string_view text) {
  if (!lost_.empty()) return;
  lost_ = write_all(stream_, text.data(), text.size());
  if (!lost_.empty() && stream_ == STDOUT_FILENO) {
    base::say("note: cannot write to standard output: {}; the training goes on\n", lost_);
  }
}

std::string Relay::sifted(std::string_view text) {
  constexpr std::string_view kOfStrangers = "tcp_peer_recv_connect_ack";
  held_ += text;
  std::string passed;
  std::size_t begin = 0;
  for (std::size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line(held_.data() + begin, end + 1 - begin);
    const bool of_strangers = line.find(kOfStrangers) != std::string_view::npos;
    // What ranks agreed on, each of them says.
    const bool again = line.starts_with("error: ") && line == error_;
    if (!again && (!of_strangers || !warned_)) passed += line;
    if (line.starts_with("error: ")) error_ = line;
    warned_ = warned_ || of_strangers;
  }
  held_.erase(0, begin);
  // What is still being written goes on at once, unless it begins as mpirun's own lines do.
  if (!held_.starts_with('[')) passed += std::exchange(held_, "");
  return passed;
}

void Relay::require_whole() const {
  if (lost_.empty()) return;
  throw base::Failure(
      base::ErrorKind::kRuntime,
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
  err.write(std::exchange(err.held_, ""));
}

}  // namespace trivium::runtime::session
