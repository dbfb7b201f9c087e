// Files as gzip packs them: PyTorch's profiler writes `.pt.trace.json.gz`.
#pragma once

#include <string>
#include <string_view>

namespace trivium::calibration::imports {

/// Whether a file begins as gzip's do (RFC 1952).
bool is_gzip(std::string_view bytes);

/// The file's content: all its members, one after another. Errors: Failure(kInput) naming `file` where it ends early,
/// is corrupt, holds more than `base::input_limit`, or where anything but zeros follows its end.
std::string unpacked(std::string_view bytes, const std::string& file);

}  // namespace trivium::calibration::imports
