// Memory that is a file: where what is offloaded to disk lies.
#pragma once

#include <cstddef>

namespace trivium::runtime {

/// A zeroed file without a name in $TMPDIR (else /tmp), mapped; its blocks are reserved, so that a full disk is told at
/// the start. Gone with the process, however that ends. Errors: base::Failure (kRuntime) with the folder and the
/// reason.
class DiskArena {
 public:
  explicit DiskArena(std::size_t bytes);
  ~DiskArena();
  DiskArena(const DiskArena&) = delete;
  DiskArena& operator=(const DiskArena&) = delete;

  std::byte* begin() const { return begin_; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace trivium::runtime
