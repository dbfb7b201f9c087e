// Adapters in the form of PEFT.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/weight_files.h"
#include "runtime/checkpoint/whole.h"
#include "tests/runtime/checkpoint/training.h"

namespace trivium::runtime::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

enum class Family { kGpt2, kLlama, kMixtral, kDeepSeek };

/// The first of the layers is dense, the other a mixture with an MLP that all tokens visit.
void add_deepseek(models::Model& m) {
  m.kv_heads = m.heads;
  m.tied_embeddings = false;
  m.latent = models::Latent{6, 5, 3, 4, 6};
  m.head_dim = 7;
  models::Experts e{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  e.scores = models::Scores::kSigmoid;
  e.correction_bias = true, e.scale = 2.5;
  e.groups = 2, e.top_groups = 1, e.group_best = 2;
  e.shared_hidden = 2 * m.ffn_hidden, e.dense_layers = 1, e.dense_hidden = 3 * m.ffn_hidden;
  m.experts = e;
}

program::Job adapted_job(Family family) {
  program::Job job = small_job({});
  models::Model& m = job.model;
  m.layers = 2;
  job.training.lora = {.rank = 2, .alpha = 6};
  if (family == Family::kGpt2) return job;
  m.norm = models::Norm::kRmsNorm;
  m.positions = models::Positions::kRotary;
  m.activation = models::Activation::kSwiglu;
  m.linear_bias = m.qkv_bias = false;
  m.kv_heads = m.heads / 2;
  if (family == Family::kMixtral) m.experts = models::Experts{.count = 4, .top_k = 2, .dropless = true, .imbalance = 4};
  if (family == Family::kDeepSeek) add_deepseek(m);
  return job;
}

/// What a training of two steps leaves: B is no longer 0.
WholeTensors weights_and_adapters(const program::Job& job) {
  const Folder folder;
  train(job, folder.path(), 2);
  return whole_values(open(newest_or_throw(folder.path()), true).tensors);
}

/// A tensor of theirs: rows x columns.
struct Theirs {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using AdapterFile = std::map<std::string, Theirs>;

AdapterFile read_file(const fs::path& path) {
  AdapterFile all;
  const SafetensorsFile file(path);
  for (const TensorEntry& entry : file.header().tensors) {
    Theirs& tensor = all[entry.name];
    tensor.shape = entry.shape;
    for (std::int64_t i = 0; i < entry.shape[0] * entry.shape[1]; ++i) {
      tensor.values.push_back(static_cast<float>(element(file.bytes_of(entry).data(), i, entry.number)));
    }
  }
  return all;
}

void write_file(const fs::path& path, const AdapterFile& tensors) {
  fs::remove(path);
  std::vector<TensorEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    entries.push_back({.name = name, .number = Number::kF32, .shape = tensor.shape});
  }
  SafetensorsWriter writer(path, entries, {});
  for (const auto& [name, tensor] : tensors) writer.write(std::as_bytes(std::span(tensor.values)));
  writer.finish();
}

class Peft : public ::testing::TestWithParam<Family> {
 protected:
  explicit Peft(Family family)
      : job_(adapted_job(family)), tensors_(weights_and_adapters(job_)), file_(folder_.path() / kAdapterWeights) {
    write_adapters(tensors_, job_.model, job_.training.lora, file_);
    config_ = base::read_json_file(folder_.path() / "adapter_config.json");
  }
  Peft() : Peft(GetParam()) {}

  void write_config() const { std::ofstream(folder_.path() / "adapter_config.json") << config_; }
  std::string refusal() const {
    try {
      read_adapters(folder_.path(), job_.model);
    } catch (const base::Failure& failure) {
      return failure.what();
    }
    return "";
  }

  Folder folder_;
  program::Job job_;
  WholeTensors tensors_;
  fs::path file_;
  nlohmann::json config_;
};

TEST_P(Peft, AdaptersComeBackAsTheyWere) {
  const Adapters back = read_adapters(folder_.path(), job_.model);
  EXPECT_EQ(back.lora, job_.training.lora);
  std::size_t adapters = 0;
  for (const auto& [name, tensor] : tensors_) {
    if (name.find(".lora_") == std::string::npos) continue;
    ++adapters;
    ASSERT_TRUE(back.tensors.contains(name)) << name;
    EXPECT_EQ(back.tensors.at(name).values, tensor.values) << name;
    EXPECT_EQ(back.tensors.at(name).rows, tensor.rows) << name;
  }
  // Two layers, four targets, A and B. Latents have three adapters for one of queries, keys and values, a mixture with
  // an MLP that all tokens visit two for each of fc1 and fc2.
  EXPECT_EQ(adapters, GetParam() == Family::kDeepSeek ? 2U * (2 * 3 + 1 + 1 + 2 + 4) : 16U);
  EXPECT_EQ(back.tensors.size(), adapters);
}

INSTANTIATE_TEST_SUITE_P(Families, Peft,
                         ::testing::Values(Family::kGpt2, Family::kLlama, Family::kMixtral, Family::kDeepSeek));

class PeftOfGpt2 : public Peft {
 protected:
  PeftOfGpt2() : Peft(Family::kGpt2) {}
};
class PeftOfLlama : public Peft {
 protected:
  PeftOfLlama() : Peft(Family::kLlama) {}
  static std::string name(const std::string& module, char factor) {
    return fmt::format("base_model.model.model.layers.1.{}.lora_{}.weight", module, factor);
  }
};

// Both kinds of layers have a c_proj: where attention's alone is adapted, "c_proj" would adapt the other, too.
TEST_F(PeftOfGpt2, TargetsAreNamedSoThatOthersAreNotMeant) {
  EXPECT_EQ(config_.at("target_modules"), nlohmann::json({"c_attn", "c_fc", "c_proj"}));
  EXPECT_EQ(config_.at("fan_in_fan_out"), true);
  program::Job job = adapted_job(Family::kGpt2);
  job.training.lora.fc1 = job.training.lora.fc2 = false;
  write_adapters(weights_and_adapters(job), job.model, job.training.lora, file_);
  const nlohmann::json config = base::read_json_file(folder_.path() / "adapter_config.json");
  EXPECT_EQ(config.at("target_modules"), nlohmann::json({"attn.c_proj", "c_attn"}));
  EXPECT_EQ(read_adapters(file_, job.model).lora, job.training.lora);
}

// A is (rank, in) and B (out, rank); keys follow the queries' columns in ours.
TEST_F(PeftOfLlama, FactorsAreTransposedAndTakenApart) {
  const AdapterFile file = read_file(file_);
  EXPECT_EQ(file.size(), 2U * 7 * 2);
  const models::Model& m = job_.model;
  const std::int64_t h = m.hidden, q = m.heads * m.head_dim, k = m.kv_heads * m.head_dim;
  const WholeTensor &a = tensors_.at("h.1.attn.c_attn.lora_a"), &b = tensors_.at("h.1.attn.c_attn.lora_b");
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    const Theirs& theirs = file.at(name("self_attn." + std::string(part), 'A'));
    EXPECT_THAT(theirs.shape, ElementsAre(2, h));
    EXPECT_EQ(theirs.values[static_cast<std::size_t>(1 * h + 3)], a.values[3 * 2 + 1]);
  }
  const Theirs& keys = file.at(name("self_attn.k_proj", 'B'));
  EXPECT_THAT(keys.shape, ElementsAre(k, 2));
  EXPECT_EQ(keys.values[5 * 2 + 1], b.values[static_cast<std::size_t>(1 * (q + 2 * k) + q + 5)]);
  EXPECT_NE(keys.values[5 * 2 + 1], 0);
  EXPECT_EQ(config_.at("target_modules"),
            nlohmann::json({"down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"}));
  EXPECT_EQ(config_.at("r"), 2);
  EXPECT_EQ(config_.at("lora_alpha"), 6);
}

