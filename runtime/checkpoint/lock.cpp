#include "runtime/checkpoint/lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = 512;

std::string host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// "process 412 on node7, since 2026-03-01 12:00:05 UTC"
std::string own_text() {
  return fmt::format("process {} on {}, since {:%Y-%m-%d %H:%M:%S} UTC", ::getpid(), host(),
                     fmt::gmtime(std::time(nullptr)));
}

std::string text_of(int file) {
  std::array<char, kMostText> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  return base::one_line({text.data(), static_cast<std::size_t>(got < 0 ? 0 : got)});
}

bool write_text(int file, const std::string& text) {
  return ::ftruncate(file, 0) == 0 && ::pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

[[noreturn]] void fail(const fs::path& path, int error) {
  throw base::Failure(base::ErrorKind::kRuntime,
                      fmt::format("{}: checkpoints cannot be written there: {}",
                                  base::one_line(path.parent_path().string()), std::generic_category().message(error)));
}

[[noreturn]] void refuse(const fs::path& path, const std::string& owner) {
  throw base::Failure(base::ErrorKind::kUsage,
                      fmt::format("{} is being written by {}; wait for its end or name another folder",
                                  base::one_line(path.parent_path().string()), owner.empty() ? "another run" : owner));
}

/// Seconds since the file was touched, by the clock of its file system, which stamps a file of our own now.
std::optional<std::time_t> age_of(int file, const fs::path& path) {
  std::string name = path.string() + ".XXXXXX";
  const int now = ::mkostemp(name.data(), O_CLOEXEC);
  if (now < 0) return std::nullopt;
  ::unlink(name.c_str());
  struct stat old {
  }, fresh{};
  const bool read = ::fstat(file, &old) == 0 && ::fstat(now, &fresh) == 0;
  ::close(now);
  if (!read) return std::nullopt;
  return fresh.st_mtime - old.st_mtime;
}

/// Whether the file at the path is still the one that was opened: its last owner removes it.
bool is_current(int file, const fs::path& path) {
  struct stat opened {
  }, there{};
  return ::fstat(file, &opened) == 0 && ::lstat(path.c_str(), &there) == 0 && opened.st_ino == there.st_ino &&
         opened.st_dev == there.st_dev;
}

int open_lock(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) fail(path, errno);
  return file;
}

/// The lock's file, locked. Where the file system has no locks, the owner's text and its age decide.
int acquire(const fs::path& path, std::string& left_behind) {
  while (true) {
    const int file = open_lock(path);
    const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    const std::string owner = text_of(file);
    if (!locked && error == EWOULDBLOCK) {
      ::close(file);
      refuse(path, owner);
    }
    if (!is_current(file, path)) {
      ::close(file);
      continue;
    }
    const bool elsewhere = !owner.empty() && owner.find(" on " + host() + ",") == std::string::npos;
    if (elsewhere || (!locked && !owner.empty())) {
      // Not every file system tells hosts of each other's locks.
      const auto age = age_of(file, path);
      if (!age || *age < FolderLock::kStale.count()) {
        ::close(file);
        refuse(path, fmt::format("{} (its lock was renewed {} s ago and is given up after {} s)", owner,
                                 age.value_or(0), FolderLock::kStale.count()));
      }
    }
    left_behind = owner;
    return file;
  }
}

}  // namespace

FolderLock::FolderLock(fs::path folder, const std::function<void(const std::string&)>& note)
    : path_(std::move(folder) / "lock") {
  std::string left_behind;
  file_ = acquire(path_, left_behind);
  if (!write_text(file_, own_text())) {
    const int error = errno;
    ::unlink(path_.c_str());
    ::close(file_);
    fail(path_, error);
  }
  if (!left_behind.empty() && note) {
    note(fmt::format("{}: left behind by {}, which is gone; taken over", base::one_line(path_.string()), left_behind));
  }
  renewal_ = std::jthread([file = file_](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, kRenewal, [&] { return stop.stop_requested(); })) ::futimens(file, nullptr);
  });
}

FolderLock::~FolderLock() {
  renewal_.request_stop();
  renewal_.join();
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace trivium::runtime::checkpoint
