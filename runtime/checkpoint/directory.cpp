#include "runtime/checkpoint/directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/quote.h"

namespace trivium::runtime::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kUnfinished = ".tmp";
constexpr const char* kLatest = "latest";

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (name.empty() || error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

[[noreturn]] void fail(base::ErrorKind kind, const fs::path& path, const std::string& what) {
  throw base::Failure(kind, fmt::format("{}: {}", base::one_line(path.string()), what));
}

/// What stands in the folder reaches the disk. Errors: Failure(kRuntime), but for file systems that cannot do it.
void flush(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  const int error = ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
  ::close(descriptor);
  if (error != 0) {
    fail(base::ErrorKind::kRuntime, folder,
         fmt::format("cannot finish the checkpoint: {}", std::generic_category().message(error)));
  }
}

/// Gives a folder the name of another, if there is one, which then has the first one's. Returns the error's number.
int take_place(const fs::path& fresh, const fs::path& target) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return 0;
  if (errno != ENOENT && errno != EINVAL && errno != ENOSYS) return errno;
  // Nothing to exchange, or a file system that cannot: the old one steps aside until the new one is there.
  const fs::path aside = fresh.string() + std::string(kUnfinished);
  const bool replaces = ::rename(target.c_str(), aside.c_str()) == 0;
  if (::rename(fresh.c_str(), target.c_str()) == 0) return 0;
  const int error = errno;
  if (replaces) ::rename(aside.c_str(), target.c_str());
  return error;
}

/// ".step-00000020.tmp", and what stepped aside for it: ".step-00000020.tmp.tmp".
bool is_unfinished(std::string_view name) {
  if (!name.starts_with(".") || !name.ends_with(kUnfinished)) return false;
  name.remove_prefix(1);
  while (name.ends_with(kUnfinished)) name.remove_suffix(kUnfinished.size());
  return step_of(name).has_value();
}

}  // namespace

std::string folder_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }
std::string shard_name(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }
std::string unfinished_name(std::int64_t step) { return fmt::format(".{}{}", folder_name(step), kUnfinished); }

Listing list(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  if (!fs::exists(folder, error)) return listing;
  fs::directory_iterator entries(folder, error);
  if (error) fail(base::ErrorKind::kInput, folder, fmt::format("cannot read the folder: {}", error.message()));
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const fs::directory_entry& entry : entries) {
    std::string name = entry.path().filename().string();
    if (const auto step = step_of(name)) {
      found.emplace_back(*step, entry.path());
    } else if (is_unfinished(name)) {
      listing.unfinished.push_back(entry.path());
    }
  }
  std::sort(found.rbegin(), found.rend());
  for (auto& [step, path] : found) listing.whole.push_back(std::move(path));
  std::sort(listing.unfinished.begin(), listing.unfinished.end());
  if (fs::is_regular_file(folder / kLatest, error)) {
    std::string latest = base::read_file(folder / kLatest);
    while (!latest.empty() && latest.back() == '\n') latest.pop_back();
    const auto named = std::find_if(listing.whole.begin(), listing.whole.end(),
                                    [&](const fs::path& path) { return path.filename() == latest; });
    if (named != listing.whole.end()) std::rotate(listing.whole.begin(), named, named + 1);
  }
  return listing;
}

void refuse_odd_latest(const fs::path& folder) {
  std::error_code error;
  const fs::path latest = folder / kLatest;
  if (!fs::exists(latest, error) || fs::is_regular_file(latest, error)) return;
  fail(base::ErrorKind::kInput, latest, "is no file, so that no save could name the newest checkpoint; remove it");
}

void publish(const fs::path& folder, std::int64_t step, std::int64_t keep) {
  std::error_code error;
  const fs::path target = folder / folder_name(step), unfinished = folder / unfinished_name(step);
  flush(unfinished);
  if (const int why = take_place(unfinished, target); why != 0) {
    fail(base::ErrorKind::kRuntime, target,
         fmt::format("cannot finish the checkpoint: {}", std::generic_category().message(why)));
  }
  flush(folder);
  base::write_file_atomically(folder / kLatest, folder_name(step) + "\n");
  const Listing listing = list(folder);
  for (const fs::path& path : listing.unfinished) fs::remove_all(path, error);
  std::int64_t stay = keep - 1;
  for (const fs::path& path : listing.whole) {
    // Later steps are of a run that went further before this one went back: not ours to judge.
    if (keep == 0 || step_of(path.filename().string()) >= step) continue;
    if (--stay < 0) fs::remove_all(path, error);
  }
}

}  // namespace trivium::runtime::checkpoint
