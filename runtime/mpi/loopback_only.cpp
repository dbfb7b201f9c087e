// libtrivium_loopback.so, preloaded into mpirun where all its ranks are on this host: Open MPI 4.1 binds what it
// listens on to every interface whatever its parameters say, and with this library to the loopback interface.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace {

template <class Address>
int bind_to(int socket, const Address& address) {
  return static_cast<int>(::syscall(SYS_bind, socket, &address, sizeof address));
}

/// Where IPv6 is off, sockets of it are there and its loopback address is not: 127.0.0.1 by its name in IPv6.
int bind_to_mapped_loopback(int socket, sockaddr_in6 address) {
  const int no = 0;
  ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  std::memcpy(&address.sin6_addr, mapped, sizeof mapped);
  return bind_to(socket, address);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int bind(int socket, const sockaddr* address,
                                                           socklen_t length) noexcept {
  if (address != nullptr && address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    if (four.sin_addr.s_addr == htonl(INADDR_ANY)) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind_to(socket, four);
  }
  if (address != nullptr && address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof six);
    if (!IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr)) return bind_to(socket, six);
    six.sin6_addr = in6addr_loopback;
    const int result = bind_to(socket, six);
    return result != 0 && errno == EADDRNOTAVAIL ? bind_to_mapped_loopback(socket, six) : result;
  }
  return static_cast<int>(::syscall(SYS_bind, socket, address, length));
}