class PeftOfMixtral : public Peft {
 protected:
  PeftOfMixtral() : Peft(Family::kMixtral) {}
  static std::string name(int expert, const char* matrix, char factor) {
    return fmt::format("base_model.model.model.layers.1.block_sparse_moe.experts.{}.{}.lora_{}.weight", expert, matrix,
                       factor);
  }
};

// Ours lie one under the other: of expert 2 of A (4 in, rank) the rows from 2 in on, of B (4 rank, out) from 2 rank on.
TEST_F(PeftOfMixtral, ExpertsHaveAdaptersOfTheirOwn) {
  const AdapterFile file = read_file(file_);
  EXPECT_EQ(file.size(), 2U * (4 + 4 * 3) * 2);
  const std::int64_t h = job_.model.hidden, ffn = job_.model.ffn_hidden;
  const WholeTensor &a = tensors_.at("h.1.mlp.experts.c_fc.lora_a"), &b = tensors_.at("h.1.mlp.experts.c_fc.lora_b");
  EXPECT_THAT(std::vector({a.rows, a.columns, b.rows, b.columns}), ElementsAre(4 * h, 2, 4 * 2, 2 * ffn));
  const Theirs &up_a = file.at(name(2, "w3", 'A')), &up_b = file.at(name(2, "w3", 'B'));
  EXPECT_THAT(up_a.shape, ElementsAre(2, h));
  EXPECT_THAT(up_b.shape, ElementsAre(ffn, 2));
  EXPECT_EQ(up_a.values[static_cast<std::size_t>(1 * h + 3)], a.values[static_cast<std::size_t>((2 * h + 3) * 2 + 1)]);
  EXPECT_EQ(up_b.values[5 * 2 + 1], b.values[static_cast<std::size_t>((2 * 2 + 1) * 2 * ffn + ffn + 5)]);
  EXPECT_NE(up_b.values[5 * 2 + 1], 0);
  EXPECT_THAT(file.at(name(3, "w2", 'A')).shape, ElementsAre(2, ffn));
}

