// Configurations of every family of transformers 5.24 with the class's defaults (tests/models/families.json: a line for
// each, with the parameters that the library counts on the meta device), against what is read of them; and the list in
// docs/reference/models.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "models/family_expression.h"
#include "models/family_files.h"
#include "models/load.h"
#include "tests/golden.h"
#include "tests/input_error.h"
#include "tests/models/read_config.h"

namespace trivium::models {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kRoot = TRIVIUM_SOURCE_DIR;

std::string text_of_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Outcome {
  std::string family;
  std::int64_t expected = 0;
  std::int64_t read = 0;  ///< parameters; 0: not read
  std::string why;        ///< of those that are not
  std::string left_out, not_run;
};

/// What is read of one line. The library keeps biases that only choose experts in buffers, which released weights have
/// and its count of parameters has not.
Outcome outcome_of(const std::string& family, const json& line) {
  Outcome outcome{
      family, line.value("text", line.at("parameters").get<std::int64_t>()) + line.value("choosing", 0), 0, {}, {}, {}};
  try {
    const HuggingFaceModel read = read_hugging_face(line.at("config"), "config.json");
    outcome.read = count_parameters(read.model).total;
    outcome.left_out = fmt::format("{}", fmt::join(read.left_out, ", "));
    outcome.not_run = fmt::format("{}", fmt::join(not_run(read.model), "; "));
  } catch (const base::Failure& failure) {
    const std::string what = failure.what();
    const std::string_view marker = "is not read: ";
    const std::size_t at = what.find(marker);
    outcome.why = at == std::string::npos ? what : what.substr(at + marker.size());
  }
  return outcome;
}

const std::vector<Outcome>& outcomes() {
  static const std::vector<Outcome> kOutcomes = [] {
    std::vector<Outcome> all;
    const json families = json::parse(text_of_file(kRoot / "tests/models/families.json"));
    for (const auto& [family, line] : families.items()) all.push_back(outcome_of(family, line));
    return all;
  }();
  return kOutcomes;
}

TEST(Families, AreReadWithTheLibrarysCountsOrNotAtAll) {
  constexpr int kRead = 85;  // a family that becomes readable is one more
  int read = 0;
  for (const Outcome& one : outcomes()) {
    SCOPED_TRACE(one.family);
    if (one.read == 0) {
      EXPECT_FALSE(one.why.empty());
      continue;
    }
    EXPECT_EQ(one.read, one.expected);
    ++read;
  }
  EXPECT_EQ(read, kRead);
  EXPECT_EQ(outcomes().size(), 140u);
}

/// Names of a paragraph, wrapped as Markdown is here.
std::string wrapped(const std::vector<std::string>& words) {
  constexpr std::size_t kWidth = 100;
  std::string text, line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) text += line + "\n", line.clear();
    line += (line.empty() ? "" : " ") + word;
  }
  return text + line + "\n";
}

std::string family_list() {
  std::vector<std::string> run, planned;
  std::string rows;
  for (const Outcome& one : outcomes()) {
    if (one.read == 0) {
      rows += fmt::format("| `{}` | {} |\n", one.family, one.why);
    } else {
      (one.not_run.empty() ? run : planned).push_back(fmt::format("`{}`,", one.family));
    }
  }
  for (std::vector<std::string>* names : {&run, &planned}) names->back().back() = '.';
  return fmt::format(
      "Of the {} decoder families of `transformers` 5.24, {} are read with its count of parameters.\nPlanned, "
      "simulated and run:\n\n{}\nPlanned and simulated, not run (`extras` in `trivium models FILE --json` says "
      "why):\n\n{}\n| not read | why |\n|---|---|\n{}",
      outcomes().size(), run.size() + planned.size(), wrapped(run), wrapped(planned), rows);
}

