// The safetensors file format: named tensors after a JSON header.
// https://github.com/huggingface/safetensors, "Format": 8 bytes little-endian length of the header, the header, the
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/checksum.h"
#include "runtime/data/mapped_file.h"

namespace trivium::runtime::checkpoint {

/// Number formats of the files that are read here. Weights are floats of 16 bits and more, or 8-bit floats and packed
/// bytes with scales (weight_values.h); other integers are known by size only.
enum class Number : std::uint8_t { kF64, kF32, kBf16, kF16, kI64, kI32, kI16, kI8, kU8, kBool, kF8E4M3, kF8E5M2 };
std::int64_t size_of(Number number);
std::string_view name_of(Number number);  ///< "F32", …
bool is_float(Number number);             ///< F64, F32, BF16 or F16: a number by itself

/// One tensor of a file, row-major.
struct TensorEntry {
  std::string name;
  Number number = Number::kF32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  ///< bytes of the data, from the end of the header
};

/// The header of a file of `file_bytes` bytes that begins with `content` (the whole header at least).
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;             ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
  std::int64_t data_begin = 0;                  ///< bytes before the data
};

/// Errors: Failure(kInput) naming `file`: a header that is cut off, too long, not JSON or not of this form, an unknown
/// number format, a shape that disagrees with its bytes, data with holes, overlaps or another length than the file.
SafetensorsHeader parse_safetensors(std::span<const std::byte> content, const std::string& file);

/// A file read in place. Immutable; safe to share between threads.
class SafetensorsFile {
 public:
  /// Errors: as parse_safetensors, and where the file cannot be mapped.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  std::span<const std::byte> bytes_of(const TensorEntry& tensor) const;
  std::span<const std::byte> bytes() const { return file_->bytes(); }
  std::uint64_t checksum() const;

 private:
  std::unique_ptr<data::MappedFile> file_;
  SafetensorsHeader header_;
};

/// Element `index` of packed values of `number` (F64, F32, BF16, F16) as a double.
double element(const std::byte* values, std::int64_t index, Number number);

/// Writes a new file front to back: all tensors are declared first, then their bytes come in that order.
class SafetensorsWriter {
 public:
  /// `tensors`: begin and end are set here. Errors: Failure(kRuntime) naming the file and the cause.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorEntry> tensors,
                    const std::map<std::string, std::string>& metadata);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  /// Flushes to the disk and closes. Errors: also Failure(kRuntime) where fewer bytes came than were declared.
  void finish();
  std::int64_t bytes() const { return written_; }
  std::uint64_t checksum() const { return checksum_.value(); }

 private:
  void flush();
  [[noreturn]] void fail(int error_number);

  std::filesystem::path path_;
  int file_ = -1;
  std::vector<std::byte> buffer_;
  std::int64_t expected_ = 0, written_ = 0;
  Checksum checksum_;
};

}  // namespace trivium::runtime::checkpoint
