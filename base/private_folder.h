// Temporary folders that no other user of the machine can foresee, enter or prepare.
#pragma once

#include <filesystem>
#include <string_view>

namespace trivium::base {

/// A fresh folder BASE/PREFIXxxxxxx with mode 0700, removed at the end with all its contents. It is locked while it
/// exists, so that folders left behind by killed processes can be recognised and removed.
class PrivateFolder {
 public:
  /// Errors: Failure(kRuntime) naming the folder that could not be made.
  PrivateFolder(const std::filesystem::path& base, std::string_view prefix);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

/// Removes this user's folders BASE/PREFIX… whose processes are gone.
void remove_abandoned_folders(const std::filesystem::path& base, std::string_view prefix);

/// Where temporary files belong: $TMPDIR, else /tmp. Errors: Failure(kUsage) where TMPDIR names no folder.
std::filesystem::path temporary_folder();

}  // namespace trivium::base
