// Weights in 8 and 4 bits with scales: each file must read as the one that has the same numbers in fp32.
#include "runtime/checkpoint/weight_values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/load.h"
#include "runtime/checkpoint/hugging_face_table.h"
#include "runtime/checkpoint/whole.h"
#include "tests/input_error.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

struct Tensor {
  TensorEntry entry;
  std::vector<std::byte> bytes;
};
using File = std::vector<Tensor>;

models::Model llama() {
  return models::model_from_hugging_face({{"model_type", "llama"},
                                          {"vocab_size", 5},
                                          {"max_position_embeddings", 5},
                                          {"hidden_size", 144},  // neither is a multiple of a block
                                          {"num_hidden_layers", 1},
                                          {"num_attention_heads", 2},
                                          {"intermediate_size", 130}},
                                         "llama");
}

models::Model gpt_oss() {
  return models::model_from_hugging_face({{"model_type", "gpt_oss"},
                                          {"vocab_size", 5},
                                          {"max_position_embeddings", 8},
                                          {"hidden_size", 64},
                                          {"num_hidden_layers", 1},
                                          {"num_attention_heads", 2},
                                          {"num_key_value_heads", 1},
                                          {"head_dim", 32},
                                          {"intermediate_size", 96},
                                          {"num_local_experts", 2},
                                          {"num_experts_per_tok", 1},
                                          {"sliding_window", 4},
                                          {"layer_types", nlohmann::json::array({"sliding_attention"})},
                                          {"rope_theta", 150000.0},
                                          {"hidden_act", "silu"}},
                                         "gpt_oss");
}

/// E4M3 by its definition: four bits of exponent with bias 7, three of mantissa.
double e4m3(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15U), mantissa = static_cast<int>(code & 7U);
  const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 128U) != 0 ? -size : size;
}

/// E2M1 by its definition: two bits of exponent with bias 1, one of mantissa.
double e2m1(unsigned code) {
  const int exponent = static_cast<int>(code >> 1 & 3U), mantissa = static_cast<int>(code & 1U);
  const double size = exponent == 0 ? mantissa * 0.5 : std::ldexp(2 + mantissa, exponent - 2);
  return (code & 8U) != 0 ? -size : size;
}

Tensor floats(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{.name = name, .number = Number::kF32, .shape = std::move(shape)}, {bytes.begin(), bytes.end()}};
}

Tensor bytes_named(const std::string& name, Number number, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return {{.name = name, .number = number, .shape = std::move(shape)}, std::vector<std::byte>(count)};
}

class ScaledWeights : public ::testing::Test {
 protected:
  /// All tensors that files of the model have, in fp32.
  File dense(const models::Model& model) {
    WholeTensors tensors;
    for (const Correspondence& c : correspondences(model)) {
      tensors[c.ours] = {c.rows, c.columns, std::vector<float>(static_cast<std::size_t>(c.rows * c.columns), 0.5F)};
    }
    const std::filesystem::path path = next();
    write_hugging_face(tensors, model, path);
    const SafetensorsFile written(path);
    File file;
    for (const TensorEntry& entry : written.header().tensors) {
      const auto bytes = written.bytes_of(entry);
      file.push_back({entry, {bytes.begin(), bytes.end()}});
    }
    return file;
  }

  WholeTensors read(const models::Model& model, const File& file) {
    const std::filesystem::path path = next();
    std::vector<TensorEntry> entries;
    for (const Tensor& tensor : file) entries.push_back(tensor.entry);
    SafetensorsWriter writer(path, entries, {});
    for (const Tensor& tensor : file) writer.write(tensor.bytes);
    writer.finish();
    return from_hugging_face(SafetensorsFile(path), model, "file");
  }

  std::string complaint(const models::Model& model, const File& file) {
    return input_error([&] { read(model, file); });
  }

  /// The file with other tensors in place of `name`.
  static File with(File file, const std::string& name, const File& others) {
    std::erase_if(file, [&](const Tensor& tensor) { return tensor.entry.name == name; });
    file.insert(file.end(), others.begin(), others.end());
    return file;
  }

  void expect_same(const models::Model& model, const File& scaled, const File& in_floats) {
    const WholeTensors a = read(model, scaled), b = read(model, in_floats);
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, tensor] : b) EXPECT_EQ(a.at(name).values, tensor.values) << name;
  }

 private:
  std::filesystem::path next() { return folder_.path() / fmt::format("{}.safetensors", ++written_); }

  Folder folder_;
  int written_ = 0;
};

