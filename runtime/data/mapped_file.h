// A file as memory, read page by page when touched: corpora may be larger than the machine's memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace trivium::runtime::data {

/// Content of a regular file, mapped read-only for the life of the object. Immutable; safe to share between threads.
/// The file must not shrink meanwhile.
class MappedFile {
 public:
  /// `what`: the file in words, for errors. Errors: base::Failure(kInput) when it is missing, not a regular file,
  /// unreadable or empty.
  explicit MappedFile(const std::filesystem::path& path, const char* what = "corpus");
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace trivium::runtime::data
