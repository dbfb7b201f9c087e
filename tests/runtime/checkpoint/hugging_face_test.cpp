// Names, transposes and joins of Hugging Face files.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/load.h"
#include "runtime/checkpoint/whole.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

models::Model gpt2() {
  return models::model_from_hugging_face(
      {{"model_type", "gpt2"}, {"vocab_size", 7}, {"n_positions", 5}, {"n_embd", 4}, {"n_layer", 2}, {"n_head", 2}},
      "gpt2");
}

models::Model llama(bool tied) {
  return models::model_from_hugging_face({{"model_type", "llama"},
                                          {"vocab_size", 7},
                                          {"max_position_embeddings", 5},
                                          {"hidden_size", 4},
                                          {"num_hidden_layers", 1},
                                          {"num_attention_heads", 2},
                                          {"num_key_value_heads", 1},
                                          {"intermediate_size", 3},
                                          {"tie_word_embeddings", tied}},
                                         "llama");
}

/// Every element another number: tensor number and place.
float value_at(std::size_t tensor, std::int64_t place) {
  return static_cast<float>(100 * static_cast<std::int64_t>(tensor) + place);
}

/// The tensors that a model has, read from a file written by the writer of a map of zeros: shapes without weights.
WholeTensors numbered(WholeTensors tensors) {
  std::size_t number = 0;
  for (auto& [name, tensor] : tensors) {
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] = value_at(number, static_cast<std::int64_t>(i));
    }
    ++number;
  }
  return tensors;
}

WholeTensors tensors_of(const models::Model& model) {
  const std::int64_t h = model.hidden, f = model.ffn_hidden, q = model.heads * model.head_dim,
                     k = model.kv_heads * model.head_dim;
  WholeTensors all;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    all[name] = {rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns))};
  };
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    add(name + ".weight", in, out);
    if (model.linear_bias) add(name + ".bias", 1, out);
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", 1, h);
    if (model.norm == models::Norm::kLayerNorm) add(name + ".bias", 1, h);
  };
  add("wte.weight", model.vocab, h);
  if (model.positions == models::Positions::kLearned) add("wpe.weight", model.max_sequence, h);
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string at = "h." + std::to_string(layer) + ".";
    norm(at + "ln_1");
    linear(at + "attn.c_attn", h, q + 2 * k);
    linear(at + "attn.c_proj", q, h);
    norm(at + "ln_2");
    linear(at + "mlp.c_fc", h, model.gated() ? 2 * f : f);
    linear(at + "mlp.c_proj", f, h);
  }
  norm("ln_f");
  if (!model.tied_embeddings) add("lm_head.weight", model.vocab, h);
  return numbered(std::move(all));
}

void expect_equal(const WholeTensors& a, const WholeTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_EQ(tensor.values, b.at(name).values) << name;
    EXPECT_EQ(tensor.columns, b.at(name).columns) << name;
  }
}

TEST(HuggingFace, FilesComeBackAsTheyWere) {
  for (const models::Model& model : {gpt2(), llama(true), llama(false)}) {
    const Folder folder;
    const WholeTensors tensors = tensors_of(model);
    write_hugging_face(tensors, model, folder.path() / "model.safetensors");
    const SafetensorsFile file(folder.path() / "model.safetensors");
    expect_equal(from_hugging_face(file, model, "file"), tensors);
    models::Model again = models::model_from_hugging_face(hugging_face_config(model), "config");
    again.name = model.name;
    again.source = model.source;
    EXPECT_EQ(again, model);
  }
}

const TensorEntry& entry_of(const SafetensorsFile& file, const std::string& name) {
  for (const TensorEntry& entry : file.header().tensors) {
    if (entry.name == name) return entry;
  }
  throw std::runtime_error("no tensor " + name);
}

