#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "models/load.h"
#include "tests/input_error.h"

namespace trivium::models {
namespace {

std::int64_t shipped_total(const std::string& name) { return count_parameters(load_model(name)).total; }

/// The count in billions with so many digits after the point, as papers print it.
std::string printed(const std::string& name, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*fB", digits, static_cast<double>(shipped_total(name)) / 1e9);
  return text.data();
}

TEST(ShippedModels, EveryOneLoadsHasASourceAndSurvivesARoundTrip) {
  const std::vector<std::string> names = shipped_models();
  EXPECT_EQ(names.size(), 143u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Model model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(model.source.empty());
    EXPECT_EQ(model_from_json(to_json(model), "again.json"), model);
    EXPECT_GT(count_parameters(model).total, 0);
    EXPECT_GT(flops_per_token(model, model.max_sequence).model, 0);
  }
}

TEST(ShippedModels, Gpt2HasTheCountsOfTheReleasedWeights) {
  // 12 layers x (12 x 768^2 + 13 x 768) + (50257 + 1024) x 768 + final norm 2 x 768
  EXPECT_EQ(shipped_total("gpt2-124m"), 124439808);
  EXPECT_EQ(shipped_total("gpt2-350m"), 354823168);
  EXPECT_EQ(shipped_total("gpt2-774m"), 774030080);
  EXPECT_EQ(shipped_total("gpt2-1.5b"), 1557611200);
}

// Counts of the released weights, as their safetensors indices have them.
TEST(ShippedModels, Llama3AndQwen25HaveTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("llama3-8b"), 8030261248);
  EXPECT_EQ(shipped_total("llama3-70b"), 70553706496);
  EXPECT_EQ(shipped_total("llama3.1-8b"), 8030261248);
  EXPECT_EQ(shipped_total("llama3.1-70b"), 70553706496);
  EXPECT_EQ(shipped_total("llama3.1-405b"), 405853388800);
  EXPECT_EQ(shipped_total("llama3.2-1b"), 1235814400);
  EXPECT_EQ(shipped_total("llama3.2-3b"), 3212749824);
  EXPECT_EQ(shipped_total("qwen2.5-7b"), 7615616512);
  EXPECT_EQ(shipped_total("qwen2.5-32b"), 32763876352);
  EXPECT_EQ(shipped_total("qwen2.5-72b"), 72706203648);
}

// Counts of transformers 5.24 on the meta device for the config.json of the release (text models of Gemma 3 and
// Qwen-VL), with the biases that only choose experts, which it keeps in buffers.
TEST(ShippedModels, ThoseOfReleasedConfigurationsHaveTheLibrarysCounts) {
  const std::vector<std::pair<const char*, std::int64_t>> totals = {
      {"bloom-176b", 176247271424},      {"bloom-560m", 559214592},
      {"bloom-7b1", 7069016064},         {"command-a-111b", 111057580032},
      {"command-r-35b", 34980831232},    {"command-r-plus-104b", 103810674688},
      {"command-r7b", 8028033024},       {"ernie4.5-0.3b", 360748032},
      {"ernie4.5-21b-a3b", 21825437888}, {"ernie4.5-300b-a47b", 299484163264},
      {"falcon3-10b", 10305653760},      {"falcon3-7b", 7455550464},
      {"gemma-2b", 2506172416},          {"gemma-7b", 8537680896},
      {"gemma3-12b", 11766034176},       {"gemma3-27b", 27009346304},
      {"gemma3-4b", 3880263168},         {"glm4-9b", 9399951360},
      {"gpt-j-6b", 6050882784},          {"gpt-neox-20b", 20554567680},
      {"granite3.3-2b", 2533539840},     {"granite3.3-8b", 8170864640},
      {"llama2-13b", 13015864320},       {"llama2-7b", 6738415616},
      {"minimax-m2", 228689764864},      {"mistral-large-123b", 122610069504},
      {"mixtral-8x22b", 140620634112},   {"mpt-7b", 6649286656},
      {"olmo2-13b", 13716198400},        {"olmo2-1b", 1484916736},
      {"olmo2-32b", 32234279936},        {"olmo2-7b", 7298617344},
      {"olmo3-32b", 32233522176},        {"olmo3-7b", 7298011136},
      {"olmoe-7b-a1b", 6919161856},      {"opt-30b", 29974540288},
      {"opt-6.7b", 6658473984},          {"phi2", 2779683840},
      {"phi3.5-moe", 41873153344},       {"phi4-mini", 3836021760},
      {"pythia-12b", 11846072320},       {"pythia-1b", 1011781632},
      {"pythia-6.9b", 6857302016},       {"qwen1.5-moe-a2.7b", 14315784192},
      {"qwen2-57b-a14b", 57408658944},   {"qwen2.5-0.5b", 494032768},
      {"qwen2.5-1.5b", 1543714304},      {"qwen2.5-14b", 14770033664},
      {"qwen2.5-3b", 3085938688},        {"qwen2.5-vl-32b", 32763876352},
      {"qwen2.5-vl-3b", 3085938688},     {"qwen2.5-vl-72b", 72706203648},
      {"qwen2.5-vl-7b", 7615616512},     {"qwen3-1.7b", 1720574976},
      {"qwen3-14b", 14768307200},        {"qwen3-4b", 4022468096},
      {"seed-oss-36b", 36151104512},     {"smollm2-1.7b", 1711376384},
      {"smollm2-135m", 134515008},       {"smollm2-360m", 361821120},
      {"smollm3-3b", 3075098624},        {"starcoder2-15b", 15957889024},
      {"starcoder2-3b", 3030371328},     {"starcoder2-7b", 7173923840},
      {"tinyllama-1.1b", 1100048384},
  };
  for (const auto& [name, total] : totals) EXPECT_EQ(shipped_total(name), total) << name;
}

TEST(ShippedModels, AreKnownByTheNamesOfRepositories) {
  EXPECT_EQ(load_model("Qwen/Qwen3-32B").name, "qwen3-32b");
  EXPECT_EQ(load_model("allenai/OLMo-2-0325-32B").name, "olmo2-32b");
  EXPECT_EQ(load_model("bigscience/bloom").name, "bloom-176b");
  EXPECT_EQ(load_model("meta-llama/Llama-3.1-8B-Instruct").name, "llama3.1-8b");
  EXPECT_THAT(input_error([] { load_model("Qwen/Qwen3-32B-FP8"); }, ""), testing::HasSubstr("did you mean"));
}

TEST(ShippedModels, HaveAFamily) {
  EXPECT_EQ(family_of("qwen3-32b"), "qwen3");
  EXPECT_EQ(family_of("gpt-oss-20b"), "gpt-oss");
  EXPECT_EQ(family_of("command-r-plus-104b"), "command-r-plus");
  EXPECT_EQ(family_of("mixtral-8x22b"), "mixtral");
}

// Qwen3-235B-A22B: 94 layers of 128 experts, of which a token visits 8.
TEST(ShippedModels, Qwen3HasTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("qwen3-0.6b"), 596049920);
  EXPECT_EQ(shipped_total("qwen3-8b"), 8190735360);
  EXPECT_EQ(shipped_total("qwen3-32b"), 32762123264);
  EXPECT_EQ(shipped_total("qwen3-30b-a3b"), 30532122624);
  EXPECT_EQ(shipped_total("qwen3-235b-a22b"), 235093634560);
  EXPECT_NEAR(static_cast<double>(count_parameters(load_model("qwen3-235b-a22b")).active), 22.2e9, .05e9);
}