TEST(Families, TheListOfTheDocsIsCurrent) {
  const fs::path page = kRoot / "docs/reference/models.md";
  const std::string text = text_of_file(page);
  const std::string begin = "<!-- families: written by families_test -->\n", end = "<!-- end of families -->\n";
  const std::size_t first = text.find(begin), last = text.find(end);
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  expect_golden(page, text.substr(0, first + begin.size()) + "\n" + family_list() + "\n" + text.substr(last));
}

json value_of(const std::string& expression, const json& keys = json::object()) {
  const json place;
  const base::JsonReader where(place, "family.json", "/model/x");
  return evaluate(
      expression, [&](const std::string& name) { return keys.value(name, json()); }, where);
}

TEST(FamilyExpressions, ComputeWithKeys) {
  const json keys = {
      {"hidden", 64}, {"heads", 4}, {"types", {"a", "b", "a"}}, {"rope", {{"theta", 5}}}, {"none", nullptr}};
  EXPECT_EQ(value_of("hidden // heads + 2 * 3", keys), 22);
  EXPECT_EQ(value_of("hidden / 128", keys), 0.5);
  EXPECT_EQ(value_of("none ?? missing ?? heads", keys), 4);
  EXPECT_EQ(value_of("missing * 2"), json());
  EXPECT_EQ(value_of("if heads > 3 and not (hidden == 1) then 'yes' else 1 / 0", keys), "yes");
  EXPECT_EQ(value_of("rope.theta", keys), 5);
  EXPECT_EQ(value_of("types[1]", keys), "b");
  EXPECT_EQ(value_of("types[3]", keys), json());
  EXPECT_EQ(value_of("count(types, 'a') + len(types)", keys), 5);
  EXPECT_EQ(value_of("each(3, if layer % 2 == 0 then 1 else 0)"), json({1, 0, 1}));
  EXPECT_EQ(value_of("2 in [1, 2]"), true);
  EXPECT_EQ(value_of("sqrt(hidden)", keys), 8.0);
  EXPECT_EQ(value_of("max(1, heads, 3)", keys), 4);
}

TEST(FamilyExpressions, SayWhatIsWrongAndWhere) {
  const auto message = [](const std::string& expression) {
    return input_error([&] { value_of(expression); }, "nothing thrown");
  };
  EXPECT_THAT(message("1 +"), testing::HasSubstr("family.json#/model/x: is no expression: its end where a value"));
  EXPECT_THAT(message("(1"), testing::HasSubstr("its end where ) should stand"));
  EXPECT_THAT(message("'a"), testing::HasSubstr("a text without its closing '"));
  EXPECT_THAT(message("1 + 'a'"), testing::HasSubstr("which are not both numbers"));
  EXPECT_THAT(message("f(1)"), testing::HasSubstr("calls \"f\" with 1 values, which is no function"));
  EXPECT_THAT(message("1 // 0"), testing::HasSubstr("divides by"));
}

class FamilyFolder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const json& file) { std::ofstream(folder_ / (name + ".json")) << file; }
  std::string message() {
    return input_error([&] { read_families(std::array{folder_}); }, "nothing thrown");
  }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("trivium-families-{}", ::getpid());
};

TEST_F(FamilyFolder, AFamilyHasItsBasesMembersUnlessItTakesThemAway) {
  write("one", {{"schema", "trivium.family/1"},
                {"name", "one"},
                {"types", {"one"}},
                {"model", {{"layers", "n"}, {"hidden", "h"}}}});
  write("two", {{"schema", "trivium.family/1"},
                {"name", "two"},
                {"types", {"two"}},
                {"base", "one"},
                {"model", {{"layers", "m"}, {"hidden", nullptr}}}});
  const std::vector<Family> read = read_families(std::array{folder_});
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].types, std::vector<std::string>{"two"});
  EXPECT_EQ(read[1].file.at("model"), json({{"layers", "m"}}));
}

