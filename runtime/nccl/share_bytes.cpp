// One small message from rank 0 to all others, over TCP.
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/say.h"
#include "runtime/nccl/launch.h"

namespace trivium::runtime::nccl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kGreeting = std::chrono::seconds(2);  // for who comes to say who it is: it is short
constexpr std::size_t kMostPending = 256;

using Proof = std::array<char, 32>;

/// What each side shows of the token: the ranks its first half, rank 0 the second.
struct Proofs {
  Proof of_ranks{}, of_root{};
};

Proofs proofs_of(const std::string& token) {
  Proofs proofs;
  const std::size_t half = std::min(token.size() / 2, sizeof(Proof)),
                    rest = std::min(token.size() - half, sizeof(Proof));
  std::copy_n(token.begin(), half, proofs.of_ranks.begin());
  std::copy_n(token.begin() + static_cast<std::ptrdiff_t>(half), rest, proofs.of_root.begin());
  return proofs;
}

/// Takes as long whether the first character differs or the last.
bool is_equal(const Proof& a, const Proof& b) {
  int differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= a[i] ^ b[i];
  return differ == 0;
}

/// What the others say first, so that a stranger on the port is not taken for a rank.
struct Greeting {
  char magic[8] = {'t', 'r', 'i', 'v', 'i', 'u', 'm', '2'};
  std::int32_t rank = 0, size = 0;
  Proof proof{};
};

class Socket {
 public:
  explicit Socket(int handle) : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int handle() const { return handle_; }

 private:
  int handle_;
};

base::Error failed(const Launch& launch, const std::string& why) {
  return {base::ErrorKind::kRuntime,
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

/// Somebody who connected and has not said yet who it is.
struct Visitor {
  enum class State { kSpeaks, kDone, kGone };
  Socket socket;
  Clock::time_point until;
  Greeting greeting{};
  std::size_t heard = 0;

  State listen() {
    const ssize_t got =
        ::recv(socket.handle(), reinterpret_cast<char*>(&greeting) + heard, sizeof greeting - heard, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? State::kSpeaks : State::kGone;
    if (got == 0) return State::kGone;
    heard += static_cast<std::size_t>(got);
    return heard == sizeof greeting ? State::kDone : State::kSpeaks;
  }
};

void wait_for_any(const Socket& listener, const std::vector<Visitor>& visitors, Clock::duration longest) {
  constexpr auto kLook = std::chrono::milliseconds(100);  // who says nothing is to be left out in time
  std::vector<pollfd> waits;
  if (visitors.size() < kMostPending) waits.push_back({listener.handle(), POLLIN, 0});
  for (const Visitor& visitor : visitors) waits.push_back({visitor.socket.handle(), POLLIN, 0});
  const auto left = std::min(std::chrono::duration_cast<std::chrono::milliseconds>(longest), kLook);
  ::poll(waits.data(), waits.size(), static_cast<int>(std::max<std::int64_t>(1, left.count())));
}

void take_visitors(const Socket& listener, std::vector<Visitor>& visitors) {
  while (visitors.size() < kMostPending) {
    Socket peer(::accept4(listener.handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.handle() < 0) return;
    visitors.push_back({std::move(peer), Clock::now() + kGreeting});
  }
}

bool is_of_job(const Greeting& greeting, const Launch& launch) {
  const Greeting expected;
  return std::memcmp(greeting.magic, expected.magic, sizeof expected.magic) == 0 &&
         is_equal(greeting.proof, proofs_of(launch.token).of_ranks) && greeting.rank > 0;
}

bool answer(int handle, const Launch& launch, const void* data, std::size_t size) {
  const Proof proof = proofs_of(launch.token).of_root;
  return send_all(handle, proof.data(), proof.size()) && send_all(handle, data, size);
}

std::optional<base::Error> hand_out(const Launch& launch, const void* data, std::size_t size, Clock::time_point until) {
  // Other hosts may know this one by a name that is none of its own addresses'.
  const bool from_outside = launch.local_size < launch.size;
  const Addresses addresses = addresses_of(from_outside ? nullptr : launch.host.c_str(), launch.port, true);
  if (!addresses) return failed(launch, "no such host");
  const Socket listener(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  ::setsockopt(listener.handle(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener.handle(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener.handle(), SOMAXCONN) != 0) {
    return failed(launch, std::strerror(errno));
  }
  std::set<int> served;
  std::vector<Visitor> visitors;
  bool told = false;
  while (static_cast<int>(served.size()) < launch.size - 1) {
    const Clock::time_point now = Clock::now();
    if (now >= until) return failed(launch, fmt::format("{} of {} came", served.size() + 1, launch.size));
    wait_for_any(listener, visitors, until - now);
    take_visitors(listener, visitors);
    for (std::size_t i = 0; i < visitors.size();) {
      const Visitor::State state = visitors[i].listen();
      if (state == Visitor::State::kSpeaks && Clock::now() < visitors[i].until) {
        ++i;
        continue;
      }
      const Greeting& greeting = visitors[i].greeting;
      const bool is_rank = state == Visitor::State::kDone && is_of_job(greeting, launch);
      if (is_rank && greeting.size != launch.size) {
        return failed(launch, fmt::format("one of {} ranks came, there are {}", greeting.size, launch.size));
      }
      if (is_rank && answer(visitors[i].socket.handle(), launch, data, size)) served.insert(greeting.rank);
      if (!is_rank && !told) {
        base::say("note: somebody who is no rank of this job connected to port {}, and is left out\n", launch.port);
        told = true;
      }
      visitors.erase(visitors.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return std::nullopt;
}

std::optional<base::Error> fetch(const Launch& launch, void* data, std::size_t size, Clock::time_point until) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  const Proofs proofs = proofs_of(launch.token);
  while (Clock::now() < until) {
    const Addresses addresses = addresses_of(launch.host.c_str(), launch.port, false);
    for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
      const Socket socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      Greeting greeting;
      greeting.rank = launch.rank, greeting.size = launch.size, greeting.proof = proofs.of_ranks;
      Proof proof{};
      if (::connect(socket.handle(), at->ai_addr, at->ai_addrlen) == 0 &&
          send_all(socket.handle(), &greeting, sizeof greeting) &&
          receive_all(socket.handle(), proof.data(), proof.size(), until) && is_equal(proof, proofs.of_root) &&
          receive_all(socket.handle(), data, size, until)) {
        return std::nullopt;
      }
    }
    std::this_thread::sleep_for(kPause);  // rank 0 may not be there yet
  }
  return failed(launch, "rank 0 did not answer");
}

}  // namespace

std::optional<base::Error> share_bytes(const Launch& launch, void* data, std::size_t size, int seconds) {
  if (launch.size == 1) return std::nullopt;
  const Clock::time_point until = Clock::now() + std::chrono::seconds(seconds);
  return launch.rank == 0 ? hand_out(launch, data, size, until) : fetch(launch, data, size, until);
}

}  // namespace trivium::runtime::nccl
