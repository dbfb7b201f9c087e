// The file format, byte by byte.
#include "runtime/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "runtime/checkpoint/stored.h"
#include "tests/input_error.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

/// A file by hand: length, header, data.
std::string file_of(const std::string& header, const std::string& data) {
  std::string content(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(content.data(), &length, sizeof length);
  return content + header + data;
}

std::string complaint(const std::string& content) {
  return input_error([&] { parse_safetensors(std::as_bytes(std::span(content)), "f"); });
}

constexpr const char* kTwo = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},)"
                             R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";

TEST(Safetensors, AHandMadeFileIsRead) {
  const std::string content = file_of(kTwo, std::string(12, '\0'));
  const SafetensorsHeader header = parse_safetensors(std::as_bytes(std::span(content)), "f");
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(header.tensors[1].number, Number::kF16);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(Safetensors, WhatIsWrongIsSaid) {
  const std::string good = file_of(kTwo, std::string(12, '\0'));
  EXPECT_NE(complaint(good.substr(0, 5)).find("too short"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, 40)).find("header is cut off"), std::string::npos);
  EXPECT_NE(complaint(good.substr(0, good.size() - 1)).find("it may be cut off"), std::string::npos);
  EXPECT_NE(complaint(good + "x").find("the file has 13"), std::string::npos);
  EXPECT_NE(complaint(file_of("[1]", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(complaint(file_of("{\"a\"", "")).find("not valid JSON"), std::string::npos);
  const auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return file_of(fmt::format(R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets),
                   std::string(8, '\0'));
  };
  EXPECT_EQ(complaint(one("F32", "[2]", "[0,8]")), "");
  EXPECT_NE(complaint(one("F8", "[2]", "[0,8]")).find("f#/a/dtype: unsupported number format \"F8\""),
            std::string::npos);
  EXPECT_NE(complaint(one("F32", "[3]", "[0,8]")).find("the shape needs 12 bytes, the data has 8"), std::string::npos);
  EXPECT_NE(complaint(one("F32", "[1]", "[4,8]")).find("begins at byte 4 of the data, where 0"), std::string::npos);
  EXPECT_NE(complaint(one("F32", "[-1]", "[0,8]")).find("f#/a/shape/0"), std::string::npos);
  EXPECT_NE(complaint(one("F32", "[281474976710656,281474976710656]", "[0,8]")).find("too large"), std::string::npos);
  const std::string twice = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_NE(complaint(file_of(twice, "xy")).find("\"a\" stands there twice"), std::string::npos);
  const std::string overlap = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                              R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})";
  EXPECT_NE(complaint(file_of(overlap, "xyz")).find("begins at byte 1 of the data, where 2"), std::string::npos);
}

TEST(Safetensors, WhatIsWrittenIsReadBackAlignedAndWithItsChecksum) {
  const Folder folder;
  const std::vector<float> values{1.5f, -2.0f, 0.25f};
  SafetensorsWriter writer(folder.path() / "f", {{.name = "x", .number = Number::kF32, .shape = {3, 1}}}, {});
  writer.write(std::as_bytes(std::span(values)));
  writer.finish();
  const SafetensorsFile file(folder.path() / "f");
  EXPECT_EQ(file.header().data_begin % 8, 0);
  const TensorEntry& entry = file.header().tensors.front();
  EXPECT_EQ(std::memcmp(file.bytes_of(entry).data(), values.data(), 12), 0);
  EXPECT_EQ(file.checksum(), writer.checksum());
  EXPECT_EQ(static_cast<std::int64_t>(file.bytes().size()), writer.bytes());
}

// 0x3fc0 = 1.5 in bf16, 0x3e00 = 1.5 in fp16.
TEST(Safetensors, SixteenBitNumbersAreWidened) {
  const std::uint16_t bf16 = 0x3fc0, fp16 = 0x3e00;
  EXPECT_EQ(element(reinterpret_cast<const std::byte*>(&bf16), 0, Number::kBf16), 1.5);
  EXPECT_EQ(element(reinterpret_cast<const std::byte*>(&fp16), 0, Number::kF16), 1.5);
}

std::string refusal_of(const std::vector<TensorEntry>& entries) {
  const Folder folder;
  SafetensorsWriter writer(folder.path() / "f", entries, {});
  for (const TensorEntry& entry : entries) {
    std::int64_t bytes = 4;
    for (const std::int64_t extent : entry.shape) bytes *= extent;
    writer.write(std::vector<std::byte>(static_cast<std::size_t>(bytes)));
  }
  writer.finish();
  try {
    const StoredTensors tensors({folder.path() / "f"});
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

TensorEntry piece(const std::string& name, std::int64_t rows, std::int64_t columns) {
  return {.name = name, .number = Number::kF32, .shape = {rows, columns}};
}

TEST(StoredPieces, MustCoverTheirTensorOnce) {
  EXPECT_EQ(refusal_of({piece("value/w@0+2,0+1", 2, 1), piece("value/w@0+2,1+3", 2, 3)}), "");
  EXPECT_NE(refusal_of({piece("value/w@0+2,0+2", 2, 2), piece("value/w@1+1,1+3", 1, 3)}).find("two pieces"),
            std::string::npos);
  EXPECT_NE(refusal_of({piece("value/w@0+1,0+2", 1, 2), piece("value/w@1+1,0+1", 1, 1)}).find("3 of 4 elements"),
            std::string::npos);
  EXPECT_NE(refusal_of({piece("value/w@0+1,0+2", 2, 1)}).find("the shape is not that of the box"), std::string::npos);
  for (const char* name : {"w", "value/w", "other/w@0+1,0+1", "value/w@0+1", "value/w@0+1,0+1x", "value/@0+1,0+1"}) {
    EXPECT_NE(refusal_of({piece(name, 1, 1)}).find("not the name of a piece"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
