// The calls stand before the C library's in a program that this file is linked into, and in one that it is preloaded
// into as a library: TRIVIUM_FAULT_UNDER=FOLDER TRIVIUM_FAULT_CALL=N.
#include "tests/runtime/checkpoint/faulty_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trivium::runtime::checkpoint {
namespace {

std::atomic<bool> armed = false;
std::atomic<long> calls = 0, failing_call = -1;
std::array<char, 4096> below{};

void set(const char* folder, long failing) {
  std::strncpy(below.data(), folder, below.size() - 1);
  calls = 0;
  failing_call = failing;
  armed = true;
}

/// Armed by the environment, in a process that this was preloaded into.
[[maybe_unused]] const bool by_environment = [] {
  const char* folder = std::getenv("TRIVIUM_FAULT_UNDER");
  const char* failing = std::getenv("TRIVIUM_FAULT_CALL");
  if (folder != nullptr && failing != nullptr) set(folder, std::atol(failing));
  return true;
}();

bool concerns(const char* path) {
  return armed && path != nullptr && std::strncmp(path, below.data(), std::strlen(below.data())) == 0;
}

bool concerns(int file) {
  if (!armed || file <= STDERR_FILENO) return false;
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  return ::readlink(link.data(), path.data(), path.size() - 1) > 0 && concerns(path.data());
}

/// Counts a call; whether it is the one.
bool fails(int error) {
  if (calls++ != failing_call) return false;
  errno = error;
  return true;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void arm_faults(const std::string& folder, long failing) { set(folder.c_str(), failing); }

long disarm_faults() {
  armed = false;
  return calls;
}

}  // namespace trivium::runtime::checkpoint

using trivium::runtime::checkpoint::concerns;
using trivium::runtime::checkpoint::fails;
using trivium::runtime::checkpoint::real;

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  static const auto call = real<ssize_t(int, const void*, size_t)>("write");
  if (concerns(file) && fails(ENOSPC)) return -1;
  return call(file, data, size);
}

int fsync(int file) {
  static const auto call = real<int(int)>("fsync");
  return concerns(file) && fails(EIO) ? -1 : call(file);
}

int close(int file) {
  static const auto call = real<int(int)>("close");
  const bool fault = concerns(file) && fails(EIO);
  const int result = call(file);  // it is closed all the same
  if (fault) errno = EIO;
  return fault ? -1 : result;
}

int open(const char* path, int flags, ...) {
  static const auto call = real<int(const char*, int, ...)>("open");
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  if ((flags & O_CREAT) != 0 && concerns(path) && fails(ENOSPC)) return -1;
  return call(path, flags, mode);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto call = real<int(const char*, mode_t)>("mkdir");
  return concerns(path) && fails(ENOSPC) ? -1 : call(path, mode);
}

int rename(const char* from, const char* to) noexcept {
  static const auto call = real<int(const char*, const char*)>("rename");
  return concerns(to) && fails(EIO) ? -1 : call(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  static const auto call = real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return concerns(to) && fails(EIO) ? -1 : call(from_folder, from, to_folder, to, flags);
}

}  // extern "C"