double billions_active(const std::string& name) {
  return static_cast<double>(count_parameters(load_model(name)).active) / 1e9;
}

// DeepSeek-V2-Lite: 15.7B, of which a token uses 2.4B; V2: 236B and 21B (arXiv 2405.04434); V3: 671B and 37B (arXiv
// 2412.19437), the released weights with the correction biases and without multi-token prediction.
TEST(ShippedModels, DeepSeekHasTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("deepseek-v2-lite"), 15706484224);
  EXPECT_EQ(shipped_total("deepseek-v2"), 235741434880);
  EXPECT_EQ(shipped_total("deepseek-v3"), 671026419200);
  EXPECT_NEAR(billions_active("deepseek-v2-lite"), 2.4, .3);
  EXPECT_NEAR(billions_active("deepseek-v2"), 21, .5);
  EXPECT_NEAR(billions_active("deepseek-v3"), 37, .6);
}

// arXiv 2507.20534: 1.04T and 32.6B. arXiv 2508.06471: 355B and 32B, 106B and 12B.
TEST(ShippedModels, KimiAndGlmHaveThePrintedSizes) {
  EXPECT_EQ(printed("kimi-k2", 0), "1026B");
  EXPECT_NEAR(billions_active("kimi-k2"), 32.6, .4);
  EXPECT_EQ(printed("glm4.5", 0), "353B");
  EXPECT_NEAR(billions_active("glm4.5"), 32, 2);
  EXPECT_EQ(printed("glm4.5-air", 0), "107B");
  EXPECT_NEAR(billions_active("glm4.5-air"), 12, 2);
}

// The released files have 108,641,793,536 and 401,583,781,376 numbers, of which 871,932,416 see images: a vision model
// of 34 layers, its adapter and a projection to the hidden width. Of the text model a token uses 17B each.
TEST(ShippedModels, Llama4HasTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("llama4-scout"), 108641793536 - 871932416);
  EXPECT_EQ(shipped_total("llama4-maverick"), 401583781376 - 871932416);
  EXPECT_NEAR(billions_active("llama4-scout"), 17, .3);
  EXPECT_NEAR(billions_active("llama4-maverick"), 17, .3);
}

