// Modules of multi-token prediction in Hugging Face's files, and files in shards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "models/load.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/checkpoint/whole.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// Three layers, the first dense, with two experts in the others.
program::Job with_modules_of(const char* family, int depth) {
  program::Job job = small_job({});
  models::Model& m = job.model;
  m.layers = 3;
  m.norm = models::Norm::kRmsNorm;
  m.positions = models::Positions::kRotary;
  m.activation = models::Activation::kSwiglu;
  m.linear_bias = m.qkv_bias = m.tied_embeddings = false;
  models::Experts e{.count = 2, .top_k = 2};
  e.dropless = true, e.imbalance = 2;
  e.scores = models::Scores::kSigmoid;
  e.correction_bias = true;
  e.shared_hidden = m.ffn_hidden, e.dense_layers = 1, e.dense_hidden = 2 * m.ffn_hidden;
  if (family == std::string("deepseek_v2")) {
    e.scores = models::Scores::kSoftmax;
    e.correction_bias = e.normalised = false;
  }
  m.experts = e;
  if (family != std::string("glm4_moe")) {
    m.latent = models::Latent{20, 12, 6, 4, 8};
    m.head_dim = 10;
    m.kv_heads = m.heads;
  }
  if (depth > 0) m.mtp = models::MultiToken{.depth = depth, .loss_scale = 0.3};
  return job;
}

/// What a training of one step leaves.
WholeTensors trained_weights(const program::Job& job) {
  const Folder folder;
  train(job, folder.path(), 1);
  return whole_values(open(newest_or_throw(folder.path()), true).tensors);
}