TEST_F(FamilyFolder, DamagedFilesAreNamed) {
  write("one", {{"schema", "trivium.family/1"}, {"name", "one"}, {"base", "two"}});
  EXPECT_THAT(message(), testing::HasSubstr("one.json#/base: is no family: \"two\""));
  write("two", {{"schema", "trivium.family/1"}, {"name", "two"}, {"base", "one"}});
  EXPECT_THAT(message(), testing::HasSubstr("circle of bases"));
  write("two", {{"schema", "trivium.family/1"}, {"name", "other"}});
  EXPECT_THAT(message(), testing::HasSubstr("two.json#/name: must be that of the file"));
  write("two", {{"schema", "trivium.family/1"}, {"name", "two"}, {"modle", 1}});
  EXPECT_THAT(message(), testing::HasSubstr("did you mean \"model\"?"));
}

TEST(Families, SayWhatTheyLackAndWhatTheyLeaveOut) {
  EXPECT_THAT(message_for(R"({"model_type": "mamba2"})"),
              testing::HasSubstr("config.json#/model_type: \"mamba2\" is not read: its layers are state spaces"));
  EXPECT_THAT(
      message_for(R"({"model_type": "qwen3_vl", "vision_config": {}, "text_config": {"model_type": "qwen3_next"}})"),
      testing::HasSubstr("config.json#/text_config/model_type: \"qwen3_next\" is not read"));
  const HuggingFaceModel read = read_hugging_face(
      json::parse(R"({"model_type": "gemma3", "vision_config": {}, "text_config": {"model_type": "gemma3_text",
          "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
          "vocab_size": 100}})"),
      "config.json");
  EXPECT_THAT(read.left_out, testing::ElementsAre("vision_config (an encoder of images)"));
}

TEST(Families, KeysThatAreNotKnownOrChangeTheModelAreRefused) {
  EXPECT_THAT(message_for(R"({"model_type": "olmo2", "something_new": 3})"),
              testing::HasSubstr("#/something_new: not known"));
  EXPECT_THAT(message_for(R"({"model_type": "olmoe", "clip_qkv": 8})"),
              testing::HasSubstr("#/clip_qkv: is not supported but null"));
  EXPECT_THAT(message_for(R"({"model_type": "olmo2", "num_hidden_layers": "many"})"),
              testing::HasSubstr("#/num_hidden_layers"));
  EXPECT_THAT(message_for(R"({"model_type": "starcoder2", "hidden_act": "swoosh"})"),
              testing::HasSubstr("#/hidden_act: unsupported activation \"swoosh\""));
}

// The library counts 843,777,024, 10,508,502,016 and 1,249,674,240 on the meta device, and 24 in the last one's
// buffers.
TEST(Families, WithoutUsableDefaultsAreReadWithTheLibrarysCounts) {
  const std::string rest = R"(, "hidden_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 32, "head_dim": 128,
      "num_key_value_heads": 8, "intermediate_size": 3072, "vocab_size": 128167, "tie_word_embeddings": true)";
  EXPECT_EQ(total_of(R"({"model_type": "hunyuan_v1_dense")" + rest + "}"), 843777024);
  EXPECT_EQ(total_of(R"({"model_type": "hunyuan_v1_moe", "num_experts": 64, "moe_topk": 8)" + rest + "}"), 10508502016);
  EXPECT_EQ(total_of(R"({"model_type": "dots1", "moe_intermediate_size": 1408, "n_routed_experts": 8,
      "num_experts_per_tok": 2, "n_shared_experts": 2, "first_k_dense_replace": 1)" +
                     rest + "}"),
            1249674264);
}

TEST(Families, QwensMixturesWithoutHeadDimHaveHiddenOverHeads) {  // of the library's class; 128 for the dense ones
  EXPECT_EQ(read(R"({"model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 2048, "num_attention_heads": 32,
      "num_key_value_heads": 4, "intermediate_size": 64, "vocab_size": 100, "max_position_embeddings": 64,
      "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64})")
                .head_dim,
            64);
}

}  // namespace
}  // namespace trivium::models
