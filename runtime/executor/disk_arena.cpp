#include "runtime/executor/disk_arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace trivium::runtime {
namespace {

std::string folder() {
  const char* given = std::getenv("TMPDIR");
  return given == nullptr || *given == '\0' ? "/tmp" : given;
}

[[noreturn]] void fail(std::size_t bytes, int error) {
  throw base::Failure(base::ErrorKind::kRuntime,
                      fmt::format("{}: cannot hold {} bytes offloaded to disk: {}; set TMPDIR to another folder",
                                  folder(), bytes, std::strerror(error)));
}

}  // namespace

DiskArena::DiskArena(std::size_t bytes) : bytes_(bytes) {
  std::string name = folder() + "/trivium-offload-XXXXXX";
  const int file = ::mkstemp(name.data());
  if (file < 0) fail(bytes, errno);
  ::unlink(name.c_str());
  if (const int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes)); error != 0) {
    ::close(file);
    fail(bytes, error);
  }
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  if (mapped == MAP_FAILED) fail(bytes, error);
  begin_ = static_cast<std::byte*>(mapped);
}

DiskArena::~DiskArena() { ::munmap(begin_, bytes_); }

}  // namespace trivium::runtime