TEST_F(PeftOfMixtral, AnExpertWithoutAdaptersIsNamed) {
  AdapterFile file = read_file(file_);
  for (const char* matrix : {"w1", "w3"}) {
    for (const char factor : {'A', 'B'}) file.erase(name(2, matrix, factor));
  }
  write_file(file_, file);
  EXPECT_THAT(refusal(), HasSubstr("experts.2.w…\", though other layers or matrices of its target"));
}

// What experts gain is the product of their own factors.
TEST_F(PeftOfMixtral, AreAddedToTheirOwnWeights) {
  WholeTensors merged = tensors_;
  merge_adapters(merged, job_.training.lora.scale());
  const std::int64_t h = job_.model.hidden, all = 2 * job_.model.ffn_hidden;
  const WholeTensor &a = tensors_.at("h.1.mlp.experts.c_fc.lora_a"), &b = tensors_.at("h.1.mlp.experts.c_fc.lora_b");
  const std::string weight = "h.1.mlp.experts.c_fc.weight";
  for (const std::int64_t expert : {0, 3}) {
    const std::int64_t row = expert * h + 4, column = 7, at = row * all + column;
    double sum = 0;
    for (std::int64_t r = 0; r < 2; ++r) {
      sum += static_cast<double>(a.values[static_cast<std::size_t>(row * 2 + r)]) *
             b.values[static_cast<std::size_t>((expert * 2 + r) * all + column)];
    }
    EXPECT_NE(sum, 0);
    EXPECT_EQ(merged.at(weight).values[static_cast<std::size_t>(at)],
              static_cast<float>(tensors_.at(weight).values[static_cast<std::size_t>(at)] + 3 * sum));
  }
}

// PEFT trains q_proj and v_proj unless told otherwise, each with an A of its own.
TEST_F(PeftOfLlama, AdaptersOfTheirOwnForQueriesAndValuesAreReadSideBySide) {
  AdapterFile file;
  for (auto& [name, tensor] : read_file(file_)) {
    if (name.find("q_proj") == std::string::npos && name.find("v_proj") == std::string::npos) continue;
    const bool values = name.find("v_proj") != std::string::npos;
    for (float& value : tensor.values) value *= values ? 2 : 1;
    file[name] = tensor;
  }
  write_file(file_, file);
  config_["use_rslora"] = true;
  write_config();
  const Adapters read = read_adapters(folder_.path(), job_.model);
  EXPECT_EQ(read.lora.rank, 4);
  EXPECT_TRUE(read.lora.qkv && !read.lora.projection && !read.lora.fc1 && !read.lora.fc2);
  EXPECT_NEAR(read.lora.scale(), 6 / std::sqrt(2.0), 1e-12);
  // Their products with the hidden state: of column out of q, the sum over ranks of A[rank, in] B[out, rank].
  const models::Model& m = job_.model;
  const std::int64_t h = m.hidden, q = m.heads * m.head_dim, k = m.kv_heads * m.head_dim, all = q + 2 * k;
  const WholeTensor &a = read.tensors.at("h.1.attn.c_attn.lora_a"), &b = read.tensors.at("h.1.attn.c_attn.lora_b");
  const auto ours = [&](std::int64_t in, std::int64_t column) {
    double sum = 0;
    for (std::int64_t r = 0; r < 4; ++r) {
      sum += static_cast<double>(a.values[static_cast<std::size_t>(in * 4 + r)]) *
             b.values[static_cast<std::size_t>(r * all + column)];
    }
    return sum;
  };
  const auto theirs = [&](const std::string& module, std::int64_t in, std::int64_t out) {
    const Theirs &first = file.at(name(module, 'A')), &second = file.at(name(module, 'B'));
    double sum = 0;
    for (std::int64_t r = 0; r < 2; ++r) {
      sum += static_cast<double>(first.values[static_cast<std::size_t>(r * h + in)]) *
             second.values[static_cast<std::size_t>(out * 2 + r)];
    }
    return sum;
  };
  for (const std::int64_t in : {std::int64_t{0}, std::int64_t{3}, h - 1}) {
    EXPECT_EQ(ours(in, 5), theirs("self_attn.q_proj", in, 5));
    EXPECT_EQ(ours(in, q + 1), 0);
    EXPECT_EQ(ours(in, q + k + 2), theirs("self_attn.v_proj", in, 2));
    EXPECT_NE(ours(in, q + k + 2), 0);
  }
}

