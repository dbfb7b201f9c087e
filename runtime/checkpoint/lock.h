// One writer a folder of checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <thread>

namespace trivium::runtime::checkpoint {

/// Held by the process that writes checkpoints into a folder, which must exist: DIR/lock, with the owner's host,
/// process and start. The file is locked, which the system undoes however the owner ends, also across hosts where the
/// file system does that; where it does not, the owner touches the file every kRenewal, and one that was not touched
/// for kStale belongs to nobody. Removed at the end.
class FolderLock {
 public:
  static constexpr std::chrono::seconds kRenewal{30}, kStale{300};

  /// `note`: told of a lock that a process left behind, which is taken over. Errors: Failure(kUsage) naming the owner
  /// where there is one; Failure(kRuntime) where nothing can be written there.
  FolderLock(std::filesystem::path folder, const std::function<void(const std::string&)>& note);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::jthread renewal_;
};

}  // namespace trivium::runtime::checkpoint
