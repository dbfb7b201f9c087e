// What `plan` prints by default: an answer of at most 25 lines that fit the terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace trivium::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kMostLines = 25, kUsualColumns = 80;
constexpr int kNoPlan = 4;

std::vector<std::string> lines_of_page(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Characters of UTF-8.
std::size_t width_of(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

void expect_fits(const std::string& page, std::size_t columns) {
  const std::vector<std::string> lines = lines_of_page(page);
  EXPECT_LE(lines.size(), kMostLines) << page;
  for (const std::string& line : lines) EXPECT_LE(width_of(line), columns) << line;
}

constexpr const char* kBloom =
    R"({"model_type": "bloom", "architectures": ["BloomForCausalLM"], "hidden_size": 1024, "n_layer": 24, "n_head": 16,
        "vocab_size": 250880, "seq_length": 2048, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true,
        "apply_residual_connection_post_layernorm": false})";

class PlanPage : public testing::TestWithParam<const char*> {};

TEST_P(PlanPage, FitsEightyColumnsAndTwentyFiveLines) {
  const Workplace workplace;
  workplace.write("bloom.json", kBloom);
  const Outcome outcome = workplace.run(std::string("trivium plan ") + GetParam());
  ASSERT_TRUE(outcome.exit_code == 0 || outcome.exit_code == kNoPlan) << outcome.err;
  expect_fits(outcome.out, kUsualColumns);
  EXPECT_THAT(outcome.out, StartsWith(outcome.exit_code == 0 ? "An iteration is expected to take " : "No plan fits."));
  for (const char* row : {"\n  job  ", "\n  search  ", "\n  next  "}) EXPECT_THAT(outcome.out, HasSubstr(row));
}

INSTANTIATE_TEST_SUITE_P(
    TenJobs, PlanPage,
    testing::Values(
        "--model gpt3-175b --cluster dgx-a100-80gb:128 --global-batch 1536",
        "--model llama3-70b --sequence 8192 --cluster dgx-h100:16 --global-batch 512 --for megatron-bridge --tokens 2T "
        "--price '2.50 $/h'",
        "--model deepseek-v3 --sequence 4096 --cluster gb200-nvl72:4 --devices-per-node 64 --global-batch 4096 --for "
        "megatron-bridge --fp8 mxfp8",
        "--model mixtral-8x7b --sequence 4096 --cluster dgx-h100-80gb:16 --global-batch 1024",
        "--model gpt-oss-120b --sequence 4096 --cluster dgx-h100-80gb:8 --global-batch 512 --for megatron-bridge",
        "--model gpt-tiny --cluster generic-cpu --global-batch 8 -o tiny.json",
        "--model gpt3-13b --cluster dgx1-v100-32gb:8+dgx-a100-80gb:8 --global-batch 256 --tokens 300B",
        "--model llama3.1-405b --sequence 8192 --cluster dgx-h100-80gb:2 --global-batch 64",
        "--model llama3.1-405b --sequence 8192 --cluster dgx-h100-80gb:128 --global-batch 2048 --tokens 15.6T",
        "--model bloom.json --cluster dgx-a100-80gb:2 --global-batch 511"));

TEST(PlanPageWidth, IsThatOfColumns) {
  const Workplace workplace;
  const std::string job = "trivium plan --model gpt3-13b --cluster dgx1-v100-32gb:1+dgx-a100-80gb:1 --global-batch 64";
  for (const std::size_t columns : {60U, 100U, 120U}) {
    expect_fits(workplace.run("COLUMNS=" + std::to_string(columns) + " " + job).out, columns);
  }
  const std::string usual = workplace.run(job + " --threads 1").out;
  expect_fits(workplace.run("COLUMNS=20 " + job).out, 60);  // no page is narrower
  EXPECT_EQ(lines_of_page(workplace.run("COLUMNS=no " + job).out).size(), lines_of_page(usual).size());
}

TEST(PlanPageDetails, StandBelowItOnRequest) {
  const Workplace workplace;
  const std::string job = "trivium plan --model gpt2-124m --cluster dgx-a100-80gb:1 --global-batch 16";
  const std::string page = workplace.run(job).out, all = workplace.run(job + " --all").out;
  for (const char* detail : {"naive layer split", "rejected", "not searched: ", "other families", "peak memory"}) {
    EXPECT_THAT(page, Not(HasSubstr(detail)));
    EXPECT_THAT(all, HasSubstr(detail));
  }
  EXPECT_THAT(all, StartsWith(page.substr(0, page.find("  search"))));
}

TEST(PlanPageDetails, ListEveryPlanThatBestAsksFor) {
  const Workplace workplace;
  const std::string page =
      workplace.run("trivium plan --model gpt2-124m --cluster dgx-a100-80gb:1 --global-batch 16 --best 40").out;
  EXPECT_GE(lines_of_page(page).size(), 39U + 10U);
  for (const std::string& line : lines_of_page(page)) EXPECT_LE(width_of(line), kUsualColumns) << line;
}

TEST(PlanPagePeak, IsNamedWhereProductsHaveEightBits) {
  const Workplace workplace;
  const std::string page = workplace
                               .run(
                                   "trivium plan --model llama3.2-1b --sequence 4096 --cluster dgx-h100-80gb:1 "
                                   "--global-batch 64 --for megatron "
                                   "--fp8 current")
                               .out;
  EXPECT_THAT(page.substr(0, page.find("\n\n")), testing::ContainsRegex("MFU [0-9.]+ % of the\\s+bf16 peak"));
}

}  // namespace
}  // namespace trivium::cli
