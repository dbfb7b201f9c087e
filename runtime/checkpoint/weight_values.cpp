#include "runtime/checkpoint/weight_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/reduction/fp8.h"

namespace trivium::runtime::checkpoint {
namespace {

constexpr std::int64_t kFp8Block = 128;               // rows and columns of a scale
constexpr std::int64_t kMxBlock = 32, kMxBytes = 16;  // numbers of a scale, and the bytes that they are in
constexpr int kMxBias = 127, kMxNaN = 255;            // of E8M0
constexpr std::array<float, 8> kE2M1{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};  // magnitudes; the fourth bit is the sign

std::int64_t blocks_of(std::int64_t length) { return (length + kFp8Block - 1) / kFp8Block; }

/// Scales of a tensor, or a refusal that says what is missing or of another shape.
const Found& scales_of(const Found& found, const std::optional<Found>& scales, const std::string& name,
                       const std::vector<std::int64_t>& shape, const std::string& where) {
  if (!scales) {
    base::refuse(where, fmt::format("{} is in {} without its scales, {}", base::quote(found.entry->name),
                                    name_of(found.entry->number), base::quote(name)));
  }
  if (scales->entry->shape == shape) return *scales;
  base::refuse(where, fmt::format("{} has the shape [{}], the scales of {} have [{}]", base::quote(name),
                                  fmt::join(scales->entry->shape, ", "), base::quote(found.entry->name),
                                  fmt::join(shape, ", ")));
}

/// The number of four bits.
float e2m1(unsigned code) { return (code & 8U) != 0 ? -kE2M1[code & 7U] : kE2M1[code & 7U]; }

}  // namespace

WeightValues::WeightValues(Form form, Found found, std::vector<std::int64_t> shape, std::optional<Found> scales)
    : form_(form), found_(found), shape_(std::move(shape)), values_(found.bytes()) {
  if (!scales) return;
  scales_ = scales->bytes();
  scale_number_ = scales->entry->number;
}

WeightValues WeightValues::fp8(const Found& found, const std::optional<Found>& scales, const std::string& where) {
  const std::vector<std::int64_t>& shape = found.entry->shape;
  if (shape.size() != 2) {
    base::refuse(
        where, fmt::format("{} is in {}, and no matrix", base::quote(found.entry->name), name_of(found.entry->number)));
  }
  const std::string name = found.entry->name + "_scale_inv";
  const Found& factors = scales_of(found, scales, name, {blocks_of(shape[0]), blocks_of(shape[1])}, where);
  if (!is_float(factors.entry->number)) base::refuse(where, fmt::format("{} is not of floats", base::quote(name)));
  return {Form::kFp8Blocks, found, shape, factors};
}

WeightValues WeightValues::mxfp4(const Found& blocks, const std::optional<Found>& scales, const std::string& where) {
  const std::vector<std::int64_t>& shape = blocks.entry->shape;
  const std::string& name = blocks.entry->name;
  if (shape.size() != 4 || shape[3] != kMxBytes || blocks.entry->number != Number::kU8) {
    base::refuse(where,
                 fmt::format("{} is {} of the shape [{}]; MXFP4 has bytes, U8, in blocks of {}", base::quote(name),
                             name_of(blocks.entry->number), fmt::join(shape, ", "), kMxBytes));
  }
  const std::string of_scales = name.substr(0, name.rfind("_blocks")) + "_scales";
  const Found& exponents = scales_of(blocks, scales, of_scales, {shape[0], shape[1], shape[2]}, where);
  if (exponents.entry->number != Number::kU8) {
    base::refuse(where, fmt::format("{} is not of bytes, U8", base::quote(of_scales)));
  }
  return {Form::kMxfp4, blocks, {shape[0], shape[2] * kMxBlock, shape[1]}, exponents};
}

std::optional<WeightValues> WeightValues::take(const std::string& name, const Take& take, const std::string& where) {
  if (const auto found = take(name)) {
    if (is_float(found->entry->number)) return WeightValues(Form::kFloats, *found, found->entry->shape);
    if (found->entry->number == Number::kF8E4M3) return fp8(*found, take(name + "_scale_inv"), where);
    base::refuse(where,
                 fmt::format("{} is in {}; weights are read in floats of 16, 32 or 64 bits, in F8_E4M3 with a "
                             "scale for every block of {} x {}, and in MXFP4",
                             base::quote(found->entry->name), name_of(found->entry->number), kFp8Block, kFp8Block));
  }
  if (const auto blocks = take(name + "_blocks")) return mxfp4(*blocks, take(name + "_scales"), where);
  return std::nullopt;
}

float WeightValues::at(std::int64_t index) const {
  switch (form_) {
    case Form::kFloats:
      return static_cast<float>(element(values_, index, found_.entry->number));
    case Form::kFp8Blocks: {
      const std::int64_t row = index / shape_[1], column = index % shape_[1];
      const double scale = element(scales_, row / kFp8Block * blocks_of(shape_[1]) + column / kFp8Block, scale_number_);
      const auto code = static_cast<std::uint8_t>(values_[index]);
      return static_cast<float>(scale * reduction::float_of_fp8(code, reduction::Fp8Type::kE4M3));
    }
    case Form::kMxfp4:
      break;
  }
  const std::int64_t rows = shape_[1], columns = shape_[2];
  const std::int64_t expert = index / (rows * columns), row = index / columns % rows, column = index % columns;
  const std::int64_t block = (expert * columns + column) * (rows / kMxBlock) + row / kMxBlock, place = row % kMxBlock;
  const auto both = static_cast<unsigned>(values_[block * kMxBytes + place / 2]);
  const int exponent = static_cast<int>(scales_[block]);
  if (exponent == kMxNaN) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(e2m1(place % 2 == 0 ? both & 15U : both >> 4U), exponent - kMxBias);
}

}  // namespace trivium::runtime::checkpoint