constexpr const char* kGate = "model.layers.0.mlp.gate_proj.weight";

/// Every number of E4M3 but NaN, in two by two blocks of 128 x 128.
File fp8_gate(Number of_scales = Number::kF32) {
  File file{bytes_named(kGate, Number::kF8E4M3, {130, 144})};
  for (std::size_t i = 0; i < file[0].bytes.size(); ++i) file[0].bytes[i] = std::byte(i % 127 + (i % 3 == 0 ? 128 : 0));
  file.push_back(floats(std::string(kGate) + "_scale_inv", {2, 2}, {0.5F, 3.0F, 0.0625F, 7.0F}));
  if (of_scales == Number::kF32) return file;
  file[1] = bytes_named(file[1].entry.name, of_scales, {2, 2});
  return file;
}

TEST_F(ScaledWeights, InEightBitsAreTimesTheScaleOfTheirBlock) {
  const models::Model model = llama();
  const File scaled = fp8_gate();
  std::vector<float> values;
  for (std::size_t row = 0; row < 130; ++row) {
    for (std::size_t column = 0; column < 144; ++column) {
      const double scale = row < 128 ? (column < 128 ? 0.5 : 3.0) : (column < 128 ? 0.0625 : 7.0);
      const auto code = static_cast<unsigned>(scaled[0].bytes[row * 144 + column]);
      values.push_back(static_cast<float>(scale * e4m3(code)));
    }
  }
  expect_same(model, with(dense(model), kGate, scaled), with(dense(model), kGate, {floats(kGate, {130, 144}, values)}));
}

