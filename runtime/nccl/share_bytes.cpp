// One small message from rank 0 to all others, over TCP.
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <thread>

#include "runtime/nccl/launch.h"

namespace trivium::runtime::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGreeting = std::chrono::seconds(2);  // for who comes to say who it is: it is short

/// What the others say first, so that a stranger on the port is not taken for a rank.
struct Greeting {
  char magic[8] = {'t', 'r', 'i', 'v', 'i', 'u', 'm', '1'};
  std::int32_t rank = 0, size = 0;
};

class Socket {
 public:
  explicit Socket(int handle) : handle_(handle) {}
  ~Socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int handle() const { return handle_; }

 private:
  int handle_;
};

edge::Error failed(const Launch& launch, const std::string& why) {
  return {edge::ErrorKind::kRuntime,
          fmt::format("rank {}: cannot meet the other ranks at {}:{}: {}", launch.rank, launch.host, launch.port, why)};
}

bool send_all(int handle, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(handle, at, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int handle, void* data, std::size_t size, Clock::time_point until) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{handle, POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) return false;
    const ssize_t got = ::recv(handle, at, size, 0);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const char* host, int port, bool to_listen) {
  addrinfo wish{};
  wish.ai_family = AF_UNSPEC;
  wish.ai_socktype = SOCK_STREAM;
  wish.ai_flags = to_listen ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host, std::to_string(port).c_str(), &wish, &found) != 0) found = nullptr;
  return Addresses(found, &::freeaddrinfo);
}

std::optional<edge::Error> hand_out(const Launch& launch, const void* data, std::size_t size, Clock::time_point until) {
  // Other hosts may know this one by a name that is none of its own addresses'.
  const bool from_outside = launch.local_size < launch.size;
  const Addresses addresses = addresses_of(from_outside ? nullptr : launch.host.c_str(), launch.port, true);
  if (!addresses) return failed(launch, "no such host");
  const Socket listener(::socket(addresses->ai_family, SOCK_STREAM, 0));
  const int yes = 1;
  ::setsockopt(listener.handle(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener.handle(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener.handle(), SOMAXCONN) != 0) {
    return failed(launch, std::strerror(errno));
  }
  std::set<int> served;
  while (static_cast<int>(served.size()) < launch.size - 1) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{listener.handle(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) {
      return failed(launch, fmt::format("{} of {} came", served.size() + 1, launch.size));
    }
    const Socket peer(::accept(listener.handle(), nullptr, nullptr));
    Greeting greeting;
    const Greeting expected;
    const Clock::time_point patience = std::min(until, Clock::now() + kGreeting);
    if (peer.handle() < 0 || !receive_all(peer.handle(), &greeting, sizeof greeting, patience)) continue;
    if (std::memcmp(greeting.magic, expected.magic, sizeof expected.magic) != 0) continue;
    if (greeting.size != launch.size) {
      return failed(launch, fmt::format("one of {} ranks came, there are {}", greeting.size, launch.size));
    }
    if (send_all(peer.handle(), data, size)) served.insert(greeting.rank);
  }
  return std::nullopt;
}

std::optional<edge::Error> fetch(const Launch& launch, void* data, std::size_t size, Clock::time_point until) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  while (Clock::now() < until) {
    const Addresses addresses = addresses_of(launch.host.c_str(), launch.port, false);
    for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
      const Socket socket(::socket(at->ai_family, SOCK_STREAM, 0));
      Greeting greeting;
      greeting.rank = launch.rank, greeting.size = launch.size;
      if (::connect(socket.handle(), at->ai_addr, at->ai_addrlen) == 0 &&
          send_all(socket.handle(), &greeting, sizeof greeting) && receive_all(socket.handle(), data, size, until)) {
        return std::nullopt;
      }
    }
    std::this_thread::sleep_for(kPause);  // rank 0 may not be there yet
  }
  return failed(launch, "rank 0 did not answer");
}

}  // namespace

std::optional<edge::Error> share_bytes(const Launch& launch, void* data, std::size_t size, int seconds) {
  if (launch.size == 1) return std::nullopt;
  const Clock::time_point until = Clock::now() + std::chrono::seconds(seconds);
  return launch.rank == 0 ? hand_out(launch, data, size, until) : fetch(launch, data, size, until);
}

}  // namespace trivium::runtime::nccl
