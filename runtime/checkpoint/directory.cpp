#include "runtime/checkpoint/directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "edge/error.h"
#include "edge/files.h"
#include "edge/quote.h"

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

[[noreturn]] void fail(edge::ErrorKind kind, const fs::path& path, const std::string& what) {
  throw edge::Failure(kind, fmt::format("{}: {}", edge::one_line(path.string()), what));
}

void flush(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // some file systems cannot; the rename itself stays whole
  ::fsync(descriptor);
  ::close(descriptor);
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
  if (error) fail(edge::ErrorKind::kInput, folder, fmt::format("cannot read the folder: {}", error.message()));
  std::vector<std::pair<std::int64_t, fs::path>> found;
  for (const fs::directory_entry& entry : entries) {
    std::string name = entry.path().filename().string();
    if (const auto step = step_of(name)) {
      found.emplace_back(*step, entry.path());
    } else if (name.starts_with(".") && name.ends_with(kUnfinished) &&
               step_of(std::string_view(name).substr(1, name.size() - 1 - kUnfinished.size()))) {
      listing.unfinished.push_back(entry.path());
    }
  }
  std::sort(found.rbegin(), found.rend());
  for (auto& [step, path] : found) listing.whole.push_back(std::move(path));
  std::sort(listing.unfinished.begin(), listing.unfinished.end());
  if (fs::is_regular_file(folder / kLatest, error)) {
    std::string latest = edge::read_file(folder / kLatest);
    while (!latest.empty() && latest.back() == '\n') latest.pop_back();
    const auto named = std::find_if(listing.whole.begin(), listing.whole.end(),
                                    [&](const fs::path& path) { return path.filename() == latest; });
    if (named != listing.whole.end()) std::rotate(listing.whole.begin(), named, named + 1);
  }
  return listing;
}

void publish(const fs::path& folder, std::int64_t step, std::int64_t keep) {
  std::error_code error;
  const fs::path target = folder / folder_name(step);
  flush(folder / unfinished_name(step));
  fs::remove_all(target, error);  // of a run that went back to an earlier step
  fs::rename(folder / unfinished_name(step), target, error);
  if (error) fail(edge::ErrorKind::kRuntime, target, fmt::format("cannot finish the checkpoint: {}", error.message()));
  flush(folder);
  edge::write_file_atomically(folder / kLatest, folder_name(step) + "\n");
  const Listing listing = list(folder);
  for (const fs::path& path : listing.unfinished) fs::remove_all(path, error);
  for (std::size_t i = static_cast<std::size_t>(keep); keep > 0 && i < listing.whole.size(); ++i) {
    fs::remove_all(listing.whole[i], error);
  }
}

}  // namespace trivium::runtime::checkpoint
