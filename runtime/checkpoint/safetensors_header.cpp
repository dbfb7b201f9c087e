// Reading the header: everything a file says about itself is checked before any of it is used.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/quote.h"
#include "base/refuse.h"
#include "runtime/checkpoint/safetensors.h"

namespace trivium::runtime::checkpoint {
namespace {

using base::refuse;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian and read in place");

constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the format's own library
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 48;
constexpr const char* kMetadata = "__metadata__";

struct NumberName {
  Number number;
  const char* name;
  std::int64_t bytes;
};
constexpr std::array<NumberName, 12> kNumbers{{{Number::kF64, "F64", 8},
                                               {Number::kF32, "F32", 4},
                                               {Number::kBf16, "BF16", 2},
                                               {Number::kF16, "F16", 2},
                                               {Number::kI64, "I64", 8},
                                               {Number::kI32, "I32", 4},
                                               {Number::kI16, "I16", 2},
                                               {Number::kI8, "I8", 1},
                                               {Number::kU8, "U8", 1},
                                               {Number::kBool, "BOOL", 1},
                                               {Number::kF8E4M3, "F8_E4M3", 1},
                                               {Number::kF8E5M2, "F8_E5M2", 1}}};

Number read_number(const base::JsonReader& reader) {
  const std::string name = reader.text();
  for (const NumberName& known : kNumbers) {
    if (name == known.name) return known.number;
  }
  reader.fail(fmt::format("unsupported number format {}", base::quote(name)));
}

TensorEntry tensor_of(const std::string& name, const base::JsonReader& reader) {
  reader.allow_only({"dtype", "shape", "data_offsets"});
  TensorEntry tensor;
  tensor.name = name;
  tensor.number = read_number(reader.at("dtype"));
  std::int64_t bytes = size_of(tensor.number);
  for (const base::JsonReader& extent : reader.at("shape").elements()) {
    tensor.shape.push_back(extent.integer(0, kLargestExtent));
    if (tensor.shape.back() > 0 && bytes > kLargestExtent / tensor.shape.back()) extent.fail("the tensor is too large");
    bytes *= tensor.shape.back();
  }
  const std::vector<base::JsonReader> offsets = reader.at("data_offsets").elements();
  if (offsets.size() != 2) reader.at("data_offsets").fail("expected two numbers, begin and end");
  tensor.begin = offsets[0].integer(0, kLargestExtent);
  tensor.end = offsets[1].integer(tensor.begin, kLargestExtent);
  if (tensor.end - tensor.begin != bytes) {
    reader.fail(fmt::format("the shape needs {} bytes, the data has {}", bytes, tensor.end - tensor.begin));
  }
  return tensor;
}

}  // namespace

std::int64_t size_of(Number number) { return kNumbers[static_cast<std::size_t>(number)].bytes; }
std::string_view name_of(Number number) { return kNumbers[static_cast<std::size_t>(number)].name; }
bool is_float(Number number) { return number <= Number::kF16; }

SafetensorsHeader parse_safetensors(std::span<const std::byte> content, const std::string& file) {
  std::uint64_t length = 0;
  if (content.size() < sizeof length) refuse(file, "too short for a safetensors file; it may be cut off");
  std::memcpy(&length, content.data(), sizeof length);
  if (length > kLargestHeader) refuse(file, "not a safetensors file: the header's length is beyond any real one");
  if (length > content.size() - sizeof length) refuse(file, "the safetensors header is cut off");
  const std::string_view text(reinterpret_cast<const char*>(content.data()) + sizeof length, length);
  if (text.empty() || text.front() != '{') refuse(file, "not a safetensors file: the header is not a JSON object");
  const nlohmann::json json = base::parse_json(text.substr(0, text.find_last_not_of(' ') + 1), file);
  SafetensorsHeader header;
  header.data_begin = static_cast<std::int64_t>(sizeof length + length);
  for (const auto& [name, member] : base::JsonReader(json, file).members()) {
    if (name == kMetadata) {
      for (const auto& [key, value] : member.members()) header.metadata[key] = value.text();
    } else {
      header.tensors.push_back(tensor_of(name, member));
    }
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::int64_t reached = 0;
  for (const TensorEntry& tensor : header.tensors) {
    if (tensor.begin != reached) {
      refuse(file, fmt::format("{} begins at byte {} of the data, where {} was expected", base::quote(tensor.name),
                               tensor.begin, reached));
    }
    reached = tensor.end;
  }
  const auto data = static_cast<std::int64_t>(content.size()) - header.data_begin;
  if (data != reached) {
    refuse(file,
           fmt::format("the header tells of {} bytes of data, the file has {}; it may be cut off", reached, data));
  }
  return header;
}

}  // namespace trivium::runtime::checkpoint