// "314B parameters" (README.md of the release): the layers'; its embedding has 0.8 billion more.
TEST(ShippedModels, Grok1HasThePrintedSize) {
  const ParameterCount count = count_parameters(load_model("grok-1"));
  EXPECT_NEAR(static_cast<double>(count.total - count.token_embedding) / 1e9, 314.5, .5);
  EXPECT_EQ(count.token_embedding, 131072 * 6144);
}

TEST(ShippedModels, PhiAndMistralHaveTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("phi3-mini"), 3821079552);
  EXPECT_EQ(shipped_total("phi3-medium"), 13960238080);
  EXPECT_EQ(shipped_total("phi4"), 14659507200);
  EXPECT_EQ(shipped_total("mistral-7b"), 7248023552);
  EXPECT_EQ(shipped_total("mistral-small-24b"), 23572403200);
}

// arXiv 2402.16819: 3.2 billion embedding parameters and 12.5 billion others; arXiv 2406.11704: 9.4 and 331.6.
TEST(ShippedModels, NemotronHasThePrintedSizes) {
  for (const auto& [name, embedding, others] :
       {std::tuple("nemotron4-15b", 3.2e9, 12.5e9), std::tuple("nemotron4-340b", 9.4e9, 331.6e9)}) {
    const ParameterCount count = count_parameters(load_model(name));
    EXPECT_NEAR(static_cast<double>(count.token_embedding + count.head), embedding, 0.06e9) << name;
    EXPECT_NEAR(static_cast<double>(count.total - count.token_embedding - count.head), others, 0.06e9) << name;
  }
}

// Counts of the released weights.
TEST(ShippedModels, GemmaHasTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("gemma2-2b"), 2614341888);
  EXPECT_EQ(shipped_total("gemma2-9b"), 9241705984);
  EXPECT_EQ(shipped_total("gemma2-27b"), 27227128320);
  EXPECT_EQ(shipped_total("gemma3-1b"), 999885952);
}

// Table 1 of the model card: 116.83 B and 20.91 B, of which MLP 114.71 B and 19.12 B, attention .96 B and .64 B.
TEST(ShippedModels, GptOssHasThePrintedSizes) {
  EXPECT_EQ(shipped_total("gpt-oss-120b"), 116829156672);
  EXPECT_EQ(shipped_total("gpt-oss-20b"), 20914757184);
  EXPECT_EQ(printed("gpt-oss-120b", 2), "116.83B");
  EXPECT_EQ(printed("gpt-oss-20b", 2), "20.91B");
  const ParameterCount large = count_parameters(load_model("gpt-oss-120b"));
  EXPECT_NEAR(static_cast<double>(large.mlp), 114.71e9, .005e9);
  EXPECT_NEAR(static_cast<double>(large.attention), .96e9, .005e9);
}

TEST(ShippedModels, Gpt3HasThePrintedSizes) {
  EXPECT_EQ(printed("gpt3-125m", 3), "0.125B");
  EXPECT_EQ(printed("gpt3-350m", 3), "0.356B");  // the table prints 350M
  EXPECT_EQ(printed("gpt3-760m", 2), "0.76B");
  EXPECT_EQ(printed("gpt3-1.3b", 1), "1.3B");
  EXPECT_EQ(printed("gpt3-2.7b", 1), "2.7B");
  EXPECT_EQ(printed("gpt3-6.7b", 1), "6.7B");
  EXPECT_EQ(printed("gpt3-13b", 0), "13B");
}

TEST(ShippedModels, Gpt3Of175BillionPrintsTheSameWithBothVocabularies) {
  EXPECT_EQ(printed("gpt3-175b", 1), "174.6B");
  Model unpadded = load_model("gpt3-175b");
  EXPECT_EQ(unpadded.vocab, 51200);
  // 96 x (12 x 12288^2 + 13 x 12288) + (50257 + 2048) x 12288 + 2 x 12288
  // = 173,961,510,912 + 642,723,840 + 24,576
  unpadded.vocab = 50257;
  EXPECT_EQ(count_parameters(unpadded).total, 174604259328);
}

TEST(ShippedModels, MegatronHasThePrintedSizesOfItsTable) {
  for (const char* size : {"1.7", "3.6", "7.5", "18.4", "39.1", "76.1", "145.6", "310.1", "529.6", "1008.0"}) {
    EXPECT_EQ(printed(std::string("megatron-") + size + "b", 1), std::string(size) + "B");
  }
}

