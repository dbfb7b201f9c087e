// Small cases that PyTorch and transformers once computed, replayed without them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/load.h"
#include "runtime/checkpoint/whole.h"
#include "tests/oracle/replay.h"

namespace trivium::oracle {
namespace {

constexpr double kTolerance = 1e-4;  // relative, fp32

void expect_agreement(const std::string& name) {
  const Agreement a = replay(std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/oracle/golden" / name);
  EXPECT_LE(a.logits, kTolerance);
  EXPECT_LE(a.gradients, kTolerance) << a.worst_gradient;
  EXPECT_LE(a.gradient_norms, kTolerance);
  EXPECT_LE(a.losses, kTolerance);
  EXPECT_LE(a.split_losses, kTolerance);
  EXPECT_LE(a.kept, 1e-5);
}

/// Read as ours and written again, the file has the tensors that transformers wrote: it can read what we write.
void expect_same_file(const std::string& name) {
  namespace checkpoint = runtime::checkpoint;
  const auto folder = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/oracle/golden" / name;
  const auto again = std::filesystem::path(::testing::TempDir()) / ("oracle-" + name + ".safetensors");
  const models::Model model = model_of(folder);
  const checkpoint::SafetensorsFile theirs(folder / "model.safetensors");
  checkpoint::write_hugging_face(checkpoint::from_hugging_face(theirs, model, name), model, again);
  const checkpoint::SafetensorsFile ours(again);
  std::filesystem::remove(again);
  const auto by_name = [](const checkpoint::SafetensorsFile& file) {
    std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<std::byte>>> tensors;
    for (const checkpoint::TensorEntry& entry : file.header().tensors) {
      const auto bytes = file.bytes_of(entry);
      tensors[entry.name] = {entry.shape, {bytes.begin(), bytes.end()}};
    }
    return tensors;
  };
  EXPECT_TRUE(by_name(ours) == by_name(theirs)) << name;
}

/// Weights that are stored less 1 come back but for the rounding of the sum.
void expect_same_file_but_for_rounding(const std::string& name) {
  namespace checkpoint = runtime::checkpoint;
  const auto folder = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/oracle/golden" / name;
  const auto again = std::filesystem::path(::testing::TempDir()) / ("oracle-" + name + ".safetensors");
  const models::Model model = model_of(folder);
  const checkpoint::SafetensorsFile theirs(folder / "model.safetensors");
  const checkpoint::WholeTensors read = checkpoint::from_hugging_face(theirs, model, name);
  checkpoint::write_hugging_face(read, model, again);
  const checkpoint::SafetensorsFile ours(again);
  std::filesystem::remove(again);
  ASSERT_EQ(ours.header().tensors.size(), theirs.header().tensors.size());
  const checkpoint::WholeTensors twice = checkpoint::from_hugging_face(ours, model, name);
  for (const auto& [tensor, values] : read) {
    const auto& other = twice.at(tensor).values;
    ASSERT_EQ(other.size(), values.values.size()) << tensor;
    for (std::size_t i = 0; i < other.size(); ++i) ASSERT_NEAR(other[i], values.values[i], 1e-6) << tensor;
  }
}

TEST(Oracle, FilesAreWrittenAsTransformersWritesThem) {
  expect_same_file("gpt2");
  expect_same_file("gpt2-exact");
  expect_same_file("llama");
  expect_same_file("llama3");
  expect_same_file("qwen3");
  expect_same_file("qwen3-windows");
  expect_same_file("gpt-oss");
  for (const char* mixture : {"mixtral", "qwen3-moe", "deepseek-v2", "deepseek-v3", "glm4-moe", "deepseek-v3-mtp",
                              "glm4-moe-mtp", "llama4", "llama4-dense", "grok-1"}) {
    expect_same_file(mixture);
  }
  expect_same_file_but_for_rounding("nemotron");
  expect_same_file_but_for_rounding("gemma2");
  expect_same_file_but_for_rounding("gemma3");
}

TEST(Oracle, Gpt2AgreesWithPyTorch) { expect_agreement("gpt2"); }
TEST(Oracle, LlamaAgreesWithPyTorch) { expect_agreement("llama"); }
// Query, key and value in one tensor of the file, gate and up in another.
TEST(Oracle, Phi3AgreesWithPyTorch) { expect_agreement("phi3"); }
// LayerNorm whose weights are stored less 1, half of each head turns, squared ReLU.
TEST(Oracle, NemotronAgreesWithPyTorch) { expect_agreement("nemotron"); }
// Exact GELU, an epsilon of 1e-3, scores that are not scaled.
TEST(Oracle, Gpt2WithOtherFormulasAgreesWithPyTorch) { expect_agreement("gpt2-exact"); }
// Frequencies scaled as Llama 3.1's, theta 500.
TEST(Oracle, Llama3AgreesWithPyTorch) { expect_agreement("llama3"); }

// No token is dropped; weights of two of four experts add up to 1.
TEST(Oracle, MixtralAgreesWithPyTorch) { expect_agreement("mixtral"); }
// Three of eight experts, weighed by their share among all.
TEST(Oracle, Qwen3MoeAgreesWithPyTorch) { expect_agreement("qwen3-moe"); }
// Latent attention without a latent of queries; experts of the two best of four groups; a dense layer first.
TEST(Oracle, DeepSeekV2AgreesWithPyTorch) { expect_agreement("deepseek-v2"); }
// Latents of queries too, YaRN with a factor on scores, sigmoids, a bias that chooses, groups by their best two.
TEST(Oracle, DeepSeekV3AgreesWithPyTorch) { expect_agreement("deepseek-v3"); }
// V3's experts with grouped keys with biases and norms, half of whose heads' components are rotated.
TEST(Oracle, Glm4MoeAgreesWithPyTorch) { expect_agreement("glm4-moe"); }

// A module after the layers, whose loss weighs 0.3, and two that weigh 0.15 each, written in PyTorch after the paper.
TEST(Oracle, AModuleOfDeepSeekV3AgreesWithPyTorch) { expect_agreement("deepseek-v3-mtp"); }
TEST(Oracle, TwoModulesOfGlm4MoeAgreeWithPyTorch) { expect_agreement("glm4-moe-mtp"); }

// Chunks and layers without positions in turn, norms of heads without weights, gates on what experts read.
TEST(Oracle, Llama4AgreesWithPyTorch) { expect_agreement("llama4"); }
// Every other layer dense, heads not normalised.
TEST(Oracle, Llama4WithDenseLayersAgreesWithPyTorch) { expect_agreement("llama4-dense"); }

// As the release computes it, written in PyTorch for this case: transformers has no Grok-1.
TEST(Oracle, Grok1AgreesWithPyTorch) { expect_agreement("grok-1"); }

// Norms of heads that are wider than hidden / heads.
TEST(Oracle, Qwen3AgreesWithPyTorch) { expect_agreement("qwen3"); }

// The second of two layers sees five keys of sixteen.
TEST(Oracle, WindowsAgreeWithPyTorch) { expect_agreement("qwen3-windows"); }

// Sinks, windows in every other layer, biases of experts, clamped SwiGLU.
TEST(Oracle, GptOssAgreesWithPyTorch) { expect_agreement("gpt-oss"); }

// Soft caps, four norms a layer, scaled embeddings.
TEST(Oracle, Gemma2AgreesWithPyTorch) { expect_agreement("gemma2"); }
// Norms of heads stored less 1, frequencies of their own in layers with windows.
TEST(Oracle, Gemma3AgreesWithPyTorch) { expect_agreement("gemma3"); }

/// The description that is written next to the weights says the same model.
void expect_same_config(const std::string& name) {
  const auto folder = std::filesystem::path(TRIVIUM_SOURCE_DIR) / "tests/oracle/golden" / name;
  models::Model model = model_of(folder);
  models::HuggingFaceModel read = models::read_hugging_face(runtime::checkpoint::hugging_face_config(model), name);
  models::Model again = models::with_modules(std::move(read.model), read.modules);
  again.name = model.name, again.source = model.source;
  EXPECT_NEAR(again.attention_scale, model.attention_scale, 1e-12);  // YaRN's is written as what gives it
  again.attention_scale = model.attention_scale;
  EXPECT_EQ(again, model) << name;
}

TEST(Oracle, BiasesOfQueriesKeysAndValuesAloneAreQwen2s) {
  const nlohmann::json config = runtime::checkpoint::hugging_face_config(models::load_model("qwen2.5-7b"));
  EXPECT_EQ(config.at("model_type"), "qwen2");
  EXPECT_EQ(config.at("architectures").front(), "Qwen2ForCausalLM");
}

TEST(Oracle, WhatIsComputedIsWrittenBesideTheWeights) {
  for (const char* name :
       {"gpt2",        "gpt2-exact", "llama",           "llama3",       "qwen3",   "qwen3-windows", "phi3",
        "nemotron",    "gpt-oss",    "gemma2",          "gemma3",       "mixtral", "qwen3-moe",     "deepseek-v2",
        "deepseek-v3", "glm4-moe",   "deepseek-v3-mtp", "glm4-moe-mtp", "llama4",  "llama4-dense",  "grok-1"}) {
    expect_same_config(name);
  }
}

}  // namespace
}  // namespace trivium::oracle