std::vector<std::string> names_in(const std::vector<SafetensorsFile>& files, const std::string& beginning) {
  std::vector<std::string> names;
  for (const SafetensorsFile& file : files) {
    for (const TensorEntry& entry : file.header().tensors) {
      if (entry.name.starts_with(beginning)) names.push_back(entry.name.substr(beginning.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

void expect_same_weights(const WholeTensors& a, const WholeTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_EQ(tensor.values, b.at(name).values) << name;
    EXPECT_EQ(tensor.rows, b.at(name).rows) << name;
  }
}

std::string refusal_of(const auto& work) {
  try {
    work();
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

class Modules : public ::testing::Test {
 protected:
  Modules() : job_(with_modules_of("deepseek_v3", 1)), weights_(trained_weights(job_)) {
    write_hugging_face(weights_, job_.model, at("model.safetensors"));
  }
  fs::path at(const std::string& name) const { return folder_.path() / name; }

  /// Rewrites the file without one tensor, or with it changed.
  void rewrite(const std::string& name, const std::function<void(TensorEntry&, std::vector<std::byte>&)>& change) {
    const SafetensorsFile file(at("model.safetensors"));
    std::vector<TensorEntry> entries;
    std::vector<std::vector<std::byte>> contents;
    for (const TensorEntry& entry : file.header().tensors) {
      const auto bytes = file.bytes_of(entry);
      TensorEntry changed = entry;
      std::vector<std::byte> content(bytes.begin(), bytes.end());
      if (entry.name == name) change(changed, content);
      if (content.empty()) continue;
      entries.push_back(changed);
      contents.push_back(content);
    }
    fs::remove(at("changed.safetensors"));
    SafetensorsWriter writer(at("changed.safetensors"), entries, {});
    for (const auto& content : contents) writer.write(content);
    writer.finish();
  }
  WholeTensors read(const models::Model& model, const char* name = "changed.safetensors") const {
    return from_hugging_face(open_weights(at(name)), model, name);
  }
  void drop(const std::string& name) {
    rewrite(name, [](TensorEntry&, std::vector<std::byte>& bytes) { bytes.clear(); });
  }

  Folder folder_;
  program::Job job_;
  WholeTensors weights_;
};

// model.layers.61 in the index of deepseek-ai/DeepSeek-V3, without the scales of its 8-bit blocks; two of 256 experts.
TEST_F(Modules, OfDeepSeekV3HaveTheReleasedNames) {
  const std::vector<std::string> released = {"eh_proj.weight",
                                             "embed_tokens.weight",
                                             "enorm.weight",
                                             "hnorm.weight",
                                             "input_layernorm.weight",
                                             "mlp.experts.0.down_proj.weight",
                                             "mlp.experts.0.gate_proj.weight",
                                             "mlp.experts.0.up_proj.weight",
                                             "mlp.experts.1.down_proj.weight",
                                             "mlp.experts.1.gate_proj.weight",
                                             "mlp.experts.1.up_proj.weight",
                                             "mlp.gate.e_score_correction_bias",
                                             "mlp.gate.weight",
                                             "mlp.shared_experts.down_proj.weight",
                                             "mlp.shared_experts.gate_proj.weight",
                                             "mlp.shared_experts.up_proj.weight",
                                             "post_attention_layernorm.weight",
                                             "self_attn.kv_a_layernorm.weight",
                                             "self_attn.kv_a_proj_with_mqa.weight",
                                             "self_attn.kv_b_proj.weight",
                                             "self_attn.o_proj.weight",
                                             "self_attn.q_a_layernorm.weight",
                                             "self_attn.q_a_proj.weight",
                                             "self_attn.q_b_proj.weight",
                                             "shared_head.head.weight",
                                             "shared_head.norm.weight"};
  EXPECT_EQ(names_in(open_weights(at("model.safetensors")), "model.layers.3."), released);
  EXPECT_EQ(hugging_face_config(job_.model).at("num_nextn_predict_layers"), 1);
}

// eh_proj is (h, 2h): the embedding's norm meets its first columns, the hidden state's norm the others.
TEST_F(Modules, ReadTheEmbeddingWithTheFirstHalfOfTheirProjection) {
  const SafetensorsFile file(at("model.safetensors"));
  const auto& tensors = file.header().tensors;
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [](const TensorEntry& e) { return e.name == "model.layers.3.eh_proj.weight"; });
  ASSERT_NE(found, tensors.end());
  const std::int64_t h = job_.model.hidden;
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{h, 2 * h}));
  const std::byte* values = file.bytes_of(*found).data();
  const auto ours = [&](const char* name, std::int64_t in, std::int64_t out) {
    return weights_.at(name).values[static_cast<std::size_t>(in * h + out)];
  };
  EXPECT_EQ(element(values, 5 * 2 * h + 3, Number::kF32), ours("h.3.mtp.embedding.weight", 3, 5));
  EXPECT_EQ(element(values, 5 * 2 * h + h + 3, Number::kF32), ours("h.3.mtp.hidden.weight", 3, 5));
}

TEST_F(Modules, ComeBackAsTheyWere) {
  for (const char* family : {"deepseek_v2", "deepseek_v3", "glm4_moe"}) {
    for (const int depth : {1, 2}) {
      SCOPED_TRACE(family);
      const program::Job job = with_modules_of(family, depth);
      const WholeTensors weights = trained_weights(job);
      const Folder folder;
      write_hugging_face(weights, job.model, folder.path() / "model.safetensors", 40'000);
      EXPECT_FALSE(fs::exists(folder.path() / "model.safetensors"));
      const auto files = open_weights(folder.path());
      EXPECT_GT(files.size(), 3U);
      EXPECT_EQ(modules_in(files, job.model.layers), depth);
      expect_same_weights(from_hugging_face(files, job.model, "shards"), weights);
      const nlohmann::json config = hugging_face_config(job.model);
      EXPECT_EQ(config.at("model_type"), family);
      EXPECT_EQ(models::read_hugging_face(config, "config.json").modules, depth);
    }
  }
}

TEST_F(Modules, AreLeftOutOfAModelWithoutThem) {
  models::Model without = job_.model;
  without.mtp.reset();
  WholeTensors expected = weights_;
  std::erase_if(expected, [](const auto& entry) { return entry.first.starts_with("h.3."); });
  expect_same_weights(read(without, "model.safetensors"), expected);
  drop("model.layers.3.eh_proj.weight");  // a layer too many, but no module
  EXPECT_THAT(refusal_of([&] { read(without); }), HasSubstr("the model has no tensor \"model.layers.3.embed_tokens"));
}

TEST_F(Modules, MayLackTheMatricesThatTheyShare) {
  drop("model.layers.3.shared_head.head.weight");
  expect_same_weights(read(job_.model), weights_);
}

TEST_F(Modules, WithAMatrixOfTheirOwnAreRefused) {
  for (const char* name : {"model.layers.3.embed_tokens.weight", "model.layers.3.shared_head.head.weight"}) {
    rewrite(name, [](TensorEntry&, std::vector<std::byte>& bytes) { bytes.back() ^= std::byte{1}; });
    EXPECT_THAT(refusal_of([&] { read(job_.model); }),
                HasSubstr("changed.safetensors: \"" + std::string(name) + "\" is not the model's own matrix"));
  }
}

TEST_F(Modules, ThatDoNotFitAreNamed) {
  const auto refusal = [&] { return refusal_of([&] { read(job_.model); }); };
  for (const char* name : {"eh_proj.weight", "enorm.weight", "hnorm.weight", "shared_head.norm.weight",
                           "input_layernorm.weight", "mlp.experts.1.up_proj.weight"}) {
    drop("model.layers.3." + std::string(name));
    EXPECT_THAT(refusal(), HasSubstr("it has no tensor \"model.layers.3." + std::string(name)));
  }
  const std::int64_t h = job_.model.hidden;
  rewrite("model.layers.3.eh_proj.weight",
          [](TensorEntry& entry, auto&) { std::swap(entry.shape[0], entry.shape[1]); });
  EXPECT_THAT(refusal(), HasSubstr(fmt::format("\"model.layers.3.eh_proj.weight\" has the shape [{}, {}], the model "
                                               "needs [{}, {}]",
                                               2 * h, h, h, 2 * h)));
  models::Model two = job_.model;
  two.mtp->depth = 2;
  EXPECT_THAT(refusal_of([&] { read(two, "model.safetensors"); }),
              HasSubstr("it has no tensor \"model.layers.4.enorm.weight\""));
}

TEST_F(Modules, HaveNoNamesInOtherFamilies) {
  models::Model llama = small_job({}).model;
  llama.norm = models::Norm::kRmsNorm;
  llama.positions = models::Positions::kRotary;
  llama.activation = models::Activation::kSwiglu;
  llama.linear_bias = llama.qkv_bias = false;
  llama.mtp.emplace();
  EXPECT_THAT(refusal_of([&] { write_hugging_face({}, llama, at("llama.safetensors")); }),
              HasSubstr("names in files of DeepSeek and GLM-4.5 alone"));
}

TEST_F(Modules, GoOnWithAnotherWeightOfTheirLoss) {
  const Folder folder;
  train(job_, folder.path(), 1);
  const Description saved = read_description(newest_or_throw(folder.path()), true);
  program::Job lower = job_;
  lower.model.mtp->loss_scale = 0.1;
  EXPECT_EQ(cannot_continue(saved, lower, saved.corpus_tokens), "");
  lower.model.mtp->depth = 2;
  EXPECT_THAT(cannot_continue(saved, lower, saved.corpus_tokens), HasSubstr("it holds another model"));
  lower.model.mtp.reset();
  EXPECT_THAT(cannot_continue(saved, lower, saved.corpus_tokens), HasSubstr("it holds another model"));
}

class Shards : public Modules {
 protected:
  Shards() {
    fs::remove(at("model.safetensors"));
    write_hugging_face(weights_, job_.model, at("model.safetensors"), 100'000);
    index_ = base::read_json_file(at("model.safetensors.index.json"));
  }
  std::string refusal_with(const nlohmann::json& index) {
    std::ofstream(at("model.safetensors.index.json")) << index;
    return refusal_of([&] { from_hugging_face(open_weights(folder_.path()), job_.model, "shards"); });
  }
  nlohmann::json index_;
};

TEST_F(Shards, AreNamedAndIndexedAsTransformersDoes) {
  std::int64_t bytes = 0;
  std::size_t count = 0;
  const std::vector<SafetensorsFile> files = open_weights(at("model.safetensors.index.json"));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
    std::int64_t of_shard = 0;
    for (const TensorEntry& entry : files[i].header().tensors) {
      EXPECT_EQ(index_.at("weight_map").at(entry.name), name);
      of_shard += entry.end - entry.begin;
      ++count;
    }
    EXPECT_TRUE(of_shard <= 100'000 || files[i].header().tensors.size() == 1) << name;
    bytes += of_shard;
  }
  EXPECT_EQ(index_.at("weight_map").size(), count);
  EXPECT_EQ(index_.at("metadata").at("total_size"), bytes);
}

TEST_F(Shards, ThatDoNotMatchTheirIndexAreRefused) {
  EXPECT_EQ(refusal_with(index_), "");
  nlohmann::json other = index_;
  other["weight_map"]["lm_head.weight"] = index_["weight_map"]["model.embed_tokens.weight"];
  EXPECT_THAT(refusal_with(other), HasSubstr("/weight_map/lm_head.weight"));
  EXPECT_THAT(refusal_with(other), HasSubstr("has no such tensor"));
  other["weight_map"]["lm_head.weight"] = "../model.safetensors";
  EXPECT_THAT(refusal_with(other), HasSubstr("must be the name of a .safetensors file next to the index"));
  other["weight_map"]["lm_head.weight"] = "gone.safetensors";
  EXPECT_THAT(refusal_with(other), HasSubstr("gone.safetensors"));
  EXPECT_THAT(refusal_with({{"weight_map", nlohmann::json::object()}}), HasSubstr("names no tensor"));
  EXPECT_THAT(refusal_with({{"weights", 1}}), HasSubstr("weight_map"));
  nlohmann::json fewer = index_;
  std::erase_if(fewer["weight_map"].get_ref<nlohmann::json::object_t&>(),
                [&](const auto& entry) { return entry.second == index_["weight_map"]["model.embed_tokens.weight"]; });
  EXPECT_THAT(refusal_with(fewer), HasSubstr("it has no tensor \"model.embed_tokens.weight\""));
}

TEST_F(Shards, WithATensorTwiceAreRefused) {
  const std::string first = index_["weight_map"]["model.embed_tokens.weight"];
  fs::copy_file(at(first), at("again.safetensors"));
  nlohmann::json twice = index_;
  twice["weight_map"]["model.embed_tokens.weight"] = "again.safetensors";
  EXPECT_THAT(refusal_with(twice), HasSubstr("is in two of its shards"));
}

TEST_F(Shards, AreNotWrittenNextToAFileOfAllWeights) {
  std::ofstream(at("model.safetensors")) << "x";
  EXPECT_THAT(refusal_of([&] { write_hugging_face(weights_, job_.model, at("model.safetensors"), 100'000); }),
              HasSubstr("would be read instead of shards"));
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
