// Weights of other programs as floats: in 16, 32 or 64 bits, or in 8 or 4 with scales of their own in the same files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.h"

namespace trivium::runtime::checkpoint {

/// A tensor and the file that it is in.
struct Found {
  const TensorEntry* entry = nullptr;
  const SafetensorsFile* file = nullptr;

  const std::byte* bytes() const { return file->bytes_of(*entry).data(); }
};

/// The numbers of one tensor, row-major. Refers to files that outlive it.
class WeightValues {
 public:
  /// Takes a tensor of the files by name; empty where there is none of that name.
  using Take = std::function<std::optional<Found>(const std::string&)>;

  /// The tensor `name`, with its scales where it has some; empty where the files have no such tensor. Either
  ///  - `name` in F64, F32, BF16 or F16;
  ///  - `name` (rows, columns) in F8_E4M3 and `name`_scale_inv in floats, a factor for every block of 128 x 128
  ///    (DeepSeek-V3, README_WEIGHTS.md; Qwen 3's fp8 releases);
  ///  - `name`_blocks (experts, columns, rows / 32, 16) and `name`_scales (experts, columns, rows / 32), bytes: MXFP4
  ///    as gpt-oss is released, 32 numbers of E2M1 in 16 bytes, the lower half first, and the exponent of their common
  ///    power of two plus 127 (OCP Microscaling Formats 1.0). Its shape is then (experts, rows, columns), as that of
  ///    the tensor in 16 bits.
  /// Errors: Failure(kInput) naming `where` and the tensor: of other numbers, without its scales, or with scales of
  /// another shape.
  static std::optional<WeightValues> take(const std::string& name, const Take& take, const std::string& where);

  const std::string& name() const { return found_.entry->name; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  float at(std::int64_t index) const;

 private:
  enum class Form : std::uint8_t { kFloats, kFp8Blocks, kMxfp4 };

  WeightValues(Form form, Found found, std::vector<std::int64_t> shape, std::optional<Found> scales = {});
  static WeightValues fp8(const Found& found, const std::optional<Found>& scales, const std::string& where);
  static WeightValues mxfp4(const Found& blocks, const std::optional<Found>& scales, const std::string& where);

  Form form_;
  Found found_;
  std::vector<std::int64_t> shape_;
  const std::byte* values_ = nullptr;
  const std::byte* scales_ = nullptr;
  Number scale_number_ = Number::kF32;
};

}  // namespace trivium::runtime::checkpoint