// q of llama is (out, in): with 4 inputs its element (o, i) is ours (i, o); k begins after q's 4 columns of 8.
TEST(HuggingFace, LlamaMatricesAreTransposedAndJoined) {
  const models::Model model = llama(false);
  const Folder folder;
  const WholeTensors tensors = tensors_of(model);
  write_hugging_face(tensors, model, folder.path() / "f");
  const SafetensorsFile file(folder.path() / "f");
  const TensorEntry& q = entry_of(file, "model.layers.0.self_attn.q_proj.weight");
  const TensorEntry& k = entry_of(file, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(q.shape, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(k.shape, (std::vector<std::int64_t>{2, 4}));
  const auto& ours = tensors.at("h.0.attn.c_attn.weight");
  const auto at = [&](std::size_t row, std::size_t column) { return ours.values[row * 8 + column]; };
  EXPECT_EQ(element(file.bytes_of(q).data(), 1 * 4 + 3, Number::kF32), at(3, 1));
  EXPECT_EQ(element(file.bytes_of(k).data(), 1 * 4 + 2, Number::kF32), at(2, 4 + 1));
}

/// Rewrites a file tensor by tensor.
void rewrite(const SafetensorsFile& from, const std::filesystem::path& to,
             const std::function<std::vector<std::pair<TensorEntry, std::vector<std::byte>>>(
                 std::vector<std::pair<TensorEntry, std::vector<std::byte>>>)>& change) {
  std::vector<std::pair<TensorEntry, std::vector<std::byte>>> tensors;
  for (const TensorEntry& entry : from.header().tensors) {
    const auto bytes = from.bytes_of(entry);
    tensors.emplace_back(entry, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  tensors = change(std::move(tensors));
  std::vector<TensorEntry> entries;
  for (const auto& [entry, bytes] : tensors) entries.push_back(entry);
  SafetensorsWriter writer(to, entries, {});
  for (const auto& [entry, bytes] : tensors) writer.write(bytes);
  writer.finish();
}

class HuggingFaceFiles : public ::testing::Test {
 protected:
  std::filesystem::path changed(const models::Model& model, const auto& change) {
    write_hugging_face(tensors_of(model), model, folder_.path() / "first");
    std::filesystem::remove(folder_.path() / "second");
    rewrite(SafetensorsFile(folder_.path() / "first"), folder_.path() / "second", change);
    return folder_.path() / "second";
  }
  std::string complaint(const models::Model& model, const auto& change) {
    try {
      from_hugging_face(SafetensorsFile(changed(model, change)), model, "file");
    } catch (const base::Failure& failure) {
      return failure.what();
    }
    return "";
  }
  Folder folder_;
};

// q, k and v under one another are what some models keep as qkv_proj: (out, in) rows joined.
TEST_F(HuggingFaceFiles, FusedMatricesAreRead) {
  const models::Model model = llama(true);
  const auto file = changed(model, [](auto tensors) {
    std::vector<std::pair<TensorEntry, std::vector<std::byte>>> fused;
    for (auto& [entry, bytes] : tensors) {
      const auto join = [&](const char* first, const char* next, const char* name) {
        const std::string at = "model.layers.0.";
        if (entry.name == at + first) entry.name = at + name;
        if (entry.name != at + next) return false;
        fused.back().first.shape[0] += entry.shape[0];
        fused.back().second.insert(fused.back().second.end(), bytes.begin(), bytes.end());
        return true;
      };
      const bool joined = join("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.qkv_proj.weight") ||
                          join("-", "self_attn.v_proj.weight", "-") ||
                          join("mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.gate_up_proj.weight");
      if (!joined) fused.emplace_back(entry, bytes);
    }
    return fused;
  });
  expect_equal(from_hugging_face(SafetensorsFile(file), model, "file"), tensors_of(model));
}

TEST_F(HuggingFaceFiles, OlderGpt2FilesAreReadWithTheirMasksAndTiedHead) {
  const models::Model model = gpt2();
  const auto file = changed(model, [](auto tensors) {
    auto more = tensors;
    for (auto& [entry, bytes] : more) entry.name = entry.name.substr(std::string("transformer.").size());
    more.push_back(more.front());
    more.back().first.name = "lm_head.weight";
    more.push_back({{.name = "h.0.attn.bias", .number = Number::kU8, .shape = {1}}, {std::byte{1}}});
    return more;
  });
  expect_equal(from_hugging_face(SafetensorsFile(file), model, "file"), tensors_of(model));
}

TEST_F(HuggingFaceFiles, WhatDoesNotFitIsNamed) {
  const auto drop = [](auto tensors) {
    tensors.erase(tensors.begin());
    return tensors;
  };
  EXPECT_NE(complaint(gpt2(), drop).find("file: it has no tensor \"transformer.wte.weight\""), std::string::npos);
  const auto extra = [](auto tensors) {
    tensors.push_back(tensors.back());
    tensors.back().first.name = "transformer.h.9.ln_1.weight";
    return tensors;
  };
  EXPECT_NE(complaint(gpt2(), extra).find("the model has no tensor \"transformer.h.9.ln_1.weight\""), std::string::npos)
      << complaint(gpt2(), extra);
  const auto turned = [](auto tensors) {
    std::swap(tensors.front().first.shape[0], tensors.front().first.shape[1]);
    return tensors;
  };
  EXPECT_NE(complaint(gpt2(), turned).find("has the shape [4, 7], the model needs [7, 4]"), std::string::npos)
      << complaint(gpt2(), turned);
  models::Model falcon = gpt2();
  falcon.parallel_block = true;
  EXPECT_THROW(write_hugging_face({}, falcon, folder_.path() / "x"), base::Failure);
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
