#include "base/private_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::base {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";
constexpr const char* kLockInTheMaking = ".lock.new";

[[noreturn]] void fail(const fs::path& path, int error) {
  throw Failure(ErrorKind::kRuntime,
                fmt::format("{}: cannot make a temporary folder: {}", one_line(path.string()), std::strerror(error)));
}

/// A folder of this user's own, not a link to one, that nobody else may enter.
bool is_ours(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & 077) == 0;
}

/// Whether it has a lock that nobody holds. A folder without one is still being made.
bool is_abandoned(const fs::path& path) {
  const int lock = ::open((path / kLock).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return false;
  const bool free = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
  ::close(lock);
  return free;
}

}  // namespace

PrivateFolder::PrivateFolder(const fs::path& base, std::string_view prefix) {
  std::string name = (base / fmt::format("{}XXXXXX", prefix)).string();
  if (::mkdtemp(name.data()) == nullptr) fail(name, errno);
  path_ = name;
  // Locked before it has its name: whoever sees the lock sees it held.
  const fs::path making = path_ / kLockInTheMaking;
  lock_ = ::open(making.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const bool made = lock_ >= 0;
  if (made && ::flock(lock_, LOCK_EX | LOCK_NB) != 0) return;  // no locks here: nobody will take it for abandoned
  if (!made || ::rename(making.c_str(), (path_ / kLock).c_str()) != 0) {
    const int error = errno;
    if (made) ::close(lock_);
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    fail(path_, error);
  }
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

void remove_abandoned_folders(const fs::path& base, std::string_view prefix) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  for (const fs::path& path : found) {
    if (is_ours(path) && is_abandoned(path)) fs::remove_all(path, error);
  }
}

fs::path temporary_folder() {
  const char* wanted = std::getenv("TMPDIR");
  const fs::path folder = wanted == nullptr || *wanted == '\0' ? "/tmp" : wanted;
  std::error_code ignored;
  if (fs::is_directory(folder, ignored)) return folder;
  throw Failure(ErrorKind::kUsage, fmt::format("TMPDIR={}: there is no such folder; create it, or unset TMPDIR",
                                               one_line(folder.string())));
}

}  // namespace trivium::base