TEST_F(PeftOfLlama, WhatDoesNotFitIsNamed) {
  const AdapterFile whole = read_file(file_);
  const auto with = [&](const auto& change) {
    AdapterFile file = whole;
    change(file);
    write_file(file_, file);
    return refusal();
  };
  EXPECT_THAT(with([&](AdapterFile& f) { f.erase(name("mlp.down_proj", 'B')); }),
              HasSubstr("it has no tensor \"" + name("mlp.down_proj", 'B')));
  EXPECT_THAT(with([&](AdapterFile& f) {
                f.erase(name("mlp.down_proj", 'A'));
                f.erase(name("mlp.down_proj", 'B'));
              }),
              HasSubstr("\"" + name("mlp.down_proj", 'A') +
                        "\", though other layers or matrices of its target have such adapters"));
  EXPECT_THAT(with([&](AdapterFile& f) {
                std::swap(f[name("mlp.down_proj", 'A')].shape[0], f[name("mlp.down_proj", 'A')].shape[1]);
              }),
              HasSubstr("the model and adapter_config.json need [2, "));
  EXPECT_THAT(with([&](AdapterFile& f) {
                f["base_model.model.lm_head.lora_A.weight"] = {{1, 1}, {0}};
              }),
              HasSubstr("the model has no place for \"base_model.model.lm_head.lora_A.weight\""));
  EXPECT_THAT(with([&](AdapterFile& f) { f.clear(); }), HasSubstr("it has no adapter of the model's matrices"));
}

// Two A that begin with no number are equal to none, and in no order.
TEST_F(PeftOfLlama, NumbersThatAreNotFiniteAreRefused) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    AdapterFile file = read_file(file_);
    for (const char* module : {"self_attn.q_proj", "self_attn.k_proj"}) file[name(module, 'A')].values[0] = value;
    write_file(file_, file);
    EXPECT_THAT(refusal(), HasSubstr("has numbers that are not finite"));
  }
}

TEST_F(PeftOfLlama, WhatHasNoEquivalentIsRefused) {
  const nlohmann::json plain = config_;
  for (const auto& [key, value] : std::map<std::string, nlohmann::json>{{"use_dora", true},
                                                                        {"bias", "all"},
                                                                        {"modules_to_save", {"lm_head"}},
                                                                        {"rank_pattern", {{"q_proj", 4}}},
                                                                        {"peft_type", "IA3"},
                                                                        {"r", 0},
                                                                        {"lora_alpha", 0}}) {
    config_ = plain;
    config_[key] = value;
    write_config();
    EXPECT_THAT(refusal(), HasSubstr("adapter_config.json#/" + key));
  }
  config_ = plain;
  config_["r"] = 4;
  write_config();
  EXPECT_THAT(refusal(), HasSubstr("need [4, "));
}

TEST_F(PeftOfLlama, WithoutAdaptersNothingIsWritten) {
  EXPECT_THROW(write_adapters(tensors_, job_.model, {}, folder_.path() / "none.safetensors"), base::Failure);
  EXPECT_FALSE(fs::exists(folder_.path() / "none.safetensors"));
}

}  // namespace
}  // namespace trivium::runtime::checkpoint
