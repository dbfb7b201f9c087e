#include "runtime/session/own_network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace trivium::runtime::session {
namespace {

bool write_whole(const char* path, const char* text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool written = ::write(file, text, static_cast<std::size_t>(size)) == size;
  ::close(file);
  return written;
}

/// Who is not root may make networks in a user namespace (user_namespaces(7)), where this user stays who it is.
bool enter_as_user() {
  char users[64], groups[64];
  std::snprintf(users, sizeof users, "%u %u 1", ::geteuid(), ::geteuid());
  std::snprintf(groups, sizeof groups, "%u %u 1", ::getegid(), ::getegid());
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_whole("/proc/self/setgroups", "deny") &&
         write_whole("/proc/self/uid_map", users) && write_whole("/proc/self/gid_map", groups);
}

bool raise_loopback() {
  const int handle = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (handle < 0) return false;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  bool raised = ::ioctl(handle, SIOCGIFFLAGS, &request) == 0;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  raised = raised && ::ioctl(handle, SIOCSIFFLAGS, &request) == 0;
  ::close(handle);
  return raised;
}

}  // namespace

bool enter_own_network() { return (::unshare(CLONE_NEWNET) == 0 || enter_as_user()) && raise_loopback(); }

bool can_have_own_network() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(enter_own_network() ? 0 : 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace trivium::runtime::session
