#include "runtime/flight/ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/quote.h"
#include "runtime/backend.h"
#include "runtime/flight/log.h"

namespace trivium::runtime::flight {

std::string_view name_of(Doing doing) {
  static constexpr std::array<std::string_view, 7> kNames{"starting",   "compute", "collective", "transfer",
                                                          "step start", "loss",    "checkpoint"};
  return kNames.at(static_cast<std::size_t>(doing));
}

std::string ring_name(int rank) { return fmt::format("rank-{:05}.flight", rank); }

namespace {

/// What has the record's name already must be a record too: nothing else is replaced.
void require_record(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return;
  read_log(path);
}

}  // namespace

Ring::Ring(const std::filesystem::path& folder, int rank, int ranks, std::uint64_t program_hash) {
  const std::filesystem::path path = folder / ring_name(rank);
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  require_record(path);
  // Built in a temporary file in the same folder, so that a reader never sees an unfinished header. Its name cannot be
  // predicted: in a folder of others a link could stand in its place.
  std::string making = (folder / ("." + ring_name(rank) + ".XXXXXX")).string();
  const int file = ::mkostemp(making.data(), O_CLOEXEC);
  const auto fail = [&] {
    const int why = errno;
    if (file >= 0) ::close(file), ::unlink(making.c_str());
    throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: cannot make the flight record: {}",
                                                               base::one_line(path.string()), std::strerror(why)));
  };
  // Allocated at once: a page that finds the disk full later would end the process.
  if (file < 0) fail();
  if (const int full = ::posix_fallocate(file, 0, sizeof(Content)); full != 0) errno = full, fail();
  void* memory = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail();
  ::close(file);
  content_ = static_cast<Content*>(memory);
  std::copy_n(kMagic, sizeof content_->magic, content_->magic);
  content_->version = kVersion;
  content_->rank = rank;
  content_->ranks = ranks;
  content_->pid = ::getpid();
  content_->program_hash = program_hash;
  note(Doing::kStarting, now_ns(), 0);
  if (::rename(making.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::munmap(content_, sizeof(Content));
    ::unlink(making.c_str());
    throw base::Failure(base::ErrorKind::kRuntime, fmt::format("{}: cannot make the flight record: {}",
                                                               base::one_line(path.string()), std::strerror(why)));
  }
}

Ring::~Ring() { ::munmap(content_, sizeof(Content)); }

void Ring::ended(End how, std::string_view message) {
  auto none = static_cast<std::int32_t>(End::kNone);
  auto* end = reinterpret_cast<std::int32_t*>(&content_->end);
  if (!__atomic_compare_exchange_n(end, &none, static_cast<std::int32_t>(how), false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    return;
  }
  const std::size_t length = std::min(message.size(), sizeof content_->message - 1);
  std::copy_n(message.begin(), length, content_->message);
}

}  // namespace trivium::runtime::flight