TEST_F(ScaledWeights, InEightBitsThatDoNotFitAreNamed) {
  const models::Model model = llama();
  const std::string gate = "\"" + std::string(kGate) + "\"", scale = "\"" + std::string(kGate) + "_scale_inv\"";
  File scaled = fp8_gate();
  scaled.pop_back();
  EXPECT_EQ(complaint(model, with(dense(model), kGate, scaled)),
            "file: " + gate + " is in F8_E4M3 without its scales, " + scale);
  scaled = fp8_gate();
  scaled[1].entry.shape = {4, 1};
  EXPECT_EQ(complaint(model, with(dense(model), kGate, scaled)),
            "file: " + scale + " has the shape [4, 1], the scales of " + gate + " have [2, 2]");
  EXPECT_EQ(complaint(model, with(dense(model), kGate, fp8_gate(Number::kU8))), "file: " + scale + " is not of floats");
  scaled = fp8_gate();
  scaled[0].entry.shape = {144, 130};
  EXPECT_EQ(complaint(model, with(dense(model), kGate, scaled)),
            "file: " + gate + " has the shape [144, 130], the model needs [130, 144]");
  scaled = fp8_gate();
  scaled[0].entry.shape = {18'720};
  EXPECT_EQ(complaint(model, with(dense(model), kGate, scaled)), "file: " + gate + " is in F8_E4M3, and no matrix");
  scaled = fp8_gate();
  scaled[0].entry.number = Number::kF8E5M2;
  EXPECT_EQ(complaint(model, with(dense(model), kGate, scaled)),
            "file: " + gate +
                " is in F8_E5M2; weights are read in floats of 16, 32 or 64 bits, in F8_E4M3 with a scale for every "
                "block of 128 x 128, and in MXFP4");
}

TEST_F(ScaledWeights, ThatNobodyAskedForAreNamed) {
  const models::Model model = llama();
  const std::string name = "model.norm.weight_scale_inv";
  EXPECT_EQ(complaint(model, with(dense(model), name, {floats(name, {1}, {1})})),
            "file: the model has no tensor \"" + name + "\"; is its description that of these weights?");
}

constexpr const char* kExperts = "model.layers.0.mlp.experts.";

/// Two experts' matrix of MXFP4: every number of four bits with exponents around 127.
File mxfp4_of(const std::string& name, std::int64_t rows, std::int64_t columns) {
  File file{bytes_named(kExperts + name + "_blocks", Number::kU8, {2, columns, rows / 32, 16}),
            bytes_named(kExperts + name + "_scales", Number::kU8, {2, columns, rows / 32})};
  for (std::size_t i = 0; i < file[0].bytes.size(); ++i) file[0].bytes[i] = std::byte(i * 37 % 256);
  for (std::size_t i = 0; i < file[1].bytes.size(); ++i) file[1].bytes[i] = std::byte(120 + i % 13);
  return file;
}

/// The same numbers in fp32, inputs first: each block fills 32 rows of a column.
Tensor unpacked(const File& scaled, const std::string& name, std::size_t rows, std::size_t columns) {
  std::vector<float> values(2 * rows * columns);
  for (std::size_t block = 0; block < scaled[1].bytes.size(); ++block) {
    const std::size_t expert = block / (columns * rows / 32), column = block / (rows / 32) % columns,
                      first = block % (rows / 32) * 32;
    const double scale = std::ldexp(1.0, static_cast<int>(scaled[1].bytes[block]) - 127);
    for (std::size_t i = 0; i < 32; ++i) {
      const auto both = static_cast<unsigned>(scaled[0].bytes[block * 16 + i / 2]);
      values[(expert * rows + first + i) * columns + column] =
          static_cast<float>(scale * e2m1(i % 2 == 0 ? both % 16 : both / 16));
    }
  }
  return floats(kExperts + name, {2, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}, values);
}

// Where a file leaves positions open, transformers takes the family's: YaRN with a factor of 32.
TEST(GptOss, SaysHowItsHeadsTurnEvenWithoutScaling) {
  models::Model model = gpt_oss();
  model.rotary = {};
  model.rotary.theta = 150000;
  const nlohmann::json config = hugging_face_config(model);
  EXPECT_EQ(config.at("rope_parameters").at("rope_type"), "default");
  EXPECT_EQ(config.at("rope_parameters").at("rope_theta"), 150000.0);
  EXPECT_EQ(models::model_from_hugging_face(config, "gpt_oss").rotary, model.rotary);
}

TEST_F(ScaledWeights, OfExpertsInMxfp4AreReadAsGptOssIsReleased) {
  const models::Model model = gpt_oss();
  const File up = mxfp4_of("gate_up_proj", 64, 192), down = mxfp4_of("down_proj", 96, 64);
  File scaled = with(dense(model), std::string(kExperts) + "gate_up_proj", up);
  scaled = with(scaled, std::string(kExperts) + "down_proj", down);
  File in_floats = with(dense(model), std::string(kExperts) + "gate_up_proj", {unpacked(up, "gate_up_proj", 64, 192)});
  in_floats = with(in_floats, std::string(kExperts) + "down_proj", {unpacked(down, "down_proj", 96, 64)});
  expect_same(model, scaled, in_floats);
}

TEST_F(ScaledWeights, InMxfp4ThatDoNotFitAreNamed) {
  const models::Model model = gpt_oss();
  const std::string name = std::string(kExperts) + "down_proj", blocks = "\"" + name + "_blocks\"";
  File down = mxfp4_of("down_proj", 96, 64);
  EXPECT_EQ(complaint(model, with(dense(model), name, {down[0]})),
            "file: " + blocks + " is in U8 without its scales, \"" + name + "_scales\"");
  EXPECT_EQ(complaint(model, with(dense(model), name, {down[1]})), "file: it has no tensor \"" + name + "\"");
  down[0].entry.shape = {2, 64, 6, 8};
  EXPECT_EQ(complaint(model, with(dense(model), name, down)),
            "file: " + blocks + " is U8 of the shape [2, 64, 6, 8]; MXFP4 has bytes, U8, in blocks of 16");
  EXPECT_EQ(complaint(model, with(dense(model), name, mxfp4_of("down_proj", 64, 96))),
            "file: " + blocks + " has the shape [2, 64, 96], the model needs [2, 96, 64]");
  down = mxfp4_of("down_proj", 96, 64);
  down[1].bytes[5] = std::byte{255};  // no number: the sixth block is rows 64 to 95 of the second column
  const WholeTensors read_back = read(model, with(dense(model), name, down));
  const std::vector<float>& values = read_back.at("h.0.mlp.experts.c_proj.weight").values;
  EXPECT_TRUE(std::isnan(values[64 * 64 + 1]));
  EXPECT_FALSE(std::isnan(values[63 * 64 + 1]));
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