TEST(ShippedModels, MegatronFollowsThePapersFormulaUpToTheFinalNorm) {
  // 12 l h^2 (1 + 13/(12h) + (V + s)/(12 l h)) with l = 40, h = 6144, V = 51200, s = 2048:
  // 18,119,393,280 + 3,194,880 + 327,155,712 = 18,449,743,872, and the final norm 2 x 6144 which it leaves out.
  EXPECT_EQ(shipped_total("megatron-18.4b"), 18449743872 + 12288);
}

TEST(ShippedModels, LlamaHasTheCountsOfTheReleasedWeights) {
  EXPECT_EQ(shipped_total("llama-7b"), 6738415616);
  EXPECT_EQ(shipped_total("llama-13b"), 13015864320);
  EXPECT_EQ(shipped_total("llama-33b"), 32528943616);
  EXPECT_EQ(shipped_total("llama-65b"), 65285660672);
  EXPECT_EQ(shipped_total("llama2-70b"), 68976648192);
}

TEST(ShippedModels, FalconHasTheCountsOfTheReleasedWeights) {
  // 32 x (2 x 4544^2 + 2 x 4544 x 64 + 8 x 4544^2 + norm 2 x 4544) + 65024 x 4544 + 2 x 4544
  EXPECT_EQ(shipped_total("falcon-7b"), 6921720704);
  // 60 x (2 x 8192^2 + 2 x 8192 x 512 + 8 x 8192^2 + two norms 4 x 8192) + 65024 x 8192 + 2 x 8192
  EXPECT_EQ(shipped_total("falcon-40b"), 41303293952);
  // With a stored copy of the tied matrix, 65024 x 14848 more, this prints 179.5B.
  EXPECT_EQ(shipped_total("falcon-180b"), 178557088768);
}

TEST(ShippedModels, PalmHasThePrintedSizes) {
  EXPECT_EQ(printed("palm-8b", 2), "8.63B");
  EXPECT_EQ(printed("palm-62b", 2), "62.50B");
  // 118 x (2 x 18432 x 12288 + 2 x 18432 x 256 + 3 x 18432 x 73728) + 256000 x 18432 = 540,354,281,472, printed
  // 540.35B. The scales of 119 norms, 2,193,408 more, would print 540.36B: the paper leaves them out or cuts the digit.
  const ParameterCount largest = count_parameters(load_model("palm-540b"));
  EXPECT_EQ(largest.norms, 2193408);
  EXPECT_EQ(largest.total, 540354281472 + 2193408);
}

TEST(ShippedModels, MixturesCountTotalAndActive) {
  const ParameterCount mixtral = count_parameters(load_model("mixtral-8x7b"));
  EXPECT_EQ(mixtral.total, 46702792704);
  EXPECT_EQ(mixtral.active, 12879925248);
  // Table 9 of the Switch paper prints 7B and 1571B; cross attention, left out here, is below the last digit.
  EXPECT_EQ(printed("switch-base-128", 0), "7B");
  EXPECT_EQ(printed("switch-c", 0), "1571B");
}

TEST(ShippedModels, OursHaveTheSizesTheyPromise) {
  // 4 x (12 x 128^2 + 13 x 128) + (256 + 128) x 128 + 2 x 128
  EXPECT_EQ(shipped_total("gpt-tiny"), 842496);
  // 6 x (12 x 384^2 + 13 x 384) + (256 + 256) x 384 + 2 x 384
  EXPECT_EQ(shipped_total("gpt-mini"), 10844160);
  // 12 x (12 x 2560^2 + 13 x 2560) + (50257 + 1024) x 2560 + 2 x 2560
  EXPECT_EQ(shipped_total("gpt-1b-12-layers"), 1075402240);
  EXPECT_EQ(load_model("gpt-1b-12-layers").layers, 12);
}

std::string load_message(const std::string& name_or_path) {
  return input_error([&] { load_model(name_or_path); }, "nothing thrown");
}

TEST(LoadModel, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(load_message("gpt3-175"), "unknown model \"gpt3-175\"; did you mean \"gpt3-175b\"?");
  EXPECT_EQ(load_message("LLama-7B"), "unknown model \"LLama-7B\"; did you mean \"llama-7b\"?");
  EXPECT_EQ(load_message("resnet"),
            "unknown model \"resnet\"; give a shipped name (`trivium models` lists them) or a file");
  EXPECT_THAT(load_message(""), ::testing::StartsWith("unknown model \"\""));
  EXPECT_THAT(load_message("../models/gpt2-124m"), ::testing::HasSubstr("there is no file or folder"));
}

TEST(LoadModel, MissingFileIsNamed) {
  EXPECT_EQ(load_message("nowhere/model.json"), "nowhere/model.json: cannot read: there is no such file");
}

}  // namespace
}  // namespace trivium::models
