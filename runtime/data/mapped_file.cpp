// Opening and mapping files.
#include "runtime/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/refuse.h"

namespace trivium::runtime::data {
namespace {

using base::refuse;

std::string reason_of(int error_number) { return std::generic_category().message(error_number); }

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, const char* what) {
  // Non-blocking, so that opening a pipe nobody writes to does not hang before it is refused.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse(path, fmt::format("cannot open the {}: {}", what, reason_of(errno)));
  struct stat status {};
  const int stat_error = ::fstat(file, &status) == 0 ? 0 : errno;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = MAP_FAILED;
  int map_error = 0;
  if (stat_error == 0 && S_ISREG(status.st_mode) && size > 0) {
    memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) map_error = errno;
  }
  ::close(file);
  if (stat_error != 0) refuse(path, fmt::format("cannot read the {}: {}", what, reason_of(stat_error)));
  if (S_ISDIR(status.st_mode)) refuse(path, fmt::format("the {} is a directory; give one file", what));
  if (!S_ISREG(status.st_mode))
    refuse(path, fmt::format("the {} is not a regular file; save it to a file first", what));
  if (size == 0) refuse(path, fmt::format("the {} is empty", what));
  if (map_error != 0) refuse(path, fmt::format("cannot map the {}: {}", what, reason_of(map_error)));
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace trivium::runtime::data
